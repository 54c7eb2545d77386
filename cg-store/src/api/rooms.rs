//! The rooms of an open world, and how it is closed.
//!
//! **Invariant**: when the last clone of a [`World`](crate::World) is dropped, the engine is closed, and its directory
//! can be opened again. Tickets and background work hold a [`WeakWorld`](crate::rt::weak_world::WeakWorld), which does
//! not keep the world open; closing waits for uses that have begun.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::ChunkAt;
use cg_tiering::{GameTick, Observers};

use crate::admin::Admin;
use crate::commit::queue::CommitQueue;
use crate::commit::state::CommitState;
use crate::kinds::opacity::TileKey;
use crate::maintain::activity::Activity;
use crate::maintain::state::MaintainState;
use crate::maintain::tiering::Tiering;
use crate::read::delta::DeltaIndex;
use crate::read::state::ReadState;
use crate::rt::weak_world::WorldUses;
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// The rooms of an open world, which all its clones share. Dropping them closes the world.
pub(crate) struct Rooms {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) commit: Arc<CommitState>,
    pub(crate) maintain: Arc<MaintainState>,
    uses: Arc<WorldUses>,
}

/// The state in which an opening finds a world.
pub(crate) struct Found {
    /// Where the game clock continues.
    pub(crate) clock: GameTick,
    /// The tiles of the opacity map that have patches, if they are known.
    pub(crate) patched: Option<Vec<TileKey>>,
    pub(crate) deltas: DeltaIndex,
    /// Whether the world has just been made.
    pub(crate) is_new: bool,
}

impl Rooms {
    /// Creates the rooms of a world, and starts the periodic sync if it is needed.
    pub(crate) fn new(shared: Shared, found: Found) -> Result<Self, Error> {
        let Found { clock, patched, deltas, is_new } = found;
        let shared = Arc::new(shared);
        let observers = Observers::new(shared.options.tiers, clock);
        let activity = Arc::new(Activity::new(&shared, Tiering::new(observers, clock), patched));
        let queue = Arc::new(CommitQueue::new(shared.options.queue_bytes));
        let pending = Arc::clone(&queue);
        let read = Arc::new(ReadState::new(Arc::clone(&shared), deltas, pending, Arc::clone(&activity) as _));
        let uses = Arc::default();
        let commit = CommitState::new(Arc::clone(&read), queue, Arc::clone(&activity) as _, &uses)?;
        let maintain = MaintainState::new(Arc::clone(&commit), activity, clock, &uses);
        maintain.know_if_empty(is_new);
        commit.start_syncing()?;
        Ok(Self { shared, read, commit, maintain, uses })
    }

    /// Returns the rooms after everything that was submitted before is accepted or refused.
    ///
    /// # Errors
    /// Why the world takes no commits, if a batch waits for that.
    #[inline]
    pub(crate) fn applied(&self) -> Result<&Self, Error> {
        self.commit.apply_submitted()?;
        Ok(self)
    }

    /// As [`applied`](Self::applied), for the batches that concern the columns of some chunks.
    ///
    /// # Errors
    /// As [`applied`](Self::applied).
    #[inline]
    pub(crate) fn applied_for(&self, at: &[ChunkAt]) -> Result<&Self, Error> {
        self.commit.apply_submitted_for(at)?;
        Ok(self)
    }

    /// The room above maintenance.
    pub(crate) fn admin(&self) -> Admin<'_> {
        Admin::new(&self.maintain)
    }

    /// Closes the world, if it is not closed yet.
    pub(crate) fn close(&self) -> Result<(), Error> {
        let Self { shared, commit, .. } = self;
        commit.queue.close();
        let applied_all = commit.apply_submitted();
        if shared.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if applied_all.is_err() {
            commit.abandon_submitted();
        }
        if self.maintain.is_over_network {
            self.maintain.maintenance.wait();
        }
        commit.keep_settings_file();
        // Waits for the commit in progress; later ones find the engine closed. The lock is held until the registry is
        // folded. Otherwise the rows of a registration in progress would be folded away before the catalog contains
        // them.
        let _committing = commit.log.commit();
        let drained = commit.drain();
        commit.end_resumption();
        let engine = shared.engine()?;
        let folded = if engine.caps().read_only || drained.is_err() {
            Ok(())
        } else {
            // If the rows written next fill the disk, no commit is lost by that.
            let synced = engine.sync().map_err(Error::from);
            synced.and_then(|()| shared.registry.fold(&*engine)).and_then(|()| {
                self.maintain.keep_all_heat()?;
                self.maintain.keep_unfolded_tiles();
                Ok(())
            })
        };
        engine.close()?;
        applied_all.and(drained).and(folded).and_then(|()| commit.queue.check_unreported())
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, world = ?self.shared, "closing the world failed");
        }
        let [_, synced] = self.shared.slot.reached();
        self.uses.end(synced.get());
        self.commit.end_threads();
    }
}
