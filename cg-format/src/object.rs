//! A versioned object: bytes that a host stores under a key, and the number of their changes.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `format version`: 1 |
//! | 8 | 8 | `object version`: i64, from 0 |
//! | 16 | 1 | `state`: 1 = here, 2 = deleted |
//! | 17 | n | `bytes`, of an object that is here |
//!
//! A deleted object keeps its row, so that the version continues if it is written again. The key is not stored in the
//! value.

use alloc::vec::Vec;

use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Problem, Section};

/// The layout that this release writes, and the newest that it reads.
const FORMAT_VERSION: u64 = 1;
/// The value of `state` for an existing object.
const HERE: u8 = 1;
/// The value of `state` for a deleted object.
const DELETED: u8 = 2;

/// An object's stored value, borrowed.
///
/// ```
/// use cg_format::object::ObjectView;
/// let lights = ObjectView { version: 3, bytes: Some(b"dim") };
/// let mut stored = Vec::new();
/// lights.encode(&mut stored);
/// assert_eq!(ObjectView::decode(&stored)?, lights);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectView<'a> {
    /// The number of changes since the object was first written: 0 at first, never negative.
    pub version: i64,
    /// Its content; `None` if it was deleted with this version.
    pub bytes: Option<&'a [u8]>,
}

impl<'a> ObjectView<'a> {
    /// The length of the stored form of an object with this many bytes.
    pub const fn len_bytes(held_bytes: usize) -> usize {
        8 + 8 + 1 + held_bytes
    }

    /// Appends the stored form. Equal objects give equal bytes.
    ///
    /// # Panics
    /// For a negative version, which no reader accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        assert!(self.version >= 0, "versions count from 0");
        let mut writer = Writer::new(out);
        writer.u64(FORMAT_VERSION);
        writer.i64(self.version);
        match self.bytes {
            Some(bytes) => {
                writer.u8(HERE);
                writer.bytes(bytes);
            }
            None => writer.u8(DELETED),
        }
    }

    /// Reads the stored form. Copies and allocates nothing.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Object`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Object))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let result = ObjectView::read(Reader::new(bytes, Section::Object).traced(Some(&trace))).map(drop);
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        reader.version_u64("format version", FORMAT_VERSION)?;
        let here = reader.clone();
        let version = reader.i64("object version")?;
        if version < 0 {
            let (field, found) = ("object version", version.cast_unsigned());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 2^63 - 1" }));
        }
        let here = reader.clone();
        let bytes = match reader.u8("state")? {
            HERE => Some(reader.take("bytes", reader.left_bytes())?),
            DELETED => {
                reader.end("bytes after a deleted object")?;
                None
            }
            found => {
                let (field, found) = ("state", found.into());
                let allowed = "1 for here or 2 for deleted";
                return Err(here.error(Problem::OutOfRange { field, found, allowed }));
            }
        };
        Ok(Self { version, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated, golden};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    const LIGHTS: ObjectView<'static> = ObjectView { version: 258, bytes: Some(b"dim") };
    const GONE: ObjectView<'static> = ObjectView { version: i64::MAX, bytes: None };

    fn encoded(object: &ObjectView<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        object.encode(&mut out);
        out
    }

    #[track_caller]
    fn check_error(bytes: &[u8], expected: Expect) {
        expected.assert_eq(&ObjectView::decode(bytes).unwrap_err().to_string());
    }

    #[test]
    fn bytes_are_pinned() {
        for (name, object) in [("lights", LIGHTS), ("gone", GONE)] {
            let bytes = encoded(&object);
            golden(&format!("object/{name}"), &bytes, &format!("{object:#?}\n"));
            let (fields, read) = ObjectView::trace(&bytes);
            assert_eq!(read, Ok(()));
            assert_eq!(ObjectView::decode(&bytes), Ok(object));
            insta::assert_snapshot!(name, annotated(&bytes, &fields));
            assert_eq!(bytes.len(), ObjectView::len_bytes(object.bytes.map_or(0, <[u8]>::len)));
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = encoded(&LIGHTS);
            bytes[at] = byte;
            bytes
        };
        check_error(&[], expect!["object: format version needs 8 bytes and 0 are left (at byte 0)"]);
        check_error(
            &changed(0, 2),
            expect![
                "object: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
            ],
        );
        check_error(
            &changed(15, 0x80),
            expect!["object: object version is 9223372036854776066, allowed is 0 to 2^63 - 1 (at byte 8)"],
        );
        check_error(
            &changed(16, 0),
            expect!["object: state is 0, allowed is 1 for here or 2 for deleted (at byte 16)"],
        );
        check_error(
            &changed(16, 2),
            expect!["object: bytes after a deleted object must be zero or absent, found 3 (at byte 17)"],
        );
        check_error(
            &encoded(&LIGHTS)[..16],
            expect!["object: state needs 1 bytes and 0 are left (at byte 16)"],
        );
    }

    proptest! {
        #[test]
        fn objects_come_back(version in 0..=i64::MAX, bytes: Option<Vec<u8>>) {
            let object = ObjectView { version, bytes: bytes.as_deref() };
            let stored = encoded(&object);
            prop_assert_eq!(ObjectView::decode(&stored), Ok(object));
        }

        #[test]
        fn any_bytes_are_an_object_or_an_error(bytes: Vec<u8>) {
            if let Ok(object) = ObjectView::decode(&bytes) { prop_assert_eq!(encoded(&object), bytes); }
        }
    }
}
