//! Things that a caller sees as a struct of the header, lent until the handle is released.

use std::sync::Arc;

use super::Held;
use crate::error::Fault;
use crate::memory::Out;
use crate::types::cg_handle;

/// Something that holds a struct of the header, and what that points to.
pub(crate) trait Lent: Held {
    /// The struct.
    type View: 'static;

    /// The struct. Its pointers are valid as long as this is.
    fn view(&self) -> &Self::View;
}

/// Gives something a handle, and lends its struct.
pub(crate) fn give_lent<T: Lent>(value: T) -> Result<(cg_handle, *const T::View), Fault> {
    let value = Arc::new(value);
    // The value stays where it is as long as anything has it.
    let view = std::ptr::from_ref(value.view());
    Ok((super::give_shared(value)?, view))
}

/// The places of a caller for a handle and for the struct that is lent with it.
#[derive(Debug)]
pub(crate) struct OutLent<V: 'static> {
    handle: Out<cg_handle>,
    view: Out<*const V>,
}

impl<V: 'static> OutLent<V> {
    /// The places, which may not be null. Empties both.
    ///
    /// # Safety
    /// What is not null is valid for a write during the call.
    pub(crate) unsafe fn new(handle: *mut cg_handle, view: *mut *const V) -> Result<Self, Fault> {
        // SAFETY: as the caller says.
        let (handle, view) = unsafe { (Out::new(handle, "out"), Out::new(view, "view")) };
        if let Ok(handle) = &handle {
            handle.put(0);
        }
        if let Ok(view) = &view {
            view.put(std::ptr::null());
        }
        Ok(Self { handle: handle?, view: view? })
    }

    /// Gives something a handle, and lends its struct.
    pub(crate) fn put<T: Lent<View = V>>(self, value: T) -> Result<(), Fault> {
        let (handle, view) = give_lent(value)?;
        self.handle.put(handle);
        self.view.put(view);
        Ok(())
    }
}
