//! The segmented worlds in which a thread runs a closure that keeps a segment open.
//!
//! A call that transfers entities or deletes a segment waits for calls that keep segments open. Inside such a closure
//! it would wait for its own thread, or for one that waits for it. So it is refused.

use std::cell::RefCell;
use std::sync::Arc;

use cg_store::Error;
use cg_store::layer::host;

use super::{SegmentHome, SegmentedWorld};

thread_local! {
    /// The worlds whose closures this thread runs, outermost first.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A closure runs until this is dropped.
struct Inside;

impl Inside {
    fn enter(world: usize) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(world));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.truncate(inside.len().saturating_sub(1)));
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Runs a closure of the host that keeps a segment open.
    pub(super) fn inside<T>(&self, run: impl FnOnce() -> T) -> T {
        let _inside = Inside::enter(self.address());
        host(run)
    }

    /// # Errors
    /// [`Error::Nested`] inside such a closure.
    pub(super) fn refuse_inside(&self) -> Result<(), Error> {
        let world = self.address();
        if INSIDE.with_borrow(|inside| inside.contains(&world)) { Err(Error::Nested) } else { Ok(()) }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }
}
