//! A commit that is too large for one batch: its rows in parts, and the intent that commits them.
//!
//! An intent, after its frame:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 1 | `intent version`: 1 |
//! | 1 | 4 | `part count` |
//! | 5 | 8 | `parts length`: bytes of all parts together, without their frames |
//! | 13 | 4 | `parts checksum`: CRC-32C over the parts, one after the other, without their frames |
//!
//! A part, after its frame, is `part version` (u8, 1) and then one operation after the other to the end:
//!
//! | width | field |
//! |---|---|
//! | 1 | `operation`: 1 put, 2 delete, 3 delete a range |
//! | 1 | `space`: of the row, as in its checksum |
//! | 4 | `key length` |
//! | … | `key` |
//! | 4 | put: `row length`; delete a range: `end length` |
//! | … | put: `row`, its frame included; delete a range: `end`, the first key after the range |
//!
//! A part without an intent is not committed.

use alloc::vec::Vec;

use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Problem, Section, Space};

const INTENT_VERSION: u8 = 1;
const PART_VERSION: u8 = 1;
const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;

/// The commit point of a commit in parts: the number, length and checksum of the parts.
///
/// ```
/// use cg_format::staged::Intent;
/// let mut intent = Intent::default();
/// intent.add(b"one part");
/// let mut stored = Vec::new();
/// intent.encode(&mut stored);
/// assert_eq!(Intent::decode(&stored)?, intent);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intent {
    /// The number of parts. Parts are numbered from 0.
    pub part_count: u32,
    /// The length of all parts together, without their frames.
    pub len_bytes: u64,
    /// CRC-32C over all parts in order, without their frames.
    pub checksum: u32,
}

impl Intent {
    /// Adds the next part to the counts and the checksum. `part` has no frame.
    pub fn add(&mut self, part: &[u8]) {
        self.part_count += 1;
        self.len_bytes += part.len() as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, part);
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(INTENT_VERSION);
        writer.u32(self.part_count);
        writer.u64(self.len_bytes);
        writer.u32(self.checksum);
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Intent`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Intent))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let read = Self::read(Reader::new(bytes, Section::Intent).traced(Some(&trace))).map(drop);
        (trace.into_inner(), read)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        reader.version_u8("intent version", INTENT_VERSION)?;
        let part_count = reader.u32("part count")?;
        let len_bytes = reader.u64("parts length")?;
        let checksum = reader.u32("parts checksum")?;
        reader.end("bytes after the intent")?;
        Ok(Self { part_count, len_bytes, checksum })
    }
}

/// One operation of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StagedOp<'a> {
    /// A row is written.
    Put {
        /// The space of the row.
        space: Space,
        /// Its key.
        key: &'a [u8],
        /// The complete row, including its frame.
        row: &'a [u8],
    },
    /// A row is removed.
    Delete {
        /// The space of the row.
        space: Space,
        /// Its key.
        key: &'a [u8],
    },
    /// All rows of a family in a range of keys are removed.
    DeleteRange {
        /// A space of the family.
        space: Space,
        /// The first key.
        from: &'a [u8],
        /// The first key after the range.
        to: &'a [u8],
    },
}

impl StagedOp<'_> {
    /// The length of the stored form.
    pub const fn len_bytes(&self) -> usize {
        match self {
            Self::Put { key, row, .. } => 2 + 4 + key.len() + 4 + row.len(),
            Self::Delete { key, .. } => 2 + 4 + key.len(),
            Self::DeleteRange { from, to, .. } => 2 + 4 + from.len() + 4 + to.len(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        match self {
            Self::Put { space, key, row } => {
                writer.u8(PUT);
                writer.u8(space.byte());
                sized(&mut writer, key);
                sized(&mut writer, row);
            }
            Self::Delete { space, key } => {
                writer.u8(DELETE);
                writer.u8(space.byte());
                sized(&mut writer, key);
            }
            Self::DeleteRange { space, from, to } => {
                writer.u8(DELETE_RANGE);
                writer.u8(space.byte());
                sized(&mut writer, from);
                sized(&mut writer, to);
            }
        }
    }
}

/// A part that is being built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartWriter {
    bytes: Vec<u8>,
}

impl PartWriter {
    /// The length of a part without operations.
    pub const EMPTY_LEN_BYTES: usize = 1;

    /// A part without operations.
    pub fn new() -> Self {
        Self { bytes: Vec::from([PART_VERSION]) }
    }

    /// Adds an operation after the others.
    ///
    /// # Panics
    /// For a key or a row of 4 GiB or more, which no engine accepts.
    pub fn add(&mut self, op: &StagedOp<'_>) {
        op.encode(&mut self.bytes);
    }

    /// Adds the operations of another part after the others.
    pub fn append(&mut self, other: Self) {
        self.bytes.extend(other.bytes.into_iter().skip(Self::EMPTY_LEN_BYTES));
    }

    /// Whether there is no operation.
    pub const fn is_empty(&self) -> bool {
        self.bytes.len() <= Self::EMPTY_LEN_BYTES
    }

    /// The length so far.
    pub const fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that are stored after the frame.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Default for PartWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a part in order. Ends after the first invalid one. Copies and allocates nothing.
#[derive(Debug, Clone)]
pub struct StagedOps<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> StagedOps<'a> {
    /// Begins to read a part.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Intent`] for another version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Intent))
    }

    /// Explains a part: the fields up to its end or to the first error.
    pub fn trace(bytes: &'a [u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let read = StagedOps::read(Reader::new(bytes, Section::Intent).traced(Some(&trace)))
            .and_then(|mut ops| ops.try_for_each(|op| op.map(drop)));
        (trace.into_inner(), read)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        reader.version_u8("part version", PART_VERSION)?;
        Ok(Self { reader, failed: false })
    }

    fn op(&mut self) -> Result<StagedOp<'a>, DecodeError> {
        let reader = &mut self.reader;
        let here = reader.clone();
        let operation = reader.u8("operation")?;
        let of_space = reader.clone();
        let byte = reader.u8("space")?;
        let space = Space::from_byte(byte).ok_or_else(|| {
            let (field, found) = ("space", byte.into());
            of_space.error(Problem::OutOfRange { field, found, allowed: "1 to 19" })
        })?;
        let len_bytes = reader.u32("key length")?;
        let key = reader.take("key", len_bytes as usize)?;
        match operation {
            PUT => {
                let len_bytes = reader.u32("row length")?;
                Ok(StagedOp::Put { space, key, row: reader.take("row", len_bytes as usize)? })
            }
            DELETE => Ok(StagedOp::Delete { space, key }),
            DELETE_RANGE => {
                let len_bytes = reader.u32("end length")?;
                Ok(StagedOp::DeleteRange { space, from: key, to: reader.take("end", len_bytes as usize)? })
            }
            found => {
                let (field, found) = ("operation", found.into());
                Err(here.error(Problem::OutOfRange { field, found, allowed: "1 to 3" }))
            }
        }
    }
}

impl<'a> Iterator for StagedOps<'a> {
    type Item = Result<StagedOp<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.left_bytes() == 0 {
            return None;
        }
        let op = self.op();
        self.failed = op.is_err();
        Some(op)
    }
}

fn sized(writer: &mut Writer<'_>, bytes: &[u8]) {
    writer.u32(u32::try_from(bytes.len()).expect("no engine takes a row of 4 GiB"));
    writer.bytes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated, golden};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;

    const OPS: [StagedOp<'static>; 3] = [
        StagedOp::Put { space: Space::Object, key: b"lights", row: b"a row" },
        StagedOp::Delete { space: Space::Entity, key: &[7; 16] },
        StagedOp::DeleteRange { space: Space::ChunkDelta, from: b"a", to: b"b" },
    ];

    fn part(ops: &[StagedOp<'_>]) -> Vec<u8> {
        let mut part = PartWriter::new();
        let mut len_bytes = PartWriter::EMPTY_LEN_BYTES;
        for op in ops {
            let mut one = PartWriter::new();
            one.add(op);
            part.append(one);
            len_bytes += op.len_bytes();
        }
        assert_eq!((part.len_bytes(), part.is_empty()), (len_bytes, ops.is_empty()));
        part.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Vec<StagedOp<'_>>, DecodeError> {
        StagedOps::new(bytes)?.collect()
    }

    #[track_caller]
    fn check_error<T: core::fmt::Debug>(read: Result<T, DecodeError>, expected: Expect) {
        expected.assert_eq(&read.unwrap_err().to_string());
    }

    #[test]
    fn bytes_are_pinned() {
        let bytes = part(&OPS);
        golden("intent/part", &bytes, &format!("{OPS:#?}\n"));
        let (fields, traced) = StagedOps::trace(&bytes);
        assert_eq!(traced, Ok(()));
        insta::assert_snapshot!("part", annotated(&bytes, &fields));
        let mut intent = Intent::default();
        intent.add(&bytes);
        let mut stored = Vec::new();
        intent.encode(&mut stored);
        golden("intent/intent", &stored, &format!("{intent:#?}\n"));
        let (fields, traced) = Intent::trace(&stored);
        assert_eq!(traced, Ok(()));
        insta::assert_snapshot!("intent", annotated(&stored, &fields));
    }

    #[test]
    fn what_is_refused_is_named() {
        let mut stored = Vec::new();
        Intent::default().encode(&mut stored);
        check_error(
            Intent::decode(&stored[..3]),
            expect!["intent: part count needs 4 bytes and 2 are left (at byte 1)"],
        );
        stored.push(9);
        check_error(
            Intent::decode(&stored),
            expect!["intent: bytes after the intent must be zero or absent, found 1 (at byte 17)"],
        );
        let changed = |at: usize, byte: u8| {
            let mut bytes = part(&OPS);
            bytes[at] = byte;
            bytes
        };
        check_error(read(&[]), expect!["intent: part version needs 1 bytes and 0 are left (at byte 0)"]);
        check_error(
            read(&changed(0, 2)),
            expect![
                "intent: part version is 2, and this release reads up to 1; use a newer release (at byte 0)"
            ],
        );
        check_error(read(&changed(1, 4)), expect!["intent: operation is 4, allowed is 1 to 3 (at byte 1)"]);
        check_error(read(&changed(2, 20)), expect!["intent: space is 20, allowed is 1 to 19 (at byte 2)"]);
        check_error(
            read(&changed(6, 200)),
            expect!["intent: key needs 3355443206 bytes and 49 are left (at byte 7)"],
        );
    }

    proptest! {
        #[test]
        fn parts_come_back(rows: Vec<(bool, Vec<u8>, Vec<u8>)>) {
            let op = |(is_put, key, row): &(bool, Vec<u8>, Vec<u8>)| match is_put {
                true => part(&[StagedOp::Put { space: Space::Record, key, row }]),
                false => part(&[StagedOp::DeleteRange { space: Space::Record, from: key, to: row }]),
            };
            for row in &rows {
                let bytes = op(row);
                prop_assert_eq!(part(&read(&bytes).unwrap()), bytes);
            }
        }

        #[test]
        fn any_bytes_are_a_part_or_an_error(mut bytes: Vec<u8>) {
            if let Some(version) = bytes.first_mut() { *version = PART_VERSION; }
            if let Ok(ops) = read(&bytes) { prop_assert_eq!(part(&ops), bytes); }
        }

        #[test]
        fn any_bytes_are_an_intent_or_an_error(bytes: Vec<u8>) {
            if let Ok(intent) = Intent::decode(&bytes) {
                let mut again = Vec::new();
                intent.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
