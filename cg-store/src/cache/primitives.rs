//! What epochs are built from.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

/// A lock around nothing but what its holder does.
#[derive(Debug)]
pub(super) struct Mutex(parking_lot::Mutex<()>);

pub(super) type MutexGuard<'l> = parking_lot::MutexGuard<'l, ()>;

impl Mutex {
    pub(super) const fn new() -> Self {
        Self(parking_lot::Mutex::new(()))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_> {
        self.0.lock()
    }
}
