//! The locks of epochs.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

use crate::rt::lock_order::{self, rank};

/// The lock of the change in progress.
pub(super) type ChangeLock = lock_order::Mutex<(), rank::EpochChange>;

/// The lock of a few places.
pub(super) type PlaceLock = lock_order::Mutex<(), rank::EpochPlace>;

pub(super) type LockGuard<'l> = lock_order::MutexGuard<'l, ()>;
