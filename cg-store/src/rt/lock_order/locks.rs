//! The locks: `parking_lot`'s, each with a rank in its type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use super::{Held, Ranked};

/// A mutex of a rank.
pub struct Mutex<T, R> {
    lock: parking_lot::Mutex<T>,
    rank: PhantomData<R>,
}

/// A locked [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'l, T> {
    guard: parking_lot::MutexGuard<'l, T>,
    held: Held,
}

/// A reader-writer lock of a rank.
pub struct RwLock<T, R> {
    lock: parking_lot::RwLock<T>,
    rank: PhantomData<R>,
}

/// A [`RwLock`] that is held for reading.
#[derive(Debug)]
pub struct RwLockReadGuard<'l, T> {
    guard: parking_lot::RwLockReadGuard<'l, T>,
    held: Held,
}

/// A part of the value of a [`RwLock`] that is held for reading.
#[derive(Debug)]
pub(crate) struct MappedRwLockReadGuard<'l, T: ?Sized> {
    guard: parking_lot::MappedRwLockReadGuard<'l, T>,
    _held: Held,
}

/// A [`RwLock`] that is held for writing.
#[derive(Debug)]
pub struct RwLockWriteGuard<'l, T> {
    guard: parking_lot::RwLockWriteGuard<'l, T>,
    _held: Held,
}

/// A condition variable of a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl<T, R: Ranked> Mutex<T, R> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: parking_lot::Mutex::new(value), rank: PhantomData }
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        Held::check(R::RANK, R::IS_LAYERED);
        let guard = self.lock.lock();
        MutexGuard { guard, held: Held::take(Some(R::RANK)) }
    }

    /// Takes the lock if that does not need to wait.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = self.lock.try_lock()?;
        Some(MutexGuard { guard, held: Held::take(Some(R::RANK)) })
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

/// Whether writers wait without a deadline, and at another rank than readers.
const fn waits_apart_to_write<R: Ranked>() -> bool {
    match R::WRITE {
        Some(write) => write as u8 != R::RANK as u8,
        None => false,
    }
}

impl<T, R: Ranked> RwLock<T, R> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: parking_lot::RwLock::new(value), rank: PhantomData }
    }

    /// Waits to read.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        const { assert!(!waits_apart_to_write::<R>(), "such a lock is read with `read_recursive`") };
        Held::check(R::RANK, R::IS_LAYERED);
        let guard = self.lock.read();
        RwLockReadGuard { guard, held: Held::take(R::WRITE) }
    }

    /// Waits for a writer that holds the lock, but not for a waiting writer.
    #[inline]
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        Held::check(R::RANK, R::IS_LAYERED);
        let guard = self.lock.read_recursive();
        RwLockReadGuard { guard, held: Held::take(R::WRITE) }
    }

    /// Reads if that needs no waiting.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let guard = self.lock.try_read()?;
        Some(RwLockReadGuard { guard, held: Held::take(R::WRITE) })
    }

    /// Waits to write.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        const { assert!(R::WRITE.is_some(), "writers of this lock have a deadline") };
        Held::check(R::WRITE.unwrap_or(R::RANK), R::IS_LAYERED);
        let guard = self.lock.write();
        RwLockWriteGuard { guard, _held: Held::take(Some(R::WRITTEN)) }
    }

    /// Writes if that needs no waiting.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let guard = self.lock.try_write()?;
        Some(RwLockWriteGuard { guard, _held: Held::take(Some(R::WRITTEN)) })
    }

    /// Waits at most until the deadline, so the order is not checked.
    #[inline]
    pub fn try_write_until(&self, deadline: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        let guard = self.lock.try_write_until(deadline)?;
        Some(RwLockWriteGuard { guard, _held: Held::take(Some(R::WRITTEN)) })
    }
}

impl<'l, T> RwLockReadGuard<'l, T> {
    /// Maps the guard to a part of the value, if `part` returns one.
    #[inline]
    pub(crate) fn try_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<MappedRwLockReadGuard<'l, U>, Self> {
        let Self { guard, held } = this;
        match parking_lot::RwLockReadGuard::try_map(guard, part) {
            Ok(guard) => Ok(MappedRwLockReadGuard { guard, _held: held }),
            Err(guard) => Err(Self { guard, held }),
        }
    }
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.held.check_again();
        self.0.wait(&mut guard.guard);
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, at_most: Duration) {
        guard.held.check_again();
        self.0.wait_for(&mut guard.guard, at_most);
    }

    /// Waits as long as something is so.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, is_so: impl FnMut(&mut T) -> bool) {
        guard.held.check_again();
        self.0.wait_while(&mut guard.guard, is_so);
    }

    pub(crate) fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        is_so: impl FnMut(&mut T) -> bool,
        at_most: Duration,
    ) {
        guard.held.check_again();
        self.0.wait_while_for(&mut guard.guard, is_so, at_most);
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl<T: Default, R> Default for Mutex<T, R> {
    fn default() -> Self {
        Self { lock: parking_lot::Mutex::default(), rank: PhantomData }
    }
}

impl<T: Default, R> Default for RwLock<T, R> {
    fn default() -> Self {
        Self { lock: parking_lot::RwLock::default(), rank: PhantomData }
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

impl<T: fmt::Debug, R> fmt::Debug for RwLock<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

/// Implements access to the values of guards.
macro_rules! guards {
    ($($guard:ident $(, $mutable:ident)?;)+) => {
        $(
            impl<T> Deref for $guard<'_, T> {
                type Target = T;

                #[inline]
                fn deref(&self) -> &T {
                    &self.guard
                }
            }

            $(
                impl<T> $mutable for $guard<'_, T> {
                    #[inline]
                    fn deref_mut(&mut self) -> &mut T {
                        &mut self.guard
                    }
                }
            )?
        )+
    };
}

impl<T: ?Sized> Deref for MappedRwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

guards! {
    MutexGuard, DerefMut;
    RwLockReadGuard;
    RwLockWriteGuard, DerefMut;
}

// Without assertions a lock and its guards are as large as `parking_lot`'s, and have nothing else to drop.
#[cfg(not(debug_assertions))]
const _: () = {
    use super::rank::Commit;

    assert!(size_of::<Mutex<u64, Commit>>() == size_of::<parking_lot::Mutex<u64>>());
    assert!(size_of::<RwLock<u64, Commit>>() == size_of::<parking_lot::RwLock<u64>>());
    assert!(size_of::<MutexGuard<'_, u64>>() == size_of::<parking_lot::MutexGuard<'_, u64>>());
    assert!(size_of::<RwLockReadGuard<'_, u64>>() == size_of::<parking_lot::RwLockReadGuard<'_, u64>>());
    assert!(size_of::<RwLockWriteGuard<'_, u64>>() == size_of::<parking_lot::RwLockWriteGuard<'_, u64>>());
    assert!(size_of::<Held>() == 0 && !std::mem::needs_drop::<Held>());
};
