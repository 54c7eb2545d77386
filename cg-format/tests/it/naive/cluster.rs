//! Clusters, by definition: the plain form of one level, and the stored form with its directory.
//!
//! Rows are read with each version of the directory and both forms of a group.
//! They are written with versions 1, 3, 4 and 5, and in the plain form.

pub(crate) mod directory;
pub(crate) mod fields;
pub(crate) mod group;

use std::collections::BTreeMap;

use self::directory::Entry;
use super::frame::{self, Frame};
use super::{Cursor, Refused, ascends, crc32c, lz4, put, unlz4, unzstd};

/// Chunk values by slot: (x·side + y)·side + z.
pub(crate) type Plain = BTreeMap<u16, Vec<u8>>;

/// A cluster as it is stored: each chunk with its version and its schema generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) scale_level: u8,
    pub(crate) chunks: BTreeMap<u16, Slot>,
}

/// One chunk of a stored cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) version: u64,
    pub(crate) schema_generation: u32,
    pub(crate) value: Vec<u8>,
}

impl Stored {
    /// The same chunks without what only the directory knows.
    pub(crate) fn plain(&self) -> Plain {
        self.chunks.iter().map(|(slot, chunk)| (*slot, chunk.value.clone())).collect()
    }
}

/// Chunks along one edge: 4^scale level.
fn side(scale_level: u8) -> Result<u16, Refused> {
    match scale_level {
        1 => Ok(4),
        2 => Ok(16),
        _ => Err(format!("scale level {scale_level}")),
    }
}

/// The plain form: version, scale, one offset for each slot, the chunks in slot order without gaps.
pub(crate) fn encode(scale_level: u8, chunks: &Plain) -> Result<Vec<u8>, Refused> {
    let slots = side(scale_level)?.pow(3);
    let mut out = Vec::new();
    put(&mut out, 1, 8);
    out.push(scale_level);
    let mut offset = 9 + 8 * u64::from(slots);
    for slot in 0..slots {
        match chunks.get(&slot) {
            None => put(&mut out, 0, 8),
            Some(value) => {
                put(&mut out, offset, 8);
                offset += value.len() as u64;
            }
        }
    }
    for value in chunks.values() {
        out.extend(value);
    }
    Ok(out)
}

/// Reads the plain form.
///
/// Left free by the layout, strict here: the first chunk starts where the header ends, chunks lie in slot order,
/// and a chunk has at least one byte. A cluster of no chunks is only a header.
pub(crate) fn decode(bytes: &[u8]) -> Result<(u8, Plain), Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u64("format version")?;
    if version != 1 {
        return Err(format!("format version {version}"));
    }
    let scale_level = at.u8("scale level")?;
    let mut present = Vec::new();
    for slot in 0..side(scale_level)?.pow(3) {
        let offset = at.u64("chunk offset")?;
        if offset != 0 {
            present.push((slot, offset));
        }
    }
    let mut ends: Vec<u64> = present.iter().map(|(_, offset)| *offset).collect();
    ends.push(bytes.len() as u64);
    if !ascends(&ends) || ends[0] != at.at as u64 {
        return Err(format!("chunk offsets do not rise from {} to the end", at.at));
    }
    let mut chunks = BTreeMap::new();
    for ((slot, offset), end) in present.into_iter().zip(&ends[1..]) {
        chunks.insert(slot, at.take("chunk", end - offset)?.to_vec());
    }
    Ok((scale_level, chunks))
}

/// The directory version that a writer chooses.
pub(crate) fn written_version(scale_level: u8) -> u8 {
    if scale_level == 1 { 3 } else { 5 }
}

/// How a row is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing {
    /// 1, or 3 in L1, and 4 or 5 in L2.
    pub(crate) directory_version: u8,
    /// 0 none, 1 LZ4 block.
    pub(crate) codec: u8,
    /// The commit that writes.
    pub(crate) version: u64,
}

/// A whole row: frame, directory, groups.
pub(crate) fn encode_stored(
    cluster: &Stored,
    writing: Writing,
    space: u8,
    key: &[u8],
) -> Result<Vec<u8>, Refused> {
    let Writing { directory_version, codec, version } = writing;
    if directory_version == 2 {
        return Err("directory version 2 is only read".into());
    }
    let groups = group::count(cluster.scale_level, directory_version)?;
    let mut per_group: Vec<BTreeMap<u16, &Slot>> = vec![BTreeMap::new(); groups.into()];
    for (slot, chunk) in &cluster.chunks {
        let (group, place) = group::of_slot(cluster.scale_level, directory_version, *slot);
        per_group[group as usize].insert(place, chunk);
    }
    let mut of_groups = Vec::new();
    let mut earlier: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut stored_groups = Vec::<u8>::new();
    for slots in &per_group {
        if slots.is_empty() {
            of_groups.extend([0; 24]);
            continue;
        }
        let presence = slots.keys().fold(0_u64, |mask, place| mask | 1 << place);
        let plain: Plain = slots.iter().map(|(place, chunk)| (*place, chunk.value.clone())).collect();
        let raw = encode(1, &plain)?;
        let stored = match codec {
            0 => raw.clone(),
            1 => Some(lz4(&raw)).filter(|out| out.len() < raw.len()).unwrap_or(raw.clone()),
            _ => return Err(format!("codec {codec}")),
        };
        let same = earlier.iter().find(|(other, _)| directory_version != 1 && *other == stored);
        let offset = same.map_or(stored_groups.len(), |(_, offset)| *offset);
        put(&mut of_groups, presence, 8);
        put(&mut of_groups, offset as u64, 4);
        put(&mut of_groups, stored.len() as u64, 4);
        put(&mut of_groups, raw.len() as u64, 4);
        put(&mut of_groups, u64::from(crc32c(&stored)), 4);
        if same.is_none() {
            stored_groups.extend(&stored);
            earlier.push((stored, offset));
        }
    }
    let mut of_chunks = Vec::new();
    for chunk in per_group.iter().flat_map(BTreeMap::values) {
        put(&mut of_chunks, chunk.version, 8);
        put(&mut of_chunks, u64::from(chunk.schema_generation), 4);
    }
    let mut directory = vec![directory_version, cluster.scale_level];
    put(&mut directory, 0, 2);
    put(&mut directory, cluster.chunks.len() as u64, 4);
    let (mut entries, equal_planes) = directory::laid_out(directory_version, &of_groups, &of_chunks);
    if directory_version >= 4 {
        if codec == 1 {
            entries = Some(lz4(&entries)).filter(|out| out.len() < entries.len()).unwrap_or(entries);
        }
        put(&mut directory, entries.len() as u64, 4);
    }
    if directory_version == 5 {
        put(&mut directory, equal_planes, 8);
    }
    directory.extend(entries);
    let checked = directory.len();
    directory.extend(stored_groups);
    Ok(frame::encode(
        &Frame { kind: 2, codec, version, schema_generation: 0, lineage: 0, payload: directory },
        checked,
        space,
        key,
    ))
}

/// Reads a whole row.
///
/// Left free by the layout, strict here: groups lie in order without gaps to the end of the row, a group without
/// chunks has an entry of zeros, and a cluster has at least one chunk. Lenient: equal groups may be stored again.
pub(crate) fn decode_stored(row: &[u8], space: u8, key: &[u8]) -> Result<(Frame, Stored), Refused> {
    let directory_len = directory::len(row.get(24..).unwrap_or_default())?;
    let frame = frame::decode(row, directory_len, space, key)?;
    if frame.kind != 2 {
        return Err(format!("frame kind {} is no cluster", frame.kind));
    }
    if frame.schema_generation != 0 {
        return Err(format!("schema generation {} of a cluster", frame.schema_generation));
    }
    let directory = directory::decode(&frame.payload, frame.codec)?;
    let scale_level = directory.scale_level;
    let mut at = Cursor::new(&frame.payload[directory_len..]);
    let mut versions = directory.chunks.into_iter();
    let mut earlier: Vec<Entry> = Vec::new();
    let mut chunks = BTreeMap::new();
    for (group, entry) in (0..).zip(directory.entries) {
        if entry.presence == 0 {
            if entry != Entry::default() {
                return Err(format!("group {group} has an entry and no chunk"));
            }
            continue;
        }
        let stored = if directory.version != 1 && earlier.contains(&entry) {
            let mut again = Cursor::new(at.bytes);
            again.take("the groups before", u64::from(entry.offset))?;
            again.take("group", u64::from(entry.stored_len))?
        } else if u64::from(entry.offset) == at.at as u64 {
            earlier.push(entry);
            at.take("group", u64::from(entry.stored_len))?
        } else {
            return Err(format!("group {group} at {}, but the one before ends at {}", entry.offset, at.at));
        };
        let plain = decode_group(scale_level, frame.codec, &entry, stored)
            .map_err(|why| format!("group {group}: {why}"))?;
        for (place, value) in plain {
            let (version, schema_generation) = versions.next().expect("as many versions as presence bits");
            let slot = group::slot_at(scale_level, directory.version, group, place);
            chunks.insert(slot, Slot { version, schema_generation, value });
        }
    }
    at.end("the last group")?;
    Ok((frame.clone(), Stored { scale_level, chunks }))
}

/// The chunks of one group by their places. Only compressed groups of L2 with Zstandard may be by field.
fn decode_group(scale_level: u8, codec: u8, entry: &Entry, stored: &[u8]) -> Result<Plain, Refused> {
    if crc32c(stored) != entry.checksum {
        return Err("checksum".into());
    }
    if entry.raw_len < 521 + entry.presence.count_ones() {
        return Err(format!("raw length {}", entry.raw_len));
    }
    let raw = unpacked(codec, stored, entry.raw_len)?;
    let may_be_by_field = scale_level == 2 && codec == 2 && entry.stored_len < entry.raw_len;
    let plain = if may_be_by_field && Cursor::new(&raw).u64("format version")? == 2 {
        fields::decode(&raw)?
    } else {
        let (inner_level, plain) = decode(&raw)?;
        if inner_level != 1 {
            return Err(format!("scale level {inner_level} in a group"));
        }
        plain
    };
    let found = plain.keys().fold(0_u64, |mask, inner| mask | 1 << inner);
    if found != entry.presence {
        return Err(format!("it holds {found:x}, the directory says {:x}", entry.presence));
    }
    Ok(plain)
}

/// Bytes of a cluster as they were before compression. As many as meant were not compressed.
fn unpacked(codec: u8, stored: &[u8], raw_len: u32) -> Result<Vec<u8>, Refused> {
    if stored.len() == raw_len as usize {
        return Ok(stored.to_vec());
    }
    match codec {
        1 if stored.len() < raw_len as usize => unlz4(stored, raw_len),
        2 if stored.len() < raw_len as usize => unzstd(stored, raw_len),
        _ => Err(format!("{} bytes for {raw_len}, codec {codec}", stored.len())),
    }
}

mod tests;
