//! The right to write to an arena, and emptying it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use cg_format::overlay::ArenaRow;
use cg_store::Error;
use cg_store::layer::{Base, MutexGuard};

use super::arena::{Arena, put_next_lease};
use super::background::start_deferred;
use super::handle::Overlay;
use super::inside::{Inside, is_inside};
use super::pool::Pool;
use super::submitted::Done;

/// The right to write to an arena.
pub(super) struct Writing<'a, S: Base> {
    overlay: &'a Overlay<S>,
    _guard: MutexGuard<'a, ()>,
    _inside: Inside,
    /// Woken and dropped after the right is released.
    done: Done,
    _next: Next<'a, S>,
}

/// Starts what waits for the right, after its release.
struct Next<'a, S: Base> {
    pool: &'a Arc<Pool<S>>,
    arena: &'a Arc<Arena>,
}

impl<S: Base> Drop for Next<'_, S> {
    fn drop(&mut self) {
        start_deferred(self.pool, self.arena);
    }
}

/// The right to write to an arena, for a call that has no handle and runs no code of a host.
pub(super) struct Brief<'a, S: Base> {
    _guard: MutexGuard<'a, ()>,
    _next: Next<'a, S>,
}

impl<'a, S: Base> Brief<'a, S> {
    /// The right, if that does not have to wait.
    pub(super) fn try_take(pool: &'a Arc<Pool<S>>, arena: &'a Arc<Arena>) -> Option<Self> {
        let guard = arena.writing.try_lock()?;
        Some(Self { _guard: guard, _next: Next { pool, arena } })
    }
}

impl<S: Base> Drop for Writing<'_, S> {
    fn drop(&mut self) {
        *self.overlay.arena.writer.lock() = None;
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
    /// unchanged, but after [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed): it is empty, and may have its
    /// content again after a power cut.
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
        put_next_lease(&self.store().rows, self.arena.number, &next, before, || {
            *row = next.clone();
            self.arena.lease.store(lease, Ordering::Release);
            self.arena.merged_until.store(0, Ordering::Release);
            self.pool.arenas.note_expired();
            self.store().counts.resets.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Waits for the right to write, and writes what was submitted before.
    pub(super) fn write(&self) -> Result<Writing<'_, S>, Error> {
        self.refuse_nested()?;
        // What is submitted here from now on may come after something that is submitted to the base.
        let until = self.arena.submitted.newest();
        // Inside a closure nothing is written in order to read. What is written here may come after what waits below.
        if !is_inside() || until.is_some() {
            self.base().apply_submitted()?;
        }
        self.begin_writing(self.arena.writing.lock(), until)
    }

    /// As [`write`](Self::write). What was submitted to the base still waits.
    pub(super) fn write_above(&self) -> Result<Writing<'_, S>, Error> {
        self.refuse_nested()?;
        let until = self.arena.submitted.newest();
        self.begin_writing(self.arena.writing.lock(), until)
    }

    fn refuse_nested(&self) -> Result<(), Error> {
        let is_mine = *self.arena.writer.lock() == Some(thread::current().id());
        if is_mine { Err(Error::Nested) } else { Ok(()) }
    }

    /// As [`write`](Self::write), of what was submitted up to a batch. `None` if that has to wait. The caller has applied what
    /// was submitted to the base before that batch.
    pub(super) fn try_write(&self, until: Option<u64>) -> Option<Result<Writing<'_, S>, Error>> {
        self.arena.writing.try_lock().map(|guard| self.begin_writing(guard, until))
    }

    fn begin_writing<'a>(
        &'a self,
        guard: MutexGuard<'a, ()>,
        until: Option<u64>,
    ) -> Result<Writing<'a, S>, Error> {
        *self.arena.writer.lock() = Some(thread::current().id());
        let (inside, done) = (Inside::enter(), Done::default());
        let next = Next { pool: &self.pool, arena: &self.arena };
        let mut writing = Writing { overlay: self, _guard: guard, _inside: inside, done, _next: next };
        self.write_submitted(until, &mut writing.done)?;
        self.check()?;
        Ok(writing)
    }
}
