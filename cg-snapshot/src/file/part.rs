//! A part of a file: bytes behind their lengths and a checksum, compressed.

use std::io::{Read, Seek, SeekFrom};

use cg_format::codec::{Codec, compress, decompress};
use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Limits, Problem, Section};

use crate::error::SnapshotError;

/// The bytes before the stored ones.
pub(super) const HEAD_LEN_BYTES: usize = 14;

/// Which part. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Names = 1,
    Index = 2,
    Entities = 3,
}

/// Bytes that are read from front to back, and where in the file they stand.
pub(super) struct Input<'t, R> {
    reader: R,
    offset_bytes: u64,
    trace: Option<&'t Trace>,
}

impl<'t, R: Read> Input<'t, R> {
    pub(super) const fn new(reader: R, trace: Option<&'t Trace>) -> Self {
        Self { reader, offset_bytes: 0, trace }
    }

    pub(super) const fn trace(&self) -> Option<&'t Trace> {
        self.trace
    }

    pub(super) const fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    pub(super) fn into_inner(self) -> R {
        self.reader
    }

    /// Reads so many bytes; memory grows with what is there, not with what is asked for.
    pub(super) fn read(
        &mut self,
        section: Section,
        field: &'static str,
        len_bytes: usize,
    ) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(len_bytes as u64).read_to_end(&mut bytes)?;
        if bytes.len() < len_bytes {
            let (needed, left) = (len_bytes as u64, bytes.len() as u64);
            let problem = Problem::Truncated { field, needed, left };
            return Err(DecodeError::new(section, self.offset_bytes, problem).into());
        }
        self.offset_bytes += len_bytes as u64;
        Ok(bytes)
    }

    /// Reads a part and decompresses it.
    pub(super) fn part(&mut self, kind: Kind, limits: &mut Limits) -> Result<Vec<u8>, SnapshotError> {
        let at = self.offset_bytes;
        let head = self.read(Section::SnapshotPart, "part head", HEAD_LEN_BYTES)?;
        let mut reader = Reader::at_offset(&head, at, Section::SnapshotPart).traced(self.trace);
        reader.expect_u8("part", kind as u8)?;
        let codec = read_codec(&mut reader, "codec")?;
        let here = reader.clone();
        let raw_len_bytes = reader.u32("raw len")?;
        limits.spend(Section::SnapshotPart, here.offset_bytes(), "a part", raw_len_bytes.into())?;
        let stored_len_bytes = reader.u32("stored len")?;
        let here = reader.clone();
        let found = reader.u32("checksum")?;
        let stored = self.read(Section::SnapshotPart, "stored", stored_len_bytes as usize)?;
        let (checked, _) = head.split_at(HEAD_LEN_BYTES - 4);
        let expected = crc32c::crc32c_append(crc32c::crc32c(checked), &stored);
        if found != expected {
            return Err(here.error(Problem::Checksum { found, expected }).into());
        }
        let mut raw = Vec::new();
        let error = |problem| DecodeError::new(Section::SnapshotPart, at, problem);
        decompress(codec, &stored, raw_len_bytes as usize, &mut raw).map_err(error)?;
        Ok(raw)
    }
}

impl<R: Read + Seek> Input<'_, R> {
    pub(super) fn seek(&mut self, offset_bytes: u64) -> Result<(), SnapshotError> {
        if self.offset_bytes != offset_bytes {
            self.reader.seek(SeekFrom::Start(offset_bytes))?;
            self.offset_bytes = offset_bytes;
        }
        Ok(())
    }
}

pub(super) fn read_codec(reader: &mut Reader<'_>, field: &'static str) -> Result<Codec, DecodeError> {
    let here = reader.clone();
    let found = reader.u8(field)?;
    Codec::from_byte(found)
        .ok_or_else(|| here.error(Problem::OutOfRange { field, found: found.into(), allowed: "0, 1 or 2" }))
}

/// Compresses bytes, unless they are smaller as they are.
pub(super) fn packed(codec: Codec, raw: &[u8]) -> (Codec, Vec<u8>) {
    let mut stored = Vec::new();
    compress(codec, raw, &mut stored);
    if stored.len() < raw.len() { (codec, stored) } else { (Codec::None, raw.to_vec()) }
}

/// A part as it is written; `None` if it is longer than its lengths can say.
pub(super) fn encode(kind: Kind, codec: Codec, raw: &[u8]) -> Option<Vec<u8>> {
    let raw_len_bytes = u32::try_from(raw.len()).ok()?;
    let (codec, stored) = packed(codec, raw);
    let mut out = Vec::with_capacity(HEAD_LEN_BYTES + stored.len());
    let mut writer = Writer::new(&mut out);
    writer.u8(kind as u8);
    writer.u8(codec.byte());
    writer.u32(raw_len_bytes);
    writer.u32(stored.len() as u32);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&out), &stored);
    let mut writer = Writer::new(&mut out);
    writer.u32(checksum);
    writer.bytes(&stored);
    Some(out)
}
