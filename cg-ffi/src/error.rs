//! Why a call failed: the result, and the `cg_error` of the caller.

use std::ffi::{c_char, c_int};
use std::fmt::Display;

use cg_format::ChunkAt;
use cg_store::ErrorKind;

use crate::types::{cg_error, cg_pos};

/// The results that are no errors.
pub const CG_OK: c_int = 0;
/// Nothing is stored there.
pub const CG_ABSENT: c_int = 1;
/// It would have to be read from the disk.
pub const CG_PENDING: c_int = 2;
/// Nothing was written, because nothing differs.
pub const CG_UNCHANGED: c_int = 3;

/// The results that are kinds of errors, in the order of the header: `-1`, `-2` and so on.
pub(crate) const KINDS: [ErrorKind; 14] = [
    ErrorKind::Damaged,
    ErrorKind::Conflict,
    ErrorKind::Busy,
    ErrorKind::LowDisk,
    ErrorKind::ReadOnly,
    ErrorKind::Fenced,
    ErrorKind::Unavailable,
    ErrorKind::InDoubt,
    ErrorKind::NotFound,
    ErrorKind::TooLarge,
    ErrorKind::Invalid,
    ErrorKind::Closed,
    ErrorKind::Unsupported,
    ErrorKind::Engine,
];

/// An error of the library itself.
pub const CG_INTERNAL: c_int = -15;

/// The most bytes of a message in a `cg_error`.
const MESSAGE_BYTES: usize = 1000;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) result: c_int,
    pub(crate) is_retryable: bool,
    pub(crate) place: Option<ChunkAt>,
    pub(crate) message: String,
}

/// The result of a kind of error.
pub(crate) fn result_of(kind: ErrorKind) -> c_int {
    let at = KINDS.iter().position(|known| *known == kind);
    at.map_or(CG_INTERNAL, |at| -(at as c_int) - 1)
}

/// The code of a result; empty for a number that is none.
pub(crate) fn code_of(result: c_int) -> &'static str {
    match result {
        CG_OK => "ok",
        CG_ABSENT => "absent",
        CG_PENDING => "pending",
        CG_UNCHANGED => "unchanged",
        CG_INTERNAL => "internal",
        error => {
            let at = usize::try_from(-i64::from(error) - 1).ok();
            at.and_then(|at| KINDS.get(at)).map_or("", |kind| kind.as_str())
        }
    }
}

impl Fault {
    /// An error of a kind, about no place, that stays.
    pub(crate) fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { result: result_of(kind), is_retryable: false, place: None, message: message.into() }
    }

    /// A call that contradicts itself or the header.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Invalid, message)
    }

    /// Something that is in use.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self { is_retryable: true, ..Self::of(ErrorKind::Busy, message) }
    }

    /// Something that was closed.
    pub(crate) fn closed(what: impl Display) -> Self {
        Self::of(ErrorKind::Closed, format!("{what} was closed"))
    }

    /// An error of the library itself.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { result: CG_INTERNAL, is_retryable: false, place: None, message: message.into() }
    }

    /// The same with a place, if it has none.
    pub(crate) fn at(self, place: Option<ChunkAt>) -> Self {
        Self { place: self.place.or(place), ..self }
    }

    /// Writes it to the caller's struct, at most as many bytes as that has.
    ///
    /// # Safety
    /// `error` is null or points to as many writable bytes as its first four say.
    pub(crate) unsafe fn write(&self, error: *mut cg_error) {
        if error.is_null() {
            return;
        }
        // SAFETY: each struct of this kind begins with its size, and no pointer is assumed to be aligned.
        let struct_size = unsafe { error.cast::<u32>().read_unaligned() };
        let writable = (struct_size as usize).min(size_of::<cg_error>());
        let room = writable.saturating_sub(std::mem::offset_of!(cg_error, message)).min(MESSAGE_BYTES);
        let shown = cut(&self.message, room);
        let chunk = self.place.map_or_else(cg_pos::default, |at| cg_pos {
            x: at.pos.x(),
            y: at.pos.y(),
            z: at.pos.z(),
        });
        let mut filled = cg_error {
            struct_size,
            kind: self.result,
            retryable: u32::from(self.is_retryable),
            has_place: u32::from(self.place.is_some()),
            dimension: self.place.map_or(0, |at| at.dimension.get() as u32),
            message_full_len: u32::try_from(self.message.len()).unwrap_or(u32::MAX),
            chunk,
            message_len: shown.len() as u32,
            message: [0; MESSAGE_BYTES],
        };
        for (place, byte) in filled.message.iter_mut().zip(shown.bytes()) {
            *place = byte as c_char;
        }
        // SAFETY: the caller's struct has that many bytes, and both are structs of bytes.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const filled).cast::<u8>(), error.cast::<u8>(), writable);
        }
    }

    /// Whether a `cg_error` has no room for the whole message.
    pub(crate) const fn is_cut(&self) -> bool {
        self.message.len() > MESSAGE_BYTES
    }
}

/// The longest part of a text that has at most this many bytes and ends at a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

impl From<cg_host::Error> for Fault {
    fn from(error: cg_host::Error) -> Self {
        let is_panic = matches!(error, cg_host::Error::Panicked(_));
        Self {
            result: if is_panic { CG_INTERNAL } else { result_of(error.kind()) },
            is_retryable: error.is_retryable(),
            place: error.place(),
            message: explained(&error),
        }
    }
}

impl From<cg_store::Error> for Fault {
    fn from(error: cg_store::Error) -> Self {
        Self {
            result: result_of(error.kind()),
            is_retryable: error.is_retryable(),
            place: None,
            message: explained(&error),
        }
    }
}

impl From<cg_format::chunk::EditError> for Fault {
    fn from(error: cg_format::chunk::EditError) -> Self {
        cg_store::Error::from(error).into()
    }
}

/// A message with those of its causes that it does not repeat.
fn explained(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(this) = cause {
        let text = this.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = this.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(cut("aäb", 4), "aäb");
        assert_eq!(cut("aäb", 3), "aä");
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(cut("aäb", 0), "");
    }

    #[test]
    fn each_kind_has_the_number_of_the_header() {
        let header = include_str!("../../hosts/c/include/cherrygrove.h");
        for (at, kind) in KINDS.iter().enumerate() {
            let line = format!("#define CG_{} (-{})", kind.as_str().to_uppercase(), at + 1);
            assert!(header.contains(&line), "{line}");
            assert_eq!(result_of(*kind), -(at as c_int) - 1);
            assert_eq!(code_of(result_of(*kind)), kind.as_str());
        }
        assert!(header.contains("#define CG_INTERNAL (-15)"));
        assert_eq!((code_of(4), code_of(-16), code_of(c_int::MIN)), ("", "", ""));
    }
}
