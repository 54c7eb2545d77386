//! Structs that may say that they are larger than they are.

use cherrygrove::*;

/// A struct with room after it, so that it may say that it is larger.
#[repr(C)]
pub(super) struct Padded<T: Copy> {
    value: T,
    pub(super) rest: [u64; 640],
}

impl<T: Copy> Padded<T> {
    pub(super) const fn of(value: T) -> Self {
        Self { value, rest: [0; 640] }
    }

    pub(super) const fn pointer(&self) -> *const T {
        (&raw const *self).cast()
    }

    pub(super) const fn pointer_mut(&mut self) -> *mut T {
        (&raw mut *self).cast()
    }

    pub(super) const fn value(&self) -> &T {
        &self.value
    }
}

/// A place for an error, or none.
pub(super) struct ErrorPlace(pub(super) Option<Box<Padded<cg_error>>>);

impl ErrorPlace {
    pub(super) fn pointer(&mut self) -> *mut cg_error {
        self.0.as_mut().map_or(std::ptr::null_mut(), |error| error.pointer_mut())
    }

    pub(super) fn message(&self) -> String {
        let Some(error) = &self.0 else { return String::new() };
        let shown = error.value().message.iter().take(error.value().message_len as usize);
        String::from_utf8_lossy(&shown.map(|byte| *byte as u8).collect::<Vec<_>>()).into_owned()
    }
}

/// A `cg_error` of full size.
pub(super) fn whole_error() -> cg_error {
    // SAFETY: zeros are an error.
    let mut error: cg_error = unsafe { std::mem::zeroed() };
    error.struct_size = size_of::<cg_error>() as u32;
    error
}
