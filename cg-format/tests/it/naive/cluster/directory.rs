//! The directory of a stored cluster, in each of its versions.

use super::super::{Cursor, Refused};
use super::{group, side, unpacked};

/// A directory's entry for a group; for one without chunks only zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// Bit i: the chunk at place i is present.
    pub(crate) presence: u64,
    /// Where the group starts, from the end of the directory.
    pub(crate) offset: u32,
    pub(crate) stored_len: u32,
    pub(crate) raw_len: u32,
    pub(crate) checksum: u32,
}

/// A directory that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// 1; 2: entries that may be compressed; 3: groups that are slabs; 4: groups that are half cubes, and entries in
    /// planes that may be compressed; 5: as 4, and planes of equal bytes are one byte. From 2 on groups may be shared.
    pub(crate) version: u8,
    pub(crate) scale_level: u8,
    pub(crate) entries: Vec<Entry>,
    /// Version and schema generation of each present chunk, group by group.
    pub(crate) chunks: Vec<(u64, u32)>,
}

/// The fields at the beginning of a directory.
struct Head {
    version: u8,
    scale_level: u8,
    present_count: u32,
    /// Where the entries of groups and chunks start, and how many bytes are stored and meant.
    entries_at: usize,
    stored_len: u32,
    raw_len: u32,
    /// Of the planes of groups and of chunks: whether a plane is one byte.
    equal: [Vec<bool>; 2],
}

impl Head {
    fn decode(payload: &[u8]) -> Result<Self, Refused> {
        let mut at = Cursor::new(payload);
        let version = at.u8("directory version")?;
        if !(1..=5).contains(&version) {
            return Err(format!("directory version {version}"));
        }
        let scale_level = at.u8("scale level")?;
        let groups = u32::from(group::count(scale_level, version)?);
        let slots = u32::from(side(scale_level)?.pow(3));
        let reserved = at.u16("reserved")?;
        if reserved != 0 {
            return Err(format!("reserved is {reserved}"));
        }
        let present_count = at.u32("present count")?;
        if present_count == 0 || present_count > slots {
            return Err(format!("{present_count} chunks in {slots} slots"));
        }
        let stored_len = if [2, 4, 5].contains(&version) { Some(at.u32("entries length")?) } else { None };
        let planes = if version == 5 { at.u64("equal planes")? } else { 0 };
        if planes >= 1 << 36 {
            return Err(format!("equal planes {planes:x}"));
        }
        let bits = |from: u64, to: u64| (from..to).map(|bit| planes & 1 << bit != 0).collect::<Vec<_>>();
        let equal = [bits(0, 24), bits(24, 36)];
        let len =
            |equal: &[bool], count: u32| equal.iter().map(|one| if *one { 1 } else { count }).sum::<u32>();
        let raw_len = len(&equal[0], groups) + len(&equal[1], present_count);
        let stored_len = stored_len.unwrap_or(raw_len);
        if stored_len == 0 || stored_len > raw_len {
            return Err(format!("{stored_len} bytes of entries for {raw_len}"));
        }
        Ok(Self { version, scale_level, present_count, entries_at: at.at, stored_len, raw_len, equal })
    }
}

/// How long a directory is, from what it says of itself.
pub(crate) fn len(payload: &[u8]) -> Result<usize, Refused> {
    let head = Head::decode(payload)?;
    Ok(head.entries_at + head.stored_len as usize)
}

/// Reads the directory at the front of a payload.
pub(crate) fn decode(payload: &[u8], codec: u8) -> Result<Directory, Refused> {
    let head = Head::decode(payload)?;
    let stored = Cursor::new(&payload[head.entries_at..]).take("entries", u64::from(head.stored_len))?;
    let mut raw = unpacked(codec, stored, head.raw_len)?;
    let groups = group::count(head.scale_level, head.version)?;
    if head.version >= 4 {
        let counts = [groups.into(), head.present_count as usize];
        let mut rest = &raw[..];
        let mut items = Vec::new();
        for (equal, count) in head.equal.iter().zip(counts) {
            let mut planes = Vec::new();
            for one in equal {
                let (plane, after) = rest.split_at(if *one { 1 } else { count });
                planes.extend((0..count).map(|item| plane[if *one { 0 } else { item }]));
                rest = after;
            }
            items.extend(from_planes(&planes, equal.len()));
        }
        raw = items;
    }
    let mut at = Cursor::new(&raw);
    let mut entries = Vec::new();
    let mut present = 0;
    for group in 0..groups {
        let entry = Entry {
            presence: at.u64("presence")?,
            offset: at.u32("group offset")?,
            stored_len: at.u32("stored length")?,
            raw_len: at.u32("raw length")?,
            checksum: at.u32("group checksum")?,
        };
        if head.version == 3 && entry.presence >= 1 << 16 {
            return Err(format!("presence {:x} of group {group}, a slab", entry.presence));
        }
        if head.version >= 4 && entry.presence >= 1 << 32 {
            return Err(format!("presence {:x} of group {group}, half a cube", entry.presence));
        }
        present += entry.presence.count_ones();
        entries.push(entry);
    }
    if present != head.present_count {
        return Err(format!("{present} presence bits, {} chunks", head.present_count));
    }
    let mut chunks = Vec::new();
    for _ in 0..head.present_count {
        chunks.push((at.u64("chunk version")?, at.u32("chunk schema generation")?));
    }
    at.end("the last chunk's entry")?;
    Ok(Directory { version: head.version, scale_level: head.scale_level, entries, chunks })
}

/// Byte b of item i is at b·count + i in planes, and at i·len + b otherwise.
pub(crate) fn from_planes(planes: &[u8], len: usize) -> Vec<u8> {
    let count = planes.len() / len;
    (0..planes.len()).map(|at| planes[at % len * count + at / len]).collect()
}

/// The reverse.
pub(crate) fn in_planes(items: &[u8], len: usize) -> Vec<u8> {
    let count = items.len() / len;
    (0..items.len()).map(|at| items[at % count * len + at / count]).collect()
}

/// Entries that are one after another as a version stores them before compression, and which planes are one byte.
pub(crate) fn laid_out(version: u8, of_groups: &[u8], of_chunks: &[u8]) -> (Vec<u8>, u64) {
    if version < 4 {
        return ([of_groups, of_chunks].concat(), 0);
    }
    let (mut out, mut equal_planes, mut bit) = (Vec::new(), 0, 1);
    for (items, len) in [(of_groups, 24), (of_chunks, 12)] {
        for plane in in_planes(items, len).chunks(items.len() / len) {
            let is_one = version == 5 && plane.iter().all(|byte| *byte == plane[0]);
            out.extend(if is_one { &plane[..1] } else { plane });
            equal_planes |= if is_one { bit } else { 0 };
            bit <<= 1;
        }
    }
    (out, equal_planes)
}
