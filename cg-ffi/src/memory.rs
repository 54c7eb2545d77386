//! Memory of the caller: read and written here, and checked first.
//!
//! No pointer is assumed to be aligned. What a pointer refers to is valid for as many bytes as the caller says; that alone
//! cannot be checked.

use std::marker::PhantomData;

use crate::error::Fault;
use crate::types::{Plain, Sized32};

/// The largest struct that a caller may have.
const MAX_STRUCT_BYTES: usize = 4096;
/// The bytes of `struct_size`.
const SIZE_BYTES: usize = size_of::<u32>();

/// A place of the caller for a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out<T: Plain>(*mut T);

/// A place of the caller for several values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutSlice<T: Plain> {
    first: *mut T,
    count: usize,
}

/// A struct of the caller that the library fills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutStruct<T: Sized32> {
    place: *mut T,
    writable: usize,
}

/// Values of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'c, T: Plain> {
    first: *const T,
    count: usize,
    call: PhantomData<&'c T>,
}

impl<T: Plain> Out<T> {
    /// The place, which may not be null.
    ///
    /// # Safety
    /// What is not null is valid for a write during the call.
    pub(crate) unsafe fn new(place: *mut T, what: &str) -> Result<Self, Fault> {
        if place.is_null() { Err(null(what)) } else { Ok(Self(place)) }
    }

    /// The place, or none if it is null.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub(crate) unsafe fn optional(place: *mut T) -> Option<Self> {
        (!place.is_null()).then_some(Self(place))
    }

    /// Writes the value.
    pub(crate) fn put(self, value: T) {
        // SAFETY: the caller says that the place is valid.
        unsafe { self.0.write_unaligned(value) }
    }
}

impl<T: Plain> OutSlice<T> {
    /// The places, which may be null if there are none.
    ///
    /// # Safety
    /// What is not null is valid for this many writes during the call.
    pub(crate) unsafe fn new(first: *mut T, count: usize, what: &str) -> Result<Self, Fault> {
        fits::<T>(first.is_null(), count, what)?;
        Ok(Self { first, count })
    }

    /// The number of places.
    pub(crate) const fn len(self) -> usize {
        self.count
    }

    /// Writes values from the first place on; those without a place are left out.
    pub(crate) fn put(self, values: impl IntoIterator<Item = T>) {
        for (at, value) in values.into_iter().take(self.count).enumerate() {
            // SAFETY: the caller says that this many places are valid.
            unsafe { self.first.add(at).write_unaligned(value) }
        }
    }
}

impl<T: Sized32> OutStruct<T> {
    /// The struct, whose size may be smaller or larger than ours.
    ///
    /// # Safety
    /// What is not null is valid for as many bytes as its first four say.
    pub(crate) unsafe fn new(place: *mut T, what: &str) -> Result<Self, Fault> {
        if place.is_null() {
            return Err(null(what));
        }
        // SAFETY: it begins with its size.
        let struct_size = unsafe { place.cast::<u32>().read_unaligned() } as usize;
        check_size::<T>(struct_size, what)?;
        Ok(Self { place, writable: struct_size.min(size_of::<T>()) })
    }

    /// Writes the value, except for its size, as far as the caller's struct goes.
    pub(crate) fn put(self, value: &T) {
        let from = std::ptr::from_ref(value).cast::<u8>();
        let count = self.writable.saturating_sub(SIZE_BYTES);
        // SAFETY: the caller says that this many bytes are valid; a value of ours has at least as many.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.add(SIZE_BYTES),
                self.place.cast::<u8>().add(SIZE_BYTES),
                count,
            );
        }
    }
}

impl<'c, T: Plain> Values<'c, T> {
    /// The values, whose pointer may be null if there are none.
    ///
    /// # Safety
    /// What is not null is valid for this many reads during `'c`.
    pub(crate) unsafe fn new(first: *const T, count: usize, what: &str) -> Result<Self, Fault> {
        fits::<T>(first.is_null(), count, what)?;
        Ok(Self { first, count, call: PhantomData })
    }

    /// The number of values.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The values, one after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + use<'c, T> {
        let first = self.first;
        // SAFETY: the caller says that this many values are valid.
        (0..self.count).map(move |at| unsafe { first.add(at).read_unaligned() })
    }
}

impl<'c> Values<'c, u8> {
    /// The bytes.
    pub(crate) const fn bytes(self) -> &'c [u8] {
        if self.count == 0 {
            return &[];
        }
        // SAFETY: the caller says that this many bytes are valid, and bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

/// A value of the caller.
///
/// # Safety
/// What is not null is valid for a read.
pub(crate) unsafe fn value<T: Plain>(place: *const T, what: &str) -> Result<T, Fault> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: it is not null.
    Ok(unsafe { place.read_unaligned() })
}

/// A struct of the caller: what an older one lacks is zero, and what a newer one adds must be.
///
/// # Safety
/// What is not null is valid for as many bytes as its first four say.
pub(crate) unsafe fn sized<T: Sized32>(place: *const T, what: &str) -> Result<T, Fault> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: it begins with its size.
    let struct_size = unsafe { place.cast::<u32>().read_unaligned() } as usize;
    check_size::<T>(struct_size, what)?;
    let ours = size_of::<T>();
    // SAFETY: this many bytes are valid, as the caller says.
    let rest = unsafe { Values::new(place.cast::<u8>(), struct_size, what) }?.bytes();
    if rest.get(ours..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)) {
        return Err(Fault::invalid(format!(
            "{what} is of a newer header: it has {struct_size} bytes, of which this release knows {ours}, and the rest is not zero"
        )));
    }
    // SAFETY: zeros are a value of such structs.
    let mut read: T = unsafe { std::mem::zeroed() };
    // SAFETY: no more bytes than either has, and any bytes are a value.
    unsafe {
        std::ptr::copy_nonoverlapping(
            place.cast::<u8>(),
            (&raw mut read).cast::<u8>(),
            struct_size.min(ours),
        );
    }
    Ok(read)
}

fn check_size<T: Sized32>(struct_size: usize, what: &str) -> Result<(), Fault> {
    let least = T::FIRST_BYTES;
    if (least..=MAX_STRUCT_BYTES).contains(&struct_size) {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "struct_size of {what} is {struct_size}; set it to the size of the struct, which is {least} to {MAX_STRUCT_BYTES}"
    )))
}

fn fits<T>(is_null: bool, count: usize, what: &str) -> Result<(), Fault> {
    if is_null && count > 0 {
        return Err(null(what));
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Fault::invalid(format!("{what} has a length of {count}, which no memory has")));
    }
    Ok(())
}

fn null(what: &str) -> Fault {
    Fault::invalid(format!("{what} is a null pointer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::cg_column_at;

    const AT: cg_column_at = cg_column_at { struct_size: 32, dimension: 7, x: 1, z: 2, min_y: 3, max_y: 4 };

    fn read(bytes: &[u8]) -> Result<cg_column_at, Fault> {
        // SAFETY: the tests give sizes that their bytes have.
        unsafe { sized(bytes.as_ptr().cast(), "at") }
    }

    fn of_size(struct_size: u32, rest: u8) -> Vec<u8> {
        let at = AT;
        let place = (&raw const at).cast::<u8>();
        let mut bytes = vec![0; 4097];
        // SAFETY: it has this many bytes.
        bytes[..32].copy_from_slice(unsafe { std::slice::from_raw_parts(place, 32) });
        bytes[..4].copy_from_slice(&struct_size.to_le_bytes());
        bytes[32] = rest;
        bytes
    }

    #[test]
    fn a_larger_struct_has_zeros_and_none_is_smaller_than_the_first() {
        assert_eq!(read(&of_size(32, 1)).expect("ours").max_y, 4);
        assert_eq!(read(&of_size(40, 0)).expect("newer").max_y, 4);
        assert!(read(&of_size(40, 1)).expect_err("newer").message.contains("the rest is not zero"));
        for size in [0, 3, 4, 31, 4097, u32::MAX] {
            assert!(read(&of_size(size, 0)).expect_err("none").message.contains("struct_size of at is"));
        }
    }

    /// A struct that has grown since version 1.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Grown {
        struct_size: u32,
        first: u32,
        second: u64,
    }

    // SAFETY: a struct of integers.
    unsafe impl Plain for Grown {}
    // SAFETY: its size comes first.
    unsafe impl Sized32 for Grown {
        const FIRST_BYTES: usize = 8;
    }

    #[test]
    fn a_struct_of_an_older_caller_gets_zeros_and_is_written_no_further() {
        let mut of_caller = [8_u32, 5, 6, 7];
        // SAFETY: it has as many bytes as it says.
        let grown: Grown = unsafe { sized(of_caller.as_ptr().cast(), "it") }.expect("older");
        assert_eq!((grown.struct_size, grown.first, grown.second), (8, 5, 0));
        // SAFETY: it has as many bytes as it says.
        let out = unsafe { OutStruct::new(of_caller.as_mut_ptr().cast(), "it") }.expect("older");
        out.put(&Grown { struct_size: 99, first: 1, second: u64::MAX });
        assert_eq!(of_caller, [8, 1, 6, 7]);
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        let some = [0_u64; 2];
        let values = |first: *const u64, count| {
            // SAFETY: what is valid has two values.
            unsafe { Values::new(first, count, "it") }.map(|values| values.iter().count())
        };
        assert_eq!(values(some.as_ptr(), 2), Ok(2));
        assert_eq!(values(std::ptr::null(), 0), Ok(0));
        assert!(values(std::ptr::null(), 1).expect_err("null").message.contains("null"));
        for count in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 + 1] {
            assert!(values(some.as_ptr(), count).expect_err("long").message.contains("no memory"), "{count}");
        }
    }
}
