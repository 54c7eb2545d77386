//! What a commit returns: the value of the closure, and a ticket for its durability.

use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, Level};
use crate::rt::weak_world::WeakWorld;
use crate::storage::error::Error;

/// The result of a committed transaction: the value of the closure and the commit of its changes.
#[derive(Debug)]
pub struct Committed<T> {
    /// What the closure returned.
    pub value: T,
    /// The number of the commit; that of the last commit if nothing was changed.
    pub seq: CommitSeq,
    world: WeakWorld<CommitState>,
}

impl<T> Committed<T> {
    pub(crate) fn new(world: WeakWorld<CommitState>, value: T, seq: u64) -> Self {
        Self { value, seq: CommitSeq::new(seq), world }
    }

    /// A ticket that reports when the commit survives a killed process or a power cut.
    pub fn durable(&self) -> Durable {
        Durable { world: self.world.clone(), seq: self.seq.get() }
    }
}

/// A ticket of a commit. It reports or waits until the commit reaches the system or the disk. It needs no async runtime
/// and does not keep the world open.
#[derive(Debug, Clone)]
pub struct Durable {
    world: WeakWorld<CommitState>,
    seq: u64,
}

impl Durable {
    /// Whether the commit survives a power cut. Never blocks.
    pub fn is_durable(&self) -> bool {
        self.has_reached(Level::Power)
    }

    /// Whether the commit survives the event of a level. Never blocks.
    pub fn has_reached(&self, level: Level) -> bool {
        let reached = |world: &CommitState| {
            let [written, synced] = world.shared.slot.reached();
            match level {
                Level::Process => written.get(),
                Level::Power => synced.get(),
            }
        };
        self.world.with_world(reached).unwrap_or_else(|synced| synced) >= self.seq
    }

    /// Waits until the commit survives a power cut. Callers that wait together share one sync.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_for(Level::Power)
    }

    /// Waits until the commit survives the event of a level.
    ///
    /// # Errors
    /// [`Error::Engine`] if writing or syncing failed; the world is read-only from then on, and the commit may be lost.
    /// [`Error::Closed`] if the world is closed and closing could not save it.
    pub fn wait_for(&self, level: Level) -> Result<(), Error> {
        if self.has_reached(level) {
            return Ok(());
        }
        match self.world.with_world(|world| world.persist(self.seq, level, None)) {
            Ok(reached) => reached,
            // The world may have been closed since the first check.
            Err(synced) if synced >= self.seq => Ok(()),
            Err(_) => Err(Error::Closed),
        }
    }
}
