//! The threads that have the right to change an overlay.

use std::cell::Cell;

thread_local! {
    /// How many rights to change overlays this thread has.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// This thread has the right to change an overlay, until this is dropped.
pub(super) struct Inside;

impl Inside {
    pub(super) fn enter() -> Self {
        INSIDE.set(INSIDE.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(INSIDE.get() - 1);
    }
}

/// Whether this thread has the right to change any overlay: it reads without waiting for another.
pub(super) fn is_inside() -> bool {
    INSIDE.get() > 0
}
