//! Clusters, by definition: the plain form of one level, and the stored form with its directory.

use std::collections::BTreeMap;

use super::frame::{self, Frame};
use super::{Cursor, Refused, ascends, crc32c, lz4, put, unlz4};

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

/// The 4³ group of a slot of a level, and the slot inside the group.
pub(crate) fn group_of(scale_level: u8, slot: u16) -> (u16, u16) {
    if scale_level == 1 {
        return (0, slot);
    }
    let (x, y, z) = (slot / 256, slot / 16 % 16, slot % 16);
    ((x / 4 * 4 + y / 4) * 4 + z / 4, (x % 4 * 4 + y % 4) * 4 + z % 4)
}

/// The slot of a level that lies in a group at a slot of the group.
pub(crate) fn slot_of(scale_level: u8, group: u16, inner: u16) -> u16 {
    if scale_level == 1 {
        return inner;
    }
    let (gx, gy, gz) = (group / 16, group / 4 % 4, group % 4);
    let (ix, iy, iz) = (inner / 16, inner / 4 % 4, inner % 4);
    ((gx * 4 + ix) * 16 + gy * 4 + iy) * 16 + gz * 4 + iz
}

fn groups(scale_level: u8) -> Result<u16, Refused> {
    Ok(side(scale_level)?.pow(3) / 64)
}

/// A whole row: frame, directory, groups. Codecs: 0 none, 1 LZ4 block.
pub(crate) fn encode_stored(
    cluster: &Stored,
    codec: u8,
    schema_generation: u32,
    space: u8,
    key: &[u8],
    version: u64,
) -> Result<Vec<u8>, Refused> {
    let mut per_group: Vec<BTreeMap<u16, &Slot>> = vec![BTreeMap::new(); groups(cluster.scale_level)?.into()];
    for (slot, chunk) in &cluster.chunks {
        let (group, inner) = group_of(cluster.scale_level, *slot);
        per_group[group as usize].insert(inner, chunk);
    }
    let mut directory = Vec::new();
    directory.push(1);
    directory.push(cluster.scale_level);
    put(&mut directory, 0, 2);
    put(&mut directory, cluster.chunks.len() as u64, 4);
    let mut stored_groups = Vec::new();
    for slots in &per_group {
        let presence = slots.keys().fold(0_u64, |mask, inner| mask | 1 << inner);
        let plain: Plain = slots.iter().map(|(inner, chunk)| (*inner, chunk.value.clone())).collect();
        let raw = if plain.is_empty() { Vec::new() } else { encode(1, &plain)? };
        let stored = match codec {
            0 => raw.clone(),
            1 => Some(lz4(&raw)).filter(|out| out.len() < raw.len()).unwrap_or(raw.clone()),
            _ => return Err(format!("codec {codec}")),
        };
        put(&mut directory, presence, 8);
        put(&mut directory, if plain.is_empty() { 0 } else { stored_groups.len() as u64 }, 4);
        put(&mut directory, stored.len() as u64, 4);
        put(&mut directory, raw.len() as u64, 4);
        put(&mut directory, u64::from(crc32c(&stored)), 4);
        stored_groups.extend(stored);
    }
    for slots in &per_group {
        for chunk in slots.values() {
            put(&mut directory, chunk.version, 8);
            put(&mut directory, u64::from(chunk.schema_generation), 4);
        }
    }
    let checked = directory.len();
    directory.extend(stored_groups);
    Ok(frame::encode(
        &Frame { kind: 2, codec, version, schema_generation, payload: directory },
        checked,
        space,
        key,
    ))
}

/// Reads a whole row.
///
/// Left free by the layout, strict here: groups lie in order without gaps to the end of the row, a group without
/// chunks has an entry of zeros, and a cluster has at least one chunk.
pub(crate) fn decode_stored(row: &[u8], space: u8, key: &[u8]) -> Result<(Frame, Stored), Refused> {
    let directory_len = directory_len(row.get(24..).unwrap_or_default())?;
    let frame = frame::decode(row, directory_len, space, key)?;
    if frame.kind != 2 {
        return Err(format!("frame kind {} is no cluster", frame.kind));
    }
    let mut at = Cursor::new(&frame.payload);
    at.u8("directory version")?;
    let scale_level = at.u8("scale level")?;
    at.u16("reserved")?;
    let present_count = at.u32("present count")?;
    let mut entries = Vec::new();
    for _ in 0..groups(scale_level)? {
        let presence = at.u64("presence")?;
        let [offset, stored_len, raw_len, crc] =
            [at.u32("offset")?, at.u32("stored length")?, at.u32("raw length")?, at.u32("checksum")?];
        entries.push((presence, offset, stored_len, raw_len, crc));
    }
    let mut versions = Vec::new();
    for _ in 0..present_count {
        versions.push((at.u64("chunk version")?, at.u32("chunk schema generation")?));
    }
    let mut versions = versions.into_iter();

    let mut chunks = BTreeMap::new();
    for (group, (presence, offset, stored_len, raw_len, crc)) in entries.into_iter().enumerate() {
        if presence == 0 {
            if (offset, stored_len, raw_len, crc) != (0, 0, 0, 0) {
                return Err(format!("group {group} has an entry and no chunk"));
            }
            continue;
        }
        if u64::from(offset) != (at.at - directory_len) as u64 {
            return Err(format!(
                "group {group} at {offset}, but the one before ends at {}",
                at.at - directory_len
            ));
        }
        let stored = at.take("group", u64::from(stored_len))?;
        if crc32c(stored) != crc {
            return Err(format!("group {group}: checksum"));
        }
        let raw = if stored_len == raw_len {
            stored.to_vec()
        } else if stored_len < raw_len && frame.codec == 1 {
            unlz4(stored, raw_len)?
        } else {
            return Err(format!("group {group}: {stored_len} bytes for {raw_len}, codec {}", frame.codec));
        };
        let (inner_level, plain) = decode(&raw)?;
        let found = plain.keys().fold(0_u64, |mask, inner| mask | 1 << inner);
        if inner_level != 1 || found != presence {
            return Err(format!("group {group} holds {found:x}, the directory says {presence:x}"));
        }
        for (inner, value) in plain {
            let (version, schema_generation) = versions.next().expect("as many versions as presence bits");
            chunks.insert(
                slot_of(scale_level, group as u16, inner),
                Slot { version, schema_generation, value },
            );
        }
    }
    at.end("the last group")?;
    Ok((frame.clone(), Stored { scale_level, chunks }))
}

/// How long a directory is, from what it says of itself.
fn directory_len(bytes: &[u8]) -> Result<usize, Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u8("directory version")?;
    if version != 1 {
        return Err(format!("directory version {version}"));
    }
    let groups = groups(at.u8("scale level")?)?;
    let reserved = at.u16("reserved")?;
    if reserved != 0 {
        return Err(format!("reserved is {reserved}"));
    }
    let present_count = at.u32("present count")?;
    let mut present = 0;
    for _ in 0..groups {
        present += at.u64("presence")?.count_ones();
        at.take("group entry", 16)?;
    }
    if present != present_count || present == 0 {
        return Err(format!("{present} presence bits, {present_count} chunks"));
    }
    at.take("versions", 12 * u64::from(present))?;
    Ok(at.at)
}

mod tests;
