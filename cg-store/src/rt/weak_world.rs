//! Weak references to a world, which keep it open only while it is used.
//!
//! **Invariant**: closing waits for uses that have begun, and none begins afterwards.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::rt::lock_order::{Condvar, Mutex, rank};

/// A reference to a world that does not keep it open.
pub(crate) struct WeakWorld<W> {
    inner: Weak<W>,
    uses: Arc<WorldUses>,
}

impl<W> WeakWorld<W> {
    pub(crate) fn new(world: &Weak<W>, uses: &Arc<WorldUses>) -> Self {
        Self { inner: Weak::clone(world), uses: Arc::clone(uses) }
    }

    /// Calls `see` with the world. If the world is gone, returns the last commit that was synced before.
    pub(crate) fn with_world<T>(&self, see: impl FnOnce(&W) -> T) -> Result<T, u64> {
        let _until_it_is_dropped = self.uses.begin()?;
        let inner = self.inner.upgrade().expect("a world is not dropped while it is visited");
        Ok(see(&inner))
    }
}

impl<W> Clone for WeakWorld<W> {
    fn clone(&self) -> Self {
        Self { inner: Weak::clone(&self.inner), uses: Arc::clone(&self.uses) }
    }
}

impl<W> fmt::Debug for WeakWorld<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakWorld").finish_non_exhaustive()
    }
}

/// The current uses of a world.
#[derive(Debug, Default)]
pub(crate) struct WorldUses {
    state: Mutex<State, rank::WorldUses>,
    none: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Set when the world is gone: the last commit that was synced.
    ended_at: Option<u64>,
}

impl WorldUses {
    fn begin(&self) -> Result<WorldUse<'_>, u64> {
        let mut state = self.state.lock();
        if let Some(synced) = state.ended_at {
            return Err(synced);
        }
        state.under_way += 1;
        Ok(WorldUse(self))
    }

    /// Waits for the current uses and lets none begin afterwards.
    pub(crate) fn end(&self, synced: u64) {
        let mut state = self.state.lock();
        self.none.wait_while(&mut state, |state| state.under_way > 0);
        state.ended_at = Some(synced);
    }
}

/// One use, which ends when the value is dropped.
struct WorldUse<'v>(&'v WorldUses);

impl Drop for WorldUse<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            self.0.none.notify_all();
        }
    }
}
