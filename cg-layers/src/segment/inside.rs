//! The closures of hosts that keep segments open.
//!
//! A call that transfers entities or deletes a segment waits for calls that keep segments open. Inside a closure that
//! keeps one open, it would wait for its own thread, or for one that waits for it. So it is refused.

use std::cell::RefCell;

use cg_store::Error;
use cg_store::layer::host;

use super::open::OpenSegments;

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

/// Runs a closure of the host that keeps a segment of a world open. The world is known by its address.
fn inside<T>(world: usize, run: impl FnOnce() -> T) -> T {
    let _inside = Inside::enter(world);
    host(run)
}

/// # Errors
/// [`Error::Nested`] inside such a closure.
fn refuse_inside(world: usize) -> Result<(), Error> {
    if INSIDE.with_borrow(|inside| inside.contains(&world)) { Err(Error::Nested) } else { Ok(()) }
}

/// Closures of the host that keep a segment open.
impl<H> OpenSegments<H> {
    /// Runs one.
    pub(super) fn inside<T>(&self, run: impl FnOnce() -> T) -> T {
        inside(self.address(), run)
    }

    /// # Errors
    /// [`Error::Nested`] inside one.
    pub(super) fn refuse_inside(&self) -> Result<(), Error> {
        refuse_inside(self.address())
    }

    /// It is in one place as long as it lives.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
