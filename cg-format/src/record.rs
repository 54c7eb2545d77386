//! A spatial record: data that a host stores at a point of the world, outside the chunks.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `format version`: 1 |
//! | 8 | 44 | `position dimension`, `block x`, `block y`, `block z`, 3 × f32 `fraction x`… |
//! | 52 | 8 | `timestamp`: i64 |
//! | 60 | 1 | `kind len` |
//! | 61 | n | `kind`: UTF-8 |
//! | … | n | `payload` |
//!
//! The record's UUID and the path to its leaf are its key and are not stored in its value.

use alloc::string::String;
use alloc::vec::Vec;

use crate::entity::{EntityPos, TooLong, check_len};
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Problem, Section};

/// The layout that this release writes, and the newest that it reads.
const FORMAT_VERSION: u64 = 1;

/// The data of a host at a point of the world.
///
/// ```
/// use cg_format::entity::EntityPos;
/// use cg_format::record::{Record, RecordView};
/// use cg_format::Dimension;
/// let position = EntityPos::from_f64(Dimension::new(0), [-0.5, 64.0, 20.25])?;
/// let sign = Record::new(position, "game:sign", 1_700_000_000, b"keep out".to_vec())?;
/// let mut stored = Vec::new();
/// sign.encode(&mut stored);
/// assert_eq!(RecordView::decode(&stored)?.to_record(), sign);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its position.
    pub position: EntityPos,
    /// The time when it was created or changed, in the host's unit.
    pub timestamp: i64,
    /// Its content.
    pub payload: Vec<u8>,
    kind: String,
}

/// A record's stored value, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its position.
    pub position: EntityPos,
    /// The time when it was created or changed, in the host's unit.
    pub timestamp: i64,
    /// Its kind.
    pub kind: &'a str,
    /// Its content.
    pub payload: &'a [u8],
}

impl Record {
    /// A record of a kind, which is any text of at most 255 bytes.
    ///
    /// # Errors
    /// [`TooLong`] for a longer kind.
    pub fn new(
        position: EntityPos,
        kind: impl Into<String>,
        timestamp: i64,
        payload: Vec<u8>,
    ) -> Result<Self, TooLong> {
        let kind = kind.into();
        check_len("the kind of a record", kind.len() as u64, u8::MAX.into())?;
        Ok(Self { position, timestamp, payload, kind })
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The same record at another position.
    #[must_use]
    pub fn moved_to(self, position: EntityPos) -> Self {
        Self { position, ..self }
    }

    /// The record, borrowed.
    pub fn view(&self) -> RecordView<'_> {
        let Self { position, timestamp, payload, kind } = self;
        RecordView { position: *position, timestamp: *timestamp, kind, payload }
    }

    /// The length of the stored form.
    pub fn len_bytes(&self) -> usize {
        self.view().len_bytes()
    }

    /// Appends the stored form. Equal records give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u64(FORMAT_VERSION);
        self.position.write(&mut writer);
        writer.i64(self.timestamp);
        writer.u8(self.kind.len() as u8);
        writer.bytes(self.kind.as_bytes());
        writer.bytes(&self.payload);
    }
}

impl<'a> RecordView<'a> {
    /// The record, copied.
    pub fn to_record(&self) -> Record {
        let Self { position, timestamp, kind, payload } = *self;
        Record { position, timestamp, payload: payload.into(), kind: kind.into() }
    }

    /// The length of the stored form.
    pub const fn len_bytes(&self) -> usize {
        8 + 44 + 8 + 1 + self.kind.len() + self.payload.len()
    }

    /// Reads the stored form. Copies and allocates nothing.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::SpatialRecord`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::SpatialRecord))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let result =
            RecordView::read(Reader::new(bytes, Section::SpatialRecord).traced(Some(&trace))).map(drop);
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        reader.version_u64("format version", FORMAT_VERSION)?;
        let position = EntityPos::read(&mut reader)?;
        let timestamp = reader.i64("timestamp")?;
        let len_bytes = reader.u8("kind len")?;
        let at = reader.offset_bytes();
        let text = reader.take("kind", len_bytes.into())?;
        let kind = core::str::from_utf8(text).map_err(|error| {
            let valid = error.valid_up_to();
            let found = text.get(valid).copied().unwrap_or_default();
            let problem = Problem::NotUtf8 { field: "kind", found };
            DecodeError::new(Section::SpatialRecord, at + valid as u64, problem)
        })?;
        let payload = reader.take("payload", reader.left_bytes())?;
        Ok(Self { position, timestamp, kind, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated, golden};
    use crate::{BlockPos, Dimension};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    fn sign() -> Record {
        let position = EntityPos::new(Dimension::new(1), BlockPos::new(-1, 64, 20), [0.5, 0.0, 0.25]);
        Record::new(position.unwrap(), "game:sign", -258, b"keep out".to_vec()).unwrap()
    }

    /// The smallest record, at the most distant position.
    fn bare() -> Record {
        let block = BlockPos::new(i64::MIN, i64::MAX, 0);
        let position = EntityPos::new(Dimension::new(0), block, [0.0, 1.0_f32.next_down(), 0.0]).unwrap();
        Record::new(position, "", i64::MAX, Vec::new()).unwrap()
    }

    fn encoded(record: &Record) -> Vec<u8> {
        let mut out = Vec::new();
        record.encode(&mut out);
        out
    }

    #[track_caller]
    fn check_changed(at: usize, byte: u8, expected: Expect) {
        let mut bytes = encoded(&sign());
        bytes[at] = byte;
        expected.assert_eq(&RecordView::decode(&bytes).unwrap_err().to_string());
    }

    #[test]
    fn bytes_are_pinned() {
        for (name, record) in [("sign", sign()), ("bare", bare())] {
            let bytes = encoded(&record);
            golden(&format!("record/{name}"), &bytes, &format!("{record:#?}\n"));
            let (fields, read) = RecordView::trace(&bytes);
            assert_eq!(read, Ok(()));
            assert_eq!(RecordView::decode(&bytes), Ok(record.view()));
            insta::assert_snapshot!(name, annotated(&bytes, &fields));
            assert_eq!(bytes.len(), record.len_bytes());
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        check_changed(0, 0, expect!["spatial record: format version is 0, allowed is 1 and up (at byte 0)"]);
        check_changed(
            0,
            2,
            expect![
                "spatial record: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
            ],
        );
        check_changed(
            43,
            0xbf,
            expect!["spatial record: fraction x is -0.5, allowed is 0.0 to below 1.0 (at byte 40)"],
        );
        check_changed(60, 200, expect!["spatial record: kind needs 200 bytes and 17 are left (at byte 61)"]);
        check_changed(63, 0xff, expect!["spatial record: kind is not UTF-8 from byte 0xff on (at byte 63)"]);
        let short = encoded(&sign());
        expect!["spatial record: timestamp needs 8 bytes and 7 are left (at byte 52)"]
            .assert_eq(&RecordView::decode(&short[..59]).unwrap_err().to_string());
        let long = Record::new(sign().position, "k".repeat(256), 0, Vec::new()).unwrap_err();
        expect!["the kind of a record has 256 bytes, at most 255 can be stored"].assert_eq(&long.to_string());
    }

    proptest! {
        #[test]
        fn records_come_back(x: i64, timestamp: i64, kind in ".{0,60}", payload: Vec<u8>) {
            let position = EntityPos::new(Dimension::new(3), BlockPos::new(x, -x.max(-9), 7), [0.25; 3]).unwrap();
            let record = Record::new(position, kind, timestamp, payload).unwrap();
            let stored = encoded(&record);
            prop_assert_eq!(RecordView::decode(&stored), Ok(record.view()));
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..90), good: bool) {
            let mut stored = encoded(&sign());
            if good { stored.truncate(61); stored.extend(&bytes); } else { stored = bytes; }
            if let Ok(record) = RecordView::decode(&stored) {
                prop_assert_eq!(encoded(&record.to_record()), stored);
            }
        }
    }
}
