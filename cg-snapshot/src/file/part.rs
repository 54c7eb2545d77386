//! A part of a file: compressed bytes after their lengths and a checksum. Snapshots and packs consist of parts.

use std::io::{Read, Seek, SeekFrom};

use cg_format::codec::{Codec, Effort, compress, decompress};
use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Limits, Problem, Section};

use crate::error::SnapshotError;

/// The bytes before the stored bytes.
pub(crate) const HEAD_LEN_BYTES: usize = 14;

/// The value of an unknown place in the file.
const NOWHERE: u64 = u64::MAX;

/// The kind of a part. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Names = 1,
    Index = 2,
    Entities = 3,
}

/// Bytes that are read from front to back, with their offset in the file.
pub(crate) struct Input<'t, R> {
    reader: R,
    offset_bytes: u64,
    trace: Option<&'t Trace>,
}

impl<'t, R: Read> Input<'t, R> {
    pub(crate) const fn new(reader: R, trace: Option<&'t Trace>) -> Self {
        Self { reader, offset_bytes: 0, trace }
    }

    pub(crate) const fn trace(&self) -> Option<&'t Trace> {
        self.trace
    }

    pub(crate) const fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    pub(crate) fn into_inner(self) -> R {
        self.reader
    }

    /// Reads this many bytes. Memory grows with the bytes that exist, not with the requested length.
    pub(crate) fn read(
        &mut self,
        section: Section,
        field: &'static str,
        len_bytes: usize,
    ) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        // After an error the reader's position is unknown: a caller that continues must seek.
        let at = std::mem::replace(&mut self.offset_bytes, NOWHERE);
        self.reader.by_ref().take(len_bytes as u64).read_to_end(&mut bytes)?;
        let (needed, left) = (len_bytes as u64, bytes.len() as u64);
        self.offset_bytes = at.saturating_add(left);
        if left < needed {
            return Err(DecodeError::new(section, at, Problem::Truncated { field, needed, left }).into());
        }
        Ok(bytes)
    }

    /// Reads a part and decompresses it.
    pub(crate) fn part(&mut self, kind: Kind, limits: &mut Limits) -> Result<Vec<u8>, SnapshotError> {
        let kind = |reader: &mut Reader<'_>| reader.expect_u8("part", kind as u8);
        Ok(self.part_of(Section::SnapshotPart, limits, kind)?.raw)
    }

    /// Reads a part whose first byte gives its kind, and decompresses it.
    pub(crate) fn part_of<K>(
        &mut self,
        section: Section,
        limits: &mut Limits,
        kind: impl FnOnce(&mut Reader<'_>) -> Result<K, DecodeError>,
    ) -> Result<Part<K>, SnapshotError> {
        let at = self.offset_bytes;
        let head = self.read(section, "part head", HEAD_LEN_BYTES)?;
        let mut reader = Reader::at_offset(&head, at, section).traced(self.trace);
        let kind = kind(&mut reader)?;
        let codec = read_codec(&mut reader, "codec")?;
        let here = reader.clone();
        let raw_len_bytes = reader.u32("raw len")?;
        limits.spend(section, here.offset_bytes(), "a part", raw_len_bytes.into())?;
        let stored_len_bytes = reader.u32("stored len")?;
        let here = reader.clone();
        let checksum = reader.u32("checksum")?;
        let stored = self.read(section, "stored", stored_len_bytes as usize)?;
        let (checked, _) = head.split_at(HEAD_LEN_BYTES - 4);
        let expected = crc32c::crc32c_append(crc32c::crc32c(checked), &stored);
        if checksum != expected {
            return Err(here.error(Problem::Checksum { found: checksum, expected }).into());
        }
        let mut raw = Vec::new();
        let error = |problem| DecodeError::new(section, at, problem);
        decompress(codec, &stored, raw_len_bytes as usize, &mut raw).map_err(error)?;
        Ok(Part { kind, raw, checksum, at })
    }
}

/// A part that was read: its kind, its decompressed bytes, its stored checksum, and where it begins.
pub(crate) struct Part<K> {
    pub(crate) kind: K,
    pub(crate) raw: Vec<u8>,
    pub(crate) checksum: u32,
    pub(crate) at: u64,
}

/// Reads the first line of a file. The digit before the line feed is the layout's version.
pub(crate) fn read_signature(
    reader: &mut Reader<'_>,
    signature: &[u8],
    newest: u64,
) -> Result<(), DecodeError> {
    let here = reader.clone();
    let found = reader.take("signature", signature.len())?;
    if found == signature {
        return Ok(());
    }
    let differs = found.iter().zip(signature).position(|(found, expected)| found != expected);
    let at = differs.unwrap_or(0);
    let byte = found.get(at).copied().unwrap_or_default();
    let is_version = at + 2 == signature.len();
    let problem = if is_version && byte.is_ascii_digit() && u64::from(byte - b'0') > newest {
        Problem::Newer { field: "signature", found: (byte - b'0').into(), newest }
    } else {
        let expected = signature.get(at).copied().unwrap_or_default().into();
        Problem::Disagrees { field: "signature", found: byte.into(), expected }
    };
    Err(DecodeError::new(reader.section(), here.offset_bytes() + at as u64, problem))
}

impl<R: Read + Seek> Input<'_, R> {
    pub(crate) fn seek(&mut self, offset_bytes: u64) -> Result<(), SnapshotError> {
        if self.offset_bytes != offset_bytes {
            self.offset_bytes = NOWHERE;
            self.reader.seek(SeekFrom::Start(offset_bytes))?;
            self.offset_bytes = offset_bytes;
        }
        Ok(())
    }
}

pub(crate) fn read_codec(reader: &mut Reader<'_>, field: &'static str) -> Result<Codec, DecodeError> {
    let here = reader.clone();
    let found = reader.u8(field)?;
    Codec::from_byte(found)
        .ok_or_else(|| here.error(Problem::OutOfRange { field, found: found.into(), allowed: "0, 1 or 2" }))
}

/// Compresses bytes, unless the result is not smaller.
pub(crate) fn packed(codec: Codec, raw: &[u8]) -> (Codec, Vec<u8>) {
    let mut stored = Vec::new();
    compress(codec, Effort::Fast, raw, &mut stored);
    if stored.len() < raw.len() { (codec, stored) } else { (Codec::None, raw.to_vec()) }
}

/// Returns a part's checksum and its encoded bytes; `None` if its length does not fit into the length fields.
pub(crate) fn encode(kind: u8, codec: Codec, raw: &[u8]) -> Option<(u32, Vec<u8>)> {
    let raw_len_bytes = u32::try_from(raw.len()).ok()?;
    let (codec, stored) = packed(codec, raw);
    let mut out = Vec::with_capacity(HEAD_LEN_BYTES + stored.len());
    let mut writer = Writer::new(&mut out);
    writer.u8(kind);
    writer.u8(codec.byte());
    writer.u32(raw_len_bytes);
    writer.u32(stored.len() as u32);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&out), &stored);
    let mut writer = Writer::new(&mut out);
    writer.u32(checksum);
    writer.bytes(&stored);
    Some((checksum, out))
}
