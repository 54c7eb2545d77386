//! The frame around a part: kind, lengths, and a checksum that continues the one before.

use alloc::vec::Vec;

use crate::codec::{Codec, Effort, compress, decompress};
use crate::wire::{Reader, Trace, Writer};
use crate::{DecodeError, Limits, Problem, Section};

/// The bytes before the stored bytes.
pub(super) const HEAD_LEN_BYTES: usize = 14;

/// The kind of a part. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Head = 1,
    Rows = 2,
    End = 3,
    Root = 4,
    Segment = 5,
    Bytes = 6,
}

/// The kinds that a part may have in its place, and these in words.
pub(super) type Allowed = (&'static [Kind], &'static str);

/// The content of an archive, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Parts before the end, the head among them.
    pub part_count: u64,
    /// Rows.
    pub row_count: u64,
    /// Bytes of their keys and frames.
    pub row_bytes: u64,
    /// The length of the archive.
    pub len_bytes: u64,
}

/// What is before the stored bytes of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartHead {
    pub(super) kind: Kind,
    codec: Codec,
    raw_len_bytes: usize,
    pub(super) stored_len_bytes: usize,
    pub(super) checksum: u32,
    /// Where the part begins.
    at: u64,
    /// The checksum over its first ten bytes, after the part before it.
    begun: u32,
}

impl PartHead {
    /// Reads the frame of a part that begins at an offset, after a part with the checksum `before`. Charges the part's
    /// memory.
    pub(super) fn read(
        head: &[u8],
        (at, before): (u64, u32),
        (kinds, allowed): Allowed,
        limits: &mut Limits,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::at_offset(head, at, Section::ArchivePart).traced(trace);
        let here = reader.clone();
        let found = reader.u8("part")?;
        let kind =
            kinds.iter().copied().find(|kind| *kind as u8 == found).ok_or_else(|| {
                here.error(Problem::OutOfRange { field: "part", found: found.into(), allowed })
            })?;
        let here = reader.clone();
        let found = reader.u8("codec")?;
        let codec = Codec::from_byte(found).ok_or_else(|| {
            here.error(Problem::OutOfRange { field: "codec", found: found.into(), allowed: "0, 1 or 2" })
        })?;
        let here = reader.clone();
        let raw_len_bytes = reader.u32("raw len")?;
        limits.spend(Section::ArchivePart, here.offset_bytes(), "a part", raw_len_bytes.into())?;
        let here = reader.clone();
        let stored_len_bytes = reader.u32("stored len")?;
        // A writer stores no part that grew, so a reader needs no memory for one.
        if stored_len_bytes > raw_len_bytes {
            let (field, found) = ("stored len", stored_len_bytes.into());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "at most the raw len" }));
        }
        let checksum = reader.u32("checksum")?;
        let summed = head.split_at_checked(HEAD_LEN_BYTES - 4).map_or(head, |(summed, _)| summed);
        let begun = crc32c::crc32c_append(before, summed);
        let (raw_len_bytes, stored_len_bytes) = (raw_len_bytes as usize, stored_len_bytes as usize);
        Ok(Self { kind, codec, raw_len_bytes, stored_len_bytes, checksum, at, begun })
    }

    /// The decompressed bytes of the part.
    pub(super) fn open(&self, stored: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let expected = crc32c::crc32c_append(self.begun, stored);
        if self.checksum != expected {
            let problem = Problem::Checksum { found: self.checksum, expected };
            let at = self.at + HEAD_LEN_BYTES as u64 - 4;
            return Err(DecodeError::new(Section::ArchivePart, at, problem));
        }
        let mut raw = Vec::new();
        decompress(self.codec, stored, self.raw_len_bytes, &mut raw)
            .map_err(|problem| DecodeError::new(Section::ArchivePart, self.at, problem))?;
        Ok(raw)
    }
}

/// Appends a part. Returns its checksum, which continues `before`; `None` if it is too long for its length fields.
pub(super) fn write(kind: Kind, codec: Codec, raw: &[u8], before: u32, out: &mut Vec<u8>) -> Option<u32> {
    let raw_len_bytes = u32::try_from(raw.len()).ok()?;
    let mut compressed = Vec::new();
    compress(codec, Effort::Fast, raw, &mut compressed);
    let is_smaller = compressed.len() < raw.len();
    let (codec, stored) = if is_smaller { (codec, &compressed[..]) } else { (Codec::None, raw) };
    let mut head = Vec::with_capacity(HEAD_LEN_BYTES);
    let mut writer = Writer::new(&mut head);
    writer.u8(kind as u8);
    writer.u8(codec.byte());
    writer.u32(raw_len_bytes);
    writer.u32(stored.len() as u32);
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(before, &head), stored);
    Writer::new(&mut head).u32(checksum);
    out.extend_from_slice(&head);
    out.extend_from_slice(stored);
    Some(checksum)
}

impl Totals {
    pub(super) fn encode_end(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        for number in [self.part_count, self.row_count, self.row_bytes] {
            writer.u64(number);
        }
        out
    }

    /// Checks the end against what was read before it.
    pub(super) fn check_end(&self, raw: &[u8], trace: Option<&Trace>) -> Result<(), DecodeError> {
        let expected = [("parts", self.part_count), ("rows", self.row_count), ("row bytes", self.row_bytes)];
        check_numbers(expected, raw, trace)
    }
}

/// Checks the numbers of an end against what was read before it.
pub(super) fn check_numbers(
    expected: [(&'static str, u64); 3],
    raw: &[u8],
    trace: Option<&Trace>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(raw, Section::ArchiveEnd).traced(trace);
    for (field, expected) in expected {
        let here = reader.clone();
        let found = reader.u64(field)?;
        if found != expected {
            return Err(here.error(Problem::Disagrees { field, found, expected }));
        }
    }
    reader.end("bytes after the numbers")
}
