//! Room on the disk: commits are refused before the engine runs out of it.
//!
//! An engine that meets a full disk takes no commit any more until the world is [resumed](crate::World::resume). So the world stops sooner, while
//! reads, deletions and what is queued still have room. Ticks move nothing then either: they move chunks by writing them once
//! more, and what they delete takes room until the engine has rewritten its files. Settling a world, which compacts what it
//! moved, goes on down to a part of that room.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::commit::state::CommitState;
use crate::engine::Engine;
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;

/// The system is asked again after so long.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Or after so much was committed.
const ASK_AFTER_BYTES: u64 = 16 << 20;

/// Without a demand of the host's, so much of the disk is to stay free: one part of so many.
const PART_OF_DISK: u64 = 20;
/// But no more than this.
const MOST_BYTES: u64 = 1 << 30;
/// What makes a world smaller goes on down to one part of so many of what is to stay free.
const PART_FOR_SHRINKING: u64 = 4;

/// What is known of the room that is left.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    /// What the host demands; `None`: in proportion to the disk.
    min_free_bytes: Option<u64>,
    /// What the system said.
    asked: Mutex<Option<Asked>, rank::DiskGuard>,
    /// What was committed since.
    committed_bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    when: Instant,
    /// `None` if the system cannot say.
    free_bytes: Option<u64>,
    min_free_bytes: u64,
}

impl DiskGuard {
    /// Demands that so much is left. `Some(0)` demands nothing, `None` in proportion to the disk.
    pub(crate) fn new(min_free_bytes: Option<u64>) -> Self {
        Self { min_free_bytes, asked: Mutex::default(), committed_bytes: AtomicU64::new(0) }
    }

    /// Whether there is room enough now. Asks the system.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_now(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.ask_again();
        self.check(engine, 0)
    }

    /// Whether another commit of so many bytes leaves room enough. Asks the system now and then.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if it does not.
    pub(crate) fn check(&self, engine: &dyn Engine, len_bytes: u64) -> Result<(), Error> {
        self.check_part(engine, len_bytes, 1)
    }

    /// Whether there is room enough for what makes the world smaller, but takes room before it gives any back. Asks the
    /// system now and then.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_to_shrink(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.check_part(engine, 0, PART_FOR_SHRINKING)
    }

    /// Forgets what the system said.
    pub(crate) fn ask_again(&self) {
        *self.asked.lock() = None;
    }

    fn check_part(&self, engine: &dyn Engine, len_bytes: u64, one_of: u64) -> Result<(), Error> {
        if self.min_free_bytes == Some(0) {
            return Ok(());
        }
        let mut asked = self.asked.lock();
        let committed = self.committed_bytes.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes;
        let fresh = asked.filter(|asked| asked.when.elapsed() < ASK_EVERY && committed < ASK_AFTER_BYTES);
        let (said, taken_bytes) = fresh.map_or_else(
            || {
                self.committed_bytes.store(len_bytes, Ordering::Relaxed);
                (self.ask(engine), len_bytes)
            },
            |said| (said, committed),
        );
        *asked = Some(said);
        let min_free_bytes = said.min_free_bytes / one_of;
        match said.free_bytes.map(|free| free.saturating_sub(taken_bytes)) {
            Some(free_bytes) if free_bytes < min_free_bytes => {
                // The next commit asks again: room may be made any time.
                *asked = None;
                Err(Error::LowDiskSpace { free_bytes, min_free_bytes })
            }
            _ => Ok(()),
        }
    }

    fn ask(&self, engine: &dyn Engine) -> Asked {
        let of_disk = || {
            let part = engine.disk_bytes().map(|bytes| bytes / PART_OF_DISK);
            part.unwrap_or(MOST_BYTES).min(MOST_BYTES)
        };
        Asked {
            when: Instant::now(),
            free_bytes: engine.free_bytes(),
            min_free_bytes: self.min_free_bytes.unwrap_or_else(of_disk),
        }
    }
}

impl CommitState {
    /// Whether there is room for maintenance to write. Asks the system now and then.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        // Without an engine whoever wants to write says why.
        self.shared.engine().map_or(Ok(()), |engine| self.disk_guard.check(&*engine, 0))
    }

    /// Whether there is room for what makes the world smaller. Asks the system now and then.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_room_to_shrink(&self) -> Result<(), Error> {
        self.shared.engine().map_or(Ok(()), |engine| self.disk_guard.check_to_shrink(&*engine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MemEngine;
    use std::sync::Arc;

    #[test]
    fn what_was_committed_since_counts_and_room_that_was_made_is_found() {
        let free = Arc::new(AtomicU64::new(1000));
        let engine = MemEngine::new().with_free_bytes({
            let free = Arc::clone(&free);
            move || free.load(Ordering::Relaxed)
        });
        let space = DiskGuard::new(Some(600));
        assert!(space.check(&engine, 300).is_ok());
        let error = space.check(&engine, 300).unwrap_err();
        assert!(matches!(error, Error::LowDiskSpace { free_bytes: 400, min_free_bytes: 600 }), "{error}");
        free.store(2000, Ordering::Relaxed);
        assert!(space.check(&engine, 300).is_ok());
        assert!(DiskGuard::new(Some(0)).check(&engine, u64::MAX).is_ok(), "nothing is demanded");
        assert!(DiskGuard::new(Some(u64::MAX)).check(&MemEngine::new(), 1).is_ok(), "nobody can say");
    }
}
