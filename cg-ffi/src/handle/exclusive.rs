//! Things that one thread uses at a time.

use parking_lot::{Mutex, MutexGuard};

use crate::error::Fault;

/// A value that one call uses at a time; a second one at once is refused.
#[derive(Debug, Default)]
pub(crate) struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// The value, for this call.
    pub(crate) fn enter(&self, what: &str) -> Result<MutexGuard<'_, T>, Fault> {
        self.0.try_lock().ok_or_else(|| {
            Fault::busy(format!("the {what} is used by another thread; it belongs to one at a time"))
        })
    }
}
