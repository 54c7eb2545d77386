//! The right to write to an arena, and emptying it.

use std::sync::atomic::Ordering;
use std::thread;

use cg_format::overlay::ArenaRow;
use cg_store::Error;
use cg_store::layer::{Base, MutexGuard};

use super::arena::{Arena, put_next_lease};
use super::handle::Overlay;

/// The right to write to an arena.
pub(super) struct Writing<'a> {
    arena: &'a Arena,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        *self.arena.writer.lock() = None;
    }
}

impl<S: Base> Overlay<S> {
    /// Discards everything that was written in the overlay. One put, regardless of how much that is.
    ///
    /// The discarded rows stay in the engine until they are [swept](crate::Arenas::sweep), as each
    /// [tick](crate::Arenas::tick) does. Waits for a running
    /// transaction.
    ///
    /// # Errors
    /// [`Error::Nested`] inside a transaction of the same overlay, and the errors of the engine. The overlay is then
    /// unchanged.
    pub fn reset(&self) -> Result<(), Error> {
        let _alone = self.write()?;
        self.empty()
    }

    /// As [`reset`](Self::reset). The caller holds the right to write.
    pub(super) fn empty(&self) -> Result<(), Error> {
        let before = self.lease();
        let lease = self.pool.arenas.give_lease(&self.arena);
        let mut row = self.arena.row.lock();
        let next = ArenaRow { lease, ..row.clone() };
        put_next_lease(&self.store().rows, self.arena.number, &next, before)?;
        *row = next;
        self.arena.lease.store(lease, Ordering::Release);
        self.arena.merged_until.store(0, Ordering::Release);
        self.pool.arenas.note_expired();
        self.store().counts.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for the right to write.
    pub(super) fn write(&self) -> Result<Writing<'_>, Error> {
        let me = thread::current().id();
        if *self.arena.writer.lock() == Some(me) {
            return Err(Error::Nested);
        }
        let guard = self.arena.writing.lock();
        *self.arena.writer.lock() = Some(me);
        let writing = Writing { arena: &self.arena, _guard: guard };
        self.check()?;
        Ok(writing)
    }
}
