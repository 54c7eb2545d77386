//! The trait of engines.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cg_format::Space;
use cg_format::key::Family;

mod reopen;

pub use reopen::{Failure, Reopen, Reopened};

use super::{Batch, Caps, CommitSeq, EngineError, Guard, KeyRange, Level, Readable, Usage};

/// A state of an engine that later commits do not change; see [`Engine::snapshot`].
pub type Snapshot<'e> = Box<dyn Readable + 'e>;

/// Where rows are kept. See the [crate](crate) for what every engine promises.
pub trait Engine: Readable + fmt::Debug + 'static {
    /// Whether there may be a row, for callers to whom a large one is not worth reading to know. `false` is certain where nothing is
    /// damaged.
    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        !matches!(self.get(space, key), Ok(None))
    }

    /// Applies a batch whole, if every guard holds, and gives it the next commit sequence.
    ///
    /// Guards hold when the sequence is given, under one short lock; syncing happens outside it, once for
    /// all commits that wait for it, and so may comparing guards, as long as what is written meanwhile is compared again. An empty batch is a commit like any other. Returns when `level` is reached.
    ///
    /// A [maintenance batch](Batch::maintenance) takes no sequence: the newest commit's is returned, and no level but
    /// [`Level::Process`] is promised.
    ///
    /// # Errors
    /// [`Conflict`](EngineError::Conflict), [`TooLarge`](EngineError::TooLarge), [`NoSpace`](EngineError::NoSpace),
    /// [`ReadOnly`](EngineError::ReadOnly) and [`Closed`](EngineError::Closed): nothing was written.
    /// [`SyncFailed`](EngineError::SyncFailed): the batch is applied and seen, but may not survive a power cut.
    /// [`WriteFailed`](EngineError::WriteFailed): whether the batch survives is known after the next open.
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError>;

    /// Applies batches as the commits from `first` on, in order, each whole or not at all. Returns the number of the
    /// last one when `level` is reached.
    ///
    /// For commits that have their numbers before they are written. An engine over a network does it in one call, and
    /// may send it again: the numbers say what was applied already.
    ///
    /// # Errors
    /// [`Fenced`](EngineError::Fenced) if `first` is not the next number: nothing was written. Else as
    /// [`commit`](Self::commit); the batches before the one that failed are applied, and
    /// [`last_commit`](Self::last_commit) tells which.
    fn commit_run(
        &self,
        first: CommitSeq,
        batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        if let Some(failure) = self.failure() {
            return Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) });
        }
        let next = self.last_commit().next();
        if first != next {
            return Err(EngineError::Fenced { given: first, next });
        }
        for batch in batches {
            self.commit(batch, &[], Level::Process)?;
        }
        if level == Level::Power {
            self.sync()?;
        }
        Ok(self.last_commit())
    }

    /// The state after the newest commit, unmoved by later ones. Cheap to take; holding one keeps old rows alive.
    ///
    /// # Errors
    /// [`EngineError::Closed`], which a snapshot taken before the engine was closed answers too.
    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError>;

    /// Brings every commit made so far to [`Level::Power`]. Callers that come together share one sync.
    ///
    /// # Errors
    /// [`EngineError::SyncFailed`] for callers that waited on the sync that failed, [`EngineError::ReadOnly`] for all
    /// later ones: a sync is never tried again. [`EngineError::Closed`].
    fn sync(&self) -> Result<(), EngineError>;

    /// The newest commit, or [`CommitSeq::NONE`] before the first.
    fn last_commit(&self) -> CommitSeq;

    /// How many batches were applied since the engine was opened, maintenance batches included. Two reads with the same number
    /// before and after them saw one state, or two of which the second has one batch more than the first: a batch may be
    /// seen a moment before it is counted.
    fn batch_count(&self) -> u64;

    /// The newest commit known to have reached [`Level::Power`].
    fn last_synced(&self) -> CommitSeq;

    /// A copy of the engine as it is now in a new directory, which opens like the original.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if [`Caps::checkpoint`] is unset; [`EngineError::Io`] if the directory exists.
    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError>;

    /// Moves what is only in memory and log into sorted files, so that the next open is quick.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); [`EngineError::NoSpace`] and [`EngineError::WriteFailed`] if the files cannot be
    /// written, after which the engine takes no commits. Nothing is lost: the log still holds it.
    fn flush(&self) -> Result<(), EngineError>;

    /// Rewrites a range of a family without what was overwritten or deleted there. May take minutes. A family in which
    /// something is known to be damaged may be left as it is; whether it still is, is looked at first, for an empty range too.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::OpenedReadOnly`] and [`EngineError::Closed`].
    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError>;

    /// Flushes, syncs and refuses everything afterwards, except what is being read. A second call does nothing.
    ///
    /// The directory can be opened again once the value itself is dropped.
    ///
    /// # Errors
    /// As [`flush`](Self::flush); the engine is closed all the same.
    fn close(&self) -> Result<(), EngineError>;

    /// Why the engine takes no commits any more; `None` if it does, and if it never did.
    fn failure(&self) -> Option<Failure>;

    /// How to open again what this engine has open. To be called once the engine, its snapshots and its values are
    /// dropped, and again if it fails.
    fn reopening(&self) -> Reopen;

    /// What the system says is free where the engine writes; `None` if it cannot say. Asked by threads that must not wait,
    /// so an engine over a network does not ask its server.
    fn free_bytes(&self) -> Option<u64>;

    /// The size of the disk on which the engine writes; `None` if it is unknown.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// What the engine can do.
    fn caps(&self) -> Caps;

    /// How much the engine holds, by family. Costs no read of any row.
    ///
    /// # Errors
    /// [`EngineError::Closed`], and what the disk says.
    fn usage(&self) -> Result<Usage, EngineError>;
}
