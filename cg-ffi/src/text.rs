//! Texts and bytes of the caller, and those that the library lends.

use std::ffi::c_int;

use cg_registry::{Name, NameError};

use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Held, Kind, Object};
use crate::memory::{Out, Values};
use crate::types::{cg_bytes, cg_error, cg_handle, cg_str};

/// What a pointer to no bytes points to: null means that there are none.
static NOTHING: [u8; 1] = [0];

/// A text or bytes that a handle holds.
#[derive(Debug)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// Of a text or bytes.
    pub(crate) fn of(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl Object for Text {}

impl Held for Text {
    const KIND: Kind = Kind::Text;
}

/// The bytes of a text. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_bytes_of(text: cg_handle, out: *mut cg_bytes, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_bytes_of", error, || {
            let out = Out::new(out, "out")?;
            out.put(cg_bytes::NONE);
            let text = handle::find::<Text>(text)?;
            out.put(lend(&text.0));
            Ok(CG_OK)
        })
    }
}

/// The bytes that a caller gave.
///
/// # Safety
/// What is not null is valid for this many reads during `'c`.
pub(crate) unsafe fn bytes<'c>(given: cg_bytes, what: &str) -> Result<&'c [u8], Fault> {
    // SAFETY: as the caller says.
    Ok(unsafe { Values::new(given.ptr, given.len, what) }?.bytes())
}

/// The bytes that a caller gave, or none if the pointer is null.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn optional<'c>(given: cg_bytes, what: &str) -> Result<Option<&'c [u8]>, Fault> {
    // SAFETY: as the caller says.
    let bytes = unsafe { bytes(given, what) }?;
    Ok((!given.ptr.is_null()).then_some(bytes))
}

/// The text that a caller gave.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'c>(given: cg_str, what: &str) -> Result<&'c str, Fault> {
    let given = cg_bytes { ptr: given.ptr.cast(), len: given.len };
    // SAFETY: as the caller says.
    let bytes = unsafe { bytes(given, what) }?;
    str::from_utf8(bytes)
        .map_err(|error| Fault::invalid(format!("{what} is no UTF-8 at byte {}", error.valid_up_to())))
}

/// The name that a caller gave. Keys of a state may come in any order.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn name(given: cg_str, what: &str) -> Result<Name, Fault> {
    // SAFETY: as the caller says.
    let text = unsafe { text(given, what) }?;
    parse(text).map_err(|error| Fault::invalid(format!("{what}: `{}` is no name: {error}", shown(text))))
}

/// A name whose keys of a state may come in any order.
pub(crate) fn parse(text: &str) -> Result<Name, NameError> {
    let first = Name::new(text);
    let Err(NameError::StateOrder { .. }) = first else { return first };
    let state = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let Some((base, state)) = state else { return first };
    let pairs: Option<Vec<_>> = state.split(',').map(|pair| pair.split_once('=')).collect();
    pairs.map_or(first, |pairs| Name::with_state(base, pairs))
}

/// As much of a text as an error shows.
pub(crate) fn shown(text: &str) -> String {
    let part: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() { part + "…" } else { part }
}

/// Bytes that are lent. The pointer is never null.
pub(crate) const fn lend(bytes: &[u8]) -> cg_bytes {
    let ptr = if bytes.is_empty() { NOTHING.as_ptr() } else { bytes.as_ptr() };
    cg_bytes { ptr, len: bytes.len() }
}

/// A text that is lent. The pointer is never null.
pub(crate) const fn lend_text(text: &str) -> cg_str {
    let cg_bytes { ptr, len } = lend(text.as_bytes());
    cg_str { ptr: ptr.cast(), len }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_states_may_come_in_any_order() {
        let name = |text| parse(text).map(|name| name.as_str().to_owned());
        assert_eq!(name("a:b[x=1,y=2]").as_deref(), Ok("a:b[x=1,y=2]"));
        assert_eq!(name("a:b[y=2,x=1]").as_deref(), Ok("a:b[x=1,y=2]"));
        assert!(matches!(name("a:b[x=1,x=2]"), Err(NameError::StateOrder { .. })));
        assert!(name("a:b[y=2,x=1").is_err() && name("a").is_err() && name("").is_err());
    }

    #[test]
    fn what_is_lent_is_never_null() {
        assert!(!lend(&[]).ptr.is_null());
        assert_eq!((lend(&[]).len, lend(&[1, 2]).len, lend_text("").len), (0, 2, 0));
    }
}
