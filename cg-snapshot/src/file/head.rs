//! The head of a file: the snapshot's name, box and sizes. It can be read without the rest.

use std::io::Read;

use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{BlockBox, BlockPos, DecodeError, Dimension, Problem, Section};
use cg_registry::Name;

use super::part::{Input, read_signature};
use crate::error::SnapshotError;
use crate::region::Region;
use crate::section::Contents;
use crate::snapshot::{MAX_SECTIONS, SnapshotInfo};

/// The first line. Its last digit is the layout's version.
const SIGNATURE: &[u8; 23] = b"cherrygrove snapshot 1\n";
/// That of a file whose names have aliases. Files without any keep version 1.
const WITH_ALIASES: &[u8; 23] = b"cherrygrove snapshot 2\n";
/// The newest layout that this release reads.
const VERSION: u64 = 2;
/// Signature, length and checksum.
const FIXED_LEN_BYTES: usize = SIGNATURE.len() + 4 + 4;
/// The longest possible head: both names have 65,535 bytes.
const MAX_LEN_BYTES: u32 = 101 + 2 * 65_535;

/// Reads the head of a snapshot file, and nothing after it.
///
/// # Errors
/// [`SnapshotError::Decode`] if it is not a snapshot or is damaged, [`SnapshotError::Io`] if it cannot be read.
pub fn read_info(reader: impl Read) -> Result<SnapshotInfo, SnapshotError> {
    Ok(read(&mut Input::new(reader, None))?.0)
}

/// The head, and the version of the layout.
pub(super) fn read(input: &mut Input<'_, impl Read>) -> Result<(SnapshotInfo, u64), SnapshotError> {
    let trace = input.trace();
    let fixed = input.read(Section::SnapshotHead, "signature", FIXED_LEN_BYTES)?;
    let mut reader = Reader::new(&fixed, Section::SnapshotHead).traced(trace);
    let version = read_version(&mut reader)?;
    let here = reader.clone();
    let len_bytes = reader.u32("head len")?;
    if len_bytes > MAX_LEN_BYTES {
        let (field, found) = ("head len", len_bytes.into());
        let error = here.error(Problem::OutOfRange { field, found, allowed: "up to 131,171 bytes" });
        return Err(error.into());
    }
    let here = reader.clone();
    let found = reader.u32("head checksum")?;
    let bytes = input.read(Section::SnapshotHead, "head", len_bytes as usize)?;
    let expected = crc32c::crc32c(&bytes);
    if found != expected {
        return Err(here.error(Problem::Checksum { found, expected }).into());
    }
    Ok((decode(&bytes, trace)?, version))
}

fn read_version(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let mut with_aliases = reader.clone();
    if read_signature(&mut with_aliases, WITH_ALIASES, VERSION).is_ok() {
        *reader = with_aliases;
        return Ok(VERSION);
    }
    read_signature(reader, SIGNATURE, VERSION).map(|()| 1)
}

fn decode(bytes: &[u8], trace: Option<&Trace>) -> Result<SnapshotInfo, DecodeError> {
    let mut reader = Reader::at_offset(bytes, FIXED_LEN_BYTES as u64, Section::SnapshotHead).traced(trace);
    let here = reader.clone();
    let byte = reader.u8("contents")?;
    let contents = Contents::from_byte(byte).ok_or_else(|| {
        here.error(Problem::OutOfRange { field: "contents", found: byte.into(), allowed: "0 to 7" })
    })?;
    let created_ms = reader.u64("created")?;
    let dimension = Dimension::new(reader.u64("dimension")?);
    let min = BlockPos::new(reader.i64("min x")?, reader.i64("min y")?, reader.i64("min z")?);
    let max = read_max(&mut reader, min)?;
    let region = Region::new(dimension, BlockBox::new(min, max));
    let here = reader.clone();
    let section_count = reader.u64("sections")?;
    let expected = region.section_count();
    if u128::from(section_count) != expected {
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        return Err(here.error(Problem::Disagrees { field: "sections", found: section_count, expected }));
    }
    if section_count > MAX_SECTIONS {
        let (field, found) = ("sections", section_count);
        return Err(here.error(Problem::OutOfRange { field, found, allowed: "up to 16,777,216" }));
    }
    let present_count = at_most(&mut reader, "present", section_count, "up to the sections")?;
    let unique_count = at_most(&mut reader, "unique", present_count, "up to the sections present")?;
    let unique_bytes = reader.u64("unique bytes")?;
    let entity_count = reader.u64("entities")?;
    let name = text(&mut reader, "name len", "name")?.to_owned();
    let here = reader.clone();
    let dimension = text(&mut reader, "dimension len", "dimension name")?;
    let dimension = Name::new(dimension).map_err(|_| {
        let (field, found) = ("dimension name", dimension.len() as u64);
        here.error(Problem::OutOfRange { field, found, allowed: "`namespace:identifier`" })
    })?;
    reader.end("bytes after the head")?;
    Ok(SnapshotInfo {
        name,
        region,
        dimension,
        created_ms,
        contents,
        section_count,
        present_count,
        unique_count,
        unique_bytes,
        entity_count,
    })
}

/// Reads the corner with the largest coordinates. None may be below that of the other corner.
fn read_max(reader: &mut Reader<'_>, min: BlockPos) -> Result<BlockPos, DecodeError> {
    let mut axis = |field: &'static str, before: i64| {
        let here = reader.clone();
        let found = reader.i64(field)?;
        if found < before {
            return Err(here.error(Problem::NotAscending { field, found, before }));
        }
        Ok(found)
    };
    Ok(BlockPos::new(axis("max x", min.x)?, axis("max y", min.y)?, axis("max z", min.z)?))
}

fn at_most(
    reader: &mut Reader<'_>,
    field: &'static str,
    max: u64,
    allowed: &'static str,
) -> Result<u64, DecodeError> {
    let here = reader.clone();
    let found = reader.u64(field)?;
    if found > max { Err(here.error(Problem::OutOfRange { field, found, allowed })) } else { Ok(found) }
}

/// Reads a text after its length of 2 bytes.
pub(super) fn text<'a>(
    reader: &mut Reader<'a>,
    len_field: &'static str,
    field: &'static str,
) -> Result<&'a str, DecodeError> {
    let len_bytes = reader.u16(len_field)?;
    let here = reader.clone();
    let bytes = reader.take(field, len_bytes.into())?;
    std::str::from_utf8(bytes).map_err(|error| {
        let found = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        here.error(Problem::NotUtf8 { field, found })
    })
}

pub(super) fn write_text(writer: &mut Writer<'_>, text: &str) {
    writer.u16(text.len() as u16);
    writer.bytes(text.as_bytes());
}

pub(super) fn encode(info: &SnapshotInfo, has_aliases: bool) -> Vec<u8> {
    let mut head = Vec::new();
    let mut writer = Writer::new(&mut head);
    writer.u8(info.contents.byte());
    writer.u64(info.created_ms);
    writer.u64(info.region.dimension().get());
    let area = info.region.area();
    for corner in [area.min(), area.max()] {
        writer.i64(corner.x);
        writer.i64(corner.y);
        writer.i64(corner.z);
    }
    let counts =
        [info.section_count, info.present_count, info.unique_count, info.unique_bytes, info.entity_count];
    for count in counts {
        writer.u64(count);
    }
    write_text(&mut writer, &info.name);
    write_text(&mut writer, info.dimension.as_str());
    let mut out = if has_aliases { WITH_ALIASES } else { SIGNATURE }.to_vec();
    let mut writer = Writer::new(&mut out);
    writer.u32(head.len() as u32);
    writer.u32(crc32c::crc32c(&head));
    writer.bytes(&head);
    out
}
