//! The index of a file: the stored sections, the groups that hold them, and the section at each place.

use cg_format::codec::Codec;
use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Problem, Section};

use super::part::read_codec;
use crate::snapshot::SnapshotInfo;

/// Bytes of a stored section in the index.
const KEPT_LEN_BYTES: u64 = 8;
/// Bytes of a group in the index.
const GROUP_LEN_BYTES: u64 = 13;

/// The index entry of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) len_bytes: u32,
    pub(super) checksum: u32,
}

/// Consecutive sections that are compressed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) section_count: u32,
    pub(super) codec: Codec,
    pub(super) stored_len_bytes: u32,
    pub(super) checksum: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Index {
    pub(super) kept: Vec<Kept>,
    pub(super) groups: Vec<Group>,
    pub(super) places: Vec<u32>,
}

impl Index {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        for kept in &self.kept {
            writer.u32(kept.len_bytes);
            writer.u32(kept.checksum);
        }
        writer.u32(self.groups.len() as u32);
        for group in &self.groups {
            writer.u32(group.section_count);
            writer.u8(group.codec.byte());
            writer.u32(group.stored_len_bytes);
            writer.u32(group.checksum);
        }
        self.places.iter().for_each(|place| writer.u32(*place));
        out
    }

    pub(super) fn decode(
        raw: &[u8],
        info: &SnapshotInfo,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(raw, Section::SnapshotIndex).traced(trace);
        let kept = read_kept(&mut reader, info)?;
        let groups = read_groups(&mut reader, kept.len() as u64)?;
        let places = read_places(&mut reader, info)?;
        reader.end("bytes after the places")?;
        Ok(Self { kept, groups, places })
    }
}

fn read_kept(reader: &mut Reader<'_>, info: &SnapshotInfo) -> Result<Vec<Kept>, DecodeError> {
    let left = reader.left_bytes() as u64;
    if info.unique_count * KEPT_LEN_BYTES > left {
        let (field, count) = ("sections", info.unique_count);
        return Err(reader.error(Problem::CountExceedsInput { field, count, width: KEPT_LEN_BYTES, left }));
    }
    let mut kept = Vec::with_capacity(info.unique_count as usize);
    let mut sum = 0;
    for _ in 0..info.unique_count {
        let here = reader.clone();
        let len_bytes = reader.u32("section len")?;
        if len_bytes == 0 {
            return Err(here.error(Problem::OutOfRange {
                field: "section len",
                found: 0,
                allowed: "1 and up",
            }));
        }
        sum += u64::from(len_bytes);
        kept.push(Kept { len_bytes, checksum: reader.u32("section checksum")? });
    }
    if sum != info.unique_bytes {
        let (field, found, expected) = ("unique bytes", info.unique_bytes, sum);
        return Err(reader.error(Problem::Disagrees { field, found, expected }));
    }
    Ok(kept)
}

fn read_groups(reader: &mut Reader<'_>, kept_count: u64) -> Result<Vec<Group>, DecodeError> {
    let here = reader.clone();
    let count = u64::from(reader.u32("groups")?);
    let left = reader.left_bytes() as u64;
    if count * GROUP_LEN_BYTES > left {
        let width = GROUP_LEN_BYTES;
        return Err(here.error(Problem::CountExceedsInput { field: "groups", count, width, left }));
    }
    let mut groups = Vec::with_capacity(count as usize);
    let mut sections = 0;
    for _ in 0..count {
        let here = reader.clone();
        let section_count = reader.u32("group sections")?;
        sections += u64::from(section_count);
        if section_count == 0 || sections > kept_count {
            let (field, found) = ("group sections", section_count.into());
            let allowed = "1 up to the sections that are in no group yet";
            return Err(here.error(Problem::OutOfRange { field, found, allowed }));
        }
        groups.push(Group {
            section_count,
            codec: read_codec(reader, "group codec")?,
            stored_len_bytes: reader.u32("group len")?,
            checksum: reader.u32("group checksum")?,
        });
    }
    if sections != kept_count {
        let (field, found, expected) = ("sections in groups", sections, kept_count);
        return Err(reader.error(Problem::Disagrees { field, found, expected }));
    }
    Ok(groups)
}

/// Sections are numbered in the order in which places first use them, so equal snapshots have equal bytes.
fn read_places(reader: &mut Reader<'_>, info: &SnapshotInfo) -> Result<Vec<u32>, DecodeError> {
    let start = reader.offset_bytes();
    let (items, _) = reader.take_items("places", info.section_count, 4)?.as_chunks::<4>();
    let places: Vec<u32> = items.iter().map(|place| u32::from_le_bytes(*place)).collect();
    let (mut met, mut present) = (0_u32, 0_u64);
    for (place, offset_bytes) in places.iter().zip((start..).step_by(4)) {
        if *place > met + 1 || u64::from(*place) > info.unique_count {
            let (field, found) = ("places", u64::from(*place));
            let allowed = "0, a section that was met, or the next";
            let problem = Problem::OutOfRange { field, found, allowed };
            return Err(DecodeError::new(Section::SnapshotIndex, offset_bytes, problem));
        }
        met = met.max(*place);
        present += u64::from(*place != 0);
    }
    for (field, found, expected) in
        [("unique", info.unique_count, met.into()), ("present", info.present_count, present)]
    {
        if found != expected {
            return Err(reader.error(Problem::Disagrees { field, found, expected }));
        }
    }
    Ok(places)
}
