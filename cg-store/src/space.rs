//! Room on the disk: commits are refused before the engine runs out of it.
//!
//! An engine that meets a full disk takes no commit any more until the world is [resumed](crate::World::resume). So the world stops sooner, while
//! reads, deletions and what is queued still have room. Maintenance waits too: it moves chunks by writing them once more,
//! and what it deletes takes room until the engine has rewritten its files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::Engine;
use crate::error::Error;
use crate::world::Inner;

/// The system is asked again after so long.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Or after so much was committed.
const ASK_AFTER_BYTES: u64 = 16 << 20;

/// What is known of the room that is left.
#[derive(Debug)]
pub(crate) struct Space {
    min_free_bytes: u64,
    /// When the system was asked, and what it said; `None` if it cannot say.
    asked: Mutex<Option<(Instant, Option<u64>)>>,
    /// What was committed since.
    committed_bytes: AtomicU64,
}

impl Space {
    /// Demands that so much is left. 0 demands nothing.
    pub(crate) fn new(min_free_bytes: u64) -> Self {
        Self { min_free_bytes, asked: Mutex::default(), committed_bytes: AtomicU64::new(0) }
    }

    /// Whether there is room enough now. Asks the system.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if there is not.
    pub(crate) fn check_now<E: Engine>(&self, engine: &E) -> Result<(), Error> {
        *self.asked.lock() = None;
        self.check(engine, 0)
    }

    /// Whether another commit of so many bytes leaves room enough. Asks the system now and then.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if it does not.
    pub(crate) fn check<E: Engine>(&self, engine: &E, len_bytes: u64) -> Result<(), Error> {
        if self.min_free_bytes == 0 {
            return Ok(());
        }
        let mut asked = self.asked.lock();
        let committed = self.committed_bytes.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes;
        let fresh = asked.filter(|(when, _)| when.elapsed() < ASK_EVERY && committed < ASK_AFTER_BYTES);
        let free = if let Some((_, free)) = fresh {
            free.map(|free| free.saturating_sub(committed))
        } else {
            let free = engine.free_bytes();
            *asked = Some((Instant::now(), free));
            self.committed_bytes.store(len_bytes, Ordering::Relaxed);
            free.map(|free| free.saturating_sub(len_bytes))
        };
        let min_free_bytes = self.min_free_bytes;
        match free {
            Some(free_bytes) if free_bytes < min_free_bytes => {
                // The next commit asks again: room may be made any time.
                *asked = None;
                Err(Error::NoRoom { free_bytes, min_free_bytes })
            }
            _ => Ok(()),
        }
    }
}

impl<E: Engine> Inner<E> {
    /// Whether there is room for maintenance to write. Asks the system now and then.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if there is not.
    pub(crate) fn check_room(&self) -> Result<(), Error> {
        // Without an engine whoever wants to write says why.
        self.engine().map_or(Ok(()), |engine| self.space.check(&*engine, 0))
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
        let space = Space::new(600);
        assert!(space.check(&engine, 300).is_ok());
        let error = space.check(&engine, 300).unwrap_err();
        assert!(matches!(error, Error::NoRoom { free_bytes: 400, min_free_bytes: 600 }), "{error}");
        free.store(2000, Ordering::Relaxed);
        assert!(space.check(&engine, 300).is_ok());
        assert!(Space::new(0).check(&engine, u64::MAX).is_ok(), "nothing is demanded");
        assert!(Space::new(u64::MAX).check(&MemEngine::new(), 1).is_ok(), "nobody can say");
    }
}
