//! Free disk space: commits are refused before the engine runs out of it.
//!
//! An engine that finds a full disk takes no commits until the world is [resumed](crate::World::resume). So the world
//! refuses commits earlier, while there is still room for reads, deletions and queued commits.
//!
//! Ticks then move nothing either. A move writes the chunks again, and the rows that it deletes take room until the
//! engine has compacted its files. Demoting a whole world compacts what it moved. So it continues until only a part of
//! the reserved room is free.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::commit::state::CommitState;
use crate::engine::Engine;
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;

/// The operating system is asked again after this time.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Or after this many bytes were committed.
const ASK_AFTER_BYTES: u64 = 16 << 20;

/// The part of the disk that stays free if the host sets no limit: one part in this number.
const PART_OF_DISK: u64 = 20;
/// At most this many bytes stay free if the host sets no limit.
const MOST_BYTES: u64 = 1 << 30;
/// Work that makes a world smaller may use the reserved room down to one part in this number.
const PART_FOR_SHRINKING: u64 = 4;

/// What a commit does with the room that is to stay free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// It leaves it: the commit is refused if there is no other room.
    Leaves,
    /// It may use it: its caller was promised the commit, or others are only whole with it.
    Uses,
}

/// The last known free space.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    /// The limit that the host set. `None`: in proportion to the disk.
    min_free_bytes: Option<u64>,
    /// The last report of the operating system.
    asked: Mutex<Option<Asked>, rank::DiskGuard>,
    /// The bytes that were committed since the operating system was asked.
    committed_bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    when: Instant,
    /// `None` if the operating system cannot report it.
    free_bytes: Option<u64>,
    min_free_bytes: u64,
}

impl DiskGuard {
    /// Creates a guard that keeps this many bytes free. `Some(0)` keeps nothing free, `None` a part of the disk.
    pub(crate) fn new(min_free_bytes: Option<u64>) -> Self {
        Self { min_free_bytes, asked: Mutex::default(), committed_bytes: AtomicU64::new(0) }
    }

    /// Checks that there is enough room now. Asks the operating system.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_now(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.ask_again();
        self.check(engine, 0)
    }

    /// Checks that another commit of `len_bytes` leaves enough room. Asks the operating system from time to time.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if it does not.
    pub(crate) fn check(&self, engine: &dyn Engine, len_bytes: u64) -> Result<(), Error> {
        self.check_part(engine, len_bytes, 1)
    }

    /// Checks that there is enough room for work that makes the world smaller, but needs room before it frees any. Asks
    /// the operating system from time to time.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_to_shrink(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.check_part(engine, 0, PART_FOR_SHRINKING)
    }

    /// Forgets the last report of the operating system.
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
                // The next commit asks again, because space may be freed at any time.
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
    /// Checks that there is room for a commit of at most `max_bytes`, if it puts anything. Returns the size of the
    /// largest batch; a commit that may be larger is staged.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(super) fn room_for(&self, max_bytes: u64, is_put: bool) -> Result<u64, Error> {
        let limit_bytes = self.shared.batch_limit()?;
        if is_put {
            // A staged commit is written twice.
            let written_bytes = if max_bytes > limit_bytes { 2 * max_bytes } else { max_bytes };
            self.disk_guard.check(&*self.shared.engine()?, written_bytes)?;
        }
        Ok(limit_bytes)
    }

    /// Checks that there is room for maintenance to write. Asks the operating system from time to time.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is not.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        // Without an engine the write itself reports the cause.
        self.shared.engine().map_or(Ok(()), |engine| self.disk_guard.check(&*engine, 0))
    }

    /// Checks that there is room for work that makes the world smaller. Asks the operating system from time to time.
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
