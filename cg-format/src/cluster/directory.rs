//! The directory of a stored cluster: its chunks, their versions, and the places of their groups.
//!
//! It begins with its [`Head`]. Then come the entries, which the row's codec compresses in version 2. An L2 row has 64
//! groups. An L1 row has four in version 3, and one before. Each group takes 24 bytes:
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 8 | presence | bit i: the chunk at place i of the group is present |
//! | 8 | 4 | group offset | from the end of the directory |
//! | 12 | 4 | stored length | bytes of the group as stored |
//! | 16 | 4 | raw length | bytes of the group decompressed; equal to the stored length if not compressed |
//! | 20 | 4 | group checksum | CRC-32C of the stored bytes |
//!
//! Then 12 bytes for each present chunk, group by group, in order of place:
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 8 | chunk version | the commit that last changed the chunk |
//! | 8 | 4 | chunk schema generation | what the chunk's ids and columns mean |
//!
//! A group without chunks has an entry of zeros and no bytes. The others are stored in order and without gaps. From
//! version 2 on a group whose bytes equal those of an earlier one has its offset, and is not stored again.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::Slot;
use super::header::header_len_bytes;
use crate::codec::{Effort, compress, decompress};
use crate::frame::head::{CUBE_SLOT_COUNT, Head, SLAB_SLOT_COUNT, SLOT_LEN_BYTES};
use crate::frame::{Codec, FrameView};
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section, Space};

/// The data of each chunk in a stored cluster, in addition to its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotInfo {
    /// The commit that last changed the chunk; moves between tiers keep it.
    pub version: u64,
    /// The schema generation with which the chunk's bytes were encoded.
    pub schema_generation: u32,
}

/// The place of a group; all zero for a group without chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GroupEntry {
    pub(super) presence: u64,
    pub(super) offset_bytes: u32,
    pub(super) stored_len_bytes: u32,
    pub(super) raw_len_bytes: u32,
    pub(super) checksum: u32,
}

impl GroupEntry {
    pub(super) const fn is_compressed(&self) -> bool {
        self.stored_len_bytes != self.raw_len_bytes
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            presence: reader.u64("presence")?,
            offset_bytes: reader.u32("group offset")?,
            stored_len_bytes: reader.u32("stored length")?,
            raw_len_bytes: reader.u32("raw length")?,
            checksum: reader.u32("group checksum")?,
        })
    }

    /// Whether two groups are the same bytes in the row.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        let bytes =
            |entry: &Self| (entry.offset_bytes, entry.stored_len_bytes, entry.raw_len_bytes, entry.checksum);
        other.presence == self.presence && bytes(other) == bytes(self)
    }

    /// Checks an entry against the codec and the end of the groups before it. `here` is at its first byte.
    fn check(&self, codec: Codec, end_bytes: u32, here: &Reader<'_>) -> Result<(), DecodeError> {
        let at = |offset_bytes, problem| {
            Err(DecodeError::new(Section::ClusterDirectory, here.offset_bytes() + offset_bytes, problem))
        };
        if self.presence == 0 {
            let fields = [
                (8, "group offset", self.offset_bytes),
                (12, "stored length", self.stored_len_bytes),
                (16, "raw length", self.raw_len_bytes),
                (20, "group checksum", self.checksum),
            ];
            return match fields.into_iter().find(|(_, _, found)| *found != 0) {
                Some((offset_bytes, field, found)) => {
                    at(offset_bytes, Problem::NotZero { field, found: found.into() })
                }
                None => Ok(()),
            };
        }
        if self.offset_bytes != end_bytes {
            let (found, expected) = (self.offset_bytes.into(), end_bytes.into());
            return at(8, Problem::Disagrees { field: "group offset", found, expected });
        }
        let raw_min = header_len_bytes(ClusterTier::L1) as u32 + self.presence.count_ones();
        if self.raw_len_bytes < raw_min {
            let allowed = "at least the header and a byte for each chunk";
            return at(
                16,
                Problem::OutOfRange { field: "raw length", found: self.raw_len_bytes.into(), allowed },
            );
        }
        let allowed = match codec {
            Codec::None if self.is_compressed() => "the raw length, as the frame names no codec",
            _ if self.stored_len_bytes == 0 || self.stored_len_bytes > self.raw_len_bytes => {
                "1 to the raw length"
            }
            _ => return Ok(()),
        };
        let found = self.stored_len_bytes.into();
        at(12, Problem::OutOfRange { field: "stored length", found, allowed })
    }
}

/// A checked directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directory<'a> {
    pub(super) tier: ClusterTier,
    /// The slots of each group.
    pub(super) group_slot_count: u16,
    /// Each group, with the number of chunks in the groups before it.
    groups: Vec<(GroupEntry, u16)>,
    slots: Cow<'a, [[u8; SLOT_LEN_BYTES]]>,
}

/// The entries of groups and slots: of each group also the number of chunks in the groups before it.
type Entries<'e> = (Vec<(GroupEntry, u16)>, &'e [[u8; SLOT_LEN_BYTES]]);

impl<'a> Directory<'a> {
    /// Reads a directory. The reader ends after it. Allocates at most 100 kB for entries that are compressed.
    pub(super) fn parse(reader: &mut Reader<'a>, codec: Codec) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let head = Head::parse(reader)?;
        if !head.is_compressed() {
            let (groups, slots) = parse_entries(reader, &start, head, codec)?;
            return Ok(Self::new(head, groups, Cow::Borrowed(slots)));
        }
        let at = reader.offset_bytes();
        let raw = decompress_entries(reader, head, codec)?;
        let mut entries = Reader::at_offset(&raw, at, Section::ClusterDirectory);
        let (groups, slots) = parse_entries(&mut entries, &start, head, codec)?;
        let slots = Cow::Owned(slots.to_vec());
        Ok(Self::new(head, groups, slots))
    }

    const fn new(head: Head, groups: Vec<(GroupEntry, u16)>, slots: Cow<'a, [[u8; SLOT_LEN_BYTES]]>) -> Self {
        Self { tier: head.tier, group_slot_count: head.group_slot_count, groups, slots }
    }

    /// Appends the directory of all groups of the tier, in order, and of their chunks in the same order. Those
    /// of cold clusters with Zstandard are compressed.
    pub(super) fn encode(
        tier: ClusterTier,
        codec: Codec,
        groups: &[GroupEntry],
        slots: &[SlotInfo],
        out: &mut Vec<u8>,
    ) {
        debug_assert_eq!(groups.len(), tier.group_count());
        let mut entries = Vec::new();
        encode_entries(groups, slots, &mut Writer::new(&mut entries));
        let is_compact = is_compact(tier, codec);
        if is_compact {
            let mut compressed = Vec::new();
            compress(codec, Effort::Fast, &entries, &mut compressed);
            if compressed.len() < entries.len() {
                entries = compressed;
            }
        }
        let stored_len_bytes = is_compact.then_some(entries.len() as u32);
        let mut writer = Writer::new(out);
        let (present_count, group_slot_count) = (slots.len() as u32, written_group_slot_count(tier));
        Head { tier, present_count, group_slot_count, stored_len_bytes }.encode(&mut writer);
        writer.bytes(&entries);
    }

    /// Every group, including those without chunks.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u8, GroupEntry)> + use<'_, 'a> {
        (0_u8..).zip(self.groups.iter().map(|(entry, _)| *entry))
    }

    pub(super) fn group(&self, group: u8) -> Option<GroupEntry> {
        self.groups.get(usize::from(group)).map(|(entry, _)| *entry)
    }

    pub(super) fn present_count(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of all groups as stored.
    pub(super) fn body_len_bytes(&self) -> usize {
        let end =
            |(_, entry): (u8, GroupEntry)| entry.offset_bytes as usize + entry.stored_len_bytes as usize;
        self.groups().map(end).max().unwrap_or(0)
    }

    /// The groups in the order of their bytes, each once.
    pub(super) fn stored_groups(&self) -> impl Iterator<Item = GroupEntry> + use<'_, 'a> {
        let mut end_bytes = 0;
        self.groups().filter_map(move |(_, entry)| {
            let is_first = entry.presence != 0 && entry.offset_bytes == end_bytes;
            end_bytes += if is_first { entry.stored_len_bytes } else { 0 };
            is_first.then_some(entry)
        })
    }

    pub(super) fn slot(&self, slot: Slot) -> Option<SlotInfo> {
        let (entry, before) = self.groups.get(usize::from(self.group_of(slot)))?;
        let bit = 1_u64 << (slot.stored_order() % self.group_slot_count);
        if slot.tier() != self.tier || entry.presence & bit == 0 {
            return None;
        }
        let rank = (entry.presence & (bit - 1)).count_ones() as usize;
        self.slots.get(usize::from(*before) + rank).map(slot_info)
    }

    /// The group of a slot.
    pub(super) const fn group_of(&self, slot: Slot) -> u8 {
        (slot.stored_order() / self.group_slot_count) as u8
    }

    /// Every present slot, group by group.
    pub(super) fn slots(&self) -> impl Iterator<Item = (Slot, SlotInfo)> + use<'_, 'a> {
        let present = self.groups.iter().zip(0_u16..).flat_map(move |((entry, _), group)| {
            (0..self.group_slot_count).filter(|place| entry.presence >> place & 1 == 1).filter_map(
                move |place| Slot::at_stored_order(self.tier, group * self.group_slot_count + place),
            )
        });
        present.zip(self.slots.iter().map(slot_info))
    }
}

/// The slots of each group of a new cluster.
pub(super) const fn written_group_slot_count(tier: ClusterTier) -> u16 {
    (tier.slot_count() / tier.group_count()) as u16
}

// The head can name no other groups.
const _: () = assert!(written_group_slot_count(ClusterTier::L1) == SLAB_SLOT_COUNT);
const _: () = assert!(written_group_slot_count(ClusterTier::L2) == CUBE_SLOT_COUNT);

/// Whether equal groups of a new cluster are stored once.
pub(super) fn written_shares_groups(tier: ClusterTier, codec: Codec) -> bool {
    tier == ClusterTier::L1 || is_compact(tier, codec)
}

/// Whether a cluster gets a directory of version 2, whose entries are compressed.
pub(super) fn is_compact(tier: ClusterTier, codec: Codec) -> bool {
    tier == ClusterTier::L2 && codec == Codec::Zstd
}

/// The compressed entries of a row's directory, decompressed, and their fields; `None` if they are stored as they are, or
/// damaged.
pub fn trace_entries(tier: ClusterTier, key: &[u8], row: &[u8]) -> Option<(Vec<u8>, Vec<Span>)> {
    let frame = FrameView::open(Space::of_cluster(tier), key, row).ok()?;
    let codec = frame.header().codec;
    let mut reader = Reader::new(frame.payload(), Section::ClusterDirectory);
    let head = Head::parse(&mut reader).ok().filter(|head| head.is_compressed())?;
    let raw = decompress_entries(&mut reader, head, codec).ok()?;
    let trace = Trace::default();
    let mut entries = Reader::new(&raw, Section::ClusterDirectory).traced(Some(&trace));
    // An error is reported where the row is read.
    let _ = parse_entries(&mut entries, &reader, head, codec);
    Some((raw, trace.into_inner()))
}

/// Takes compressed entries. At most 51 kB when they are decompressed.
fn decompress_entries(reader: &mut Reader<'_>, head: Head, codec: Codec) -> Result<Vec<u8>, DecodeError> {
    let at = reader.offset_bytes();
    let block = reader.take("entries", head.stored_len_bytes.unwrap_or_default() as usize)?;
    let mut raw = Vec::new();
    decompress(codec, block, head.entries_len_bytes(), &mut raw)
        .map_err(|problem| DecodeError::new(Section::ClusterDirectory, at, problem))?;
    Ok(raw)
}

/// Reads the entries of groups and slots. `start` is at the first byte of the directory.
fn parse_entries<'e>(
    reader: &mut Reader<'e>,
    start: &Reader<'_>,
    head: Head,
    codec: Codec,
) -> Result<Entries<'e>, DecodeError> {
    let (mut end_bytes, mut present) = (0_u32, 0_u32);
    let mut groups = Vec::with_capacity(head.group_count());
    for _ in 0..head.group_count() {
        let here = reader.clone();
        let entry = GroupEntry::parse(reader)?;
        let is_shared = head.shares_groups()
            && entry.presence != 0
            && groups.iter().any(|(earlier, _)| entry.is_shared_with(earlier));
        if is_shared {
            groups.push((entry, present as u16));
            present += entry.presence.count_ones();
            continue;
        }
        if entry.presence.checked_shr(head.group_slot_count.into()).unwrap_or(0) != 0 {
            let (field, allowed) = ("presence", "below 65536, as a group has 16 places");
            let problem = Problem::OutOfRange { field, found: entry.presence, allowed };
            return Err(DecodeError::new(Section::ClusterDirectory, here.offset_bytes(), problem));
        }
        entry.check(codec, end_bytes, &here)?;
        let Some(end) = end_bytes.checked_add(entry.stored_len_bytes) else {
            let (field, found) = ("stored length", entry.stored_len_bytes.into());
            let problem = Problem::OutOfRange { field, found, allowed: "less than 4 GiB for all groups" };
            return Err(DecodeError::new(Section::ClusterDirectory, here.offset_bytes() + 12, problem));
        };
        groups.push((entry, present as u16));
        end_bytes = end;
        present += entry.presence.count_ones();
    }
    if present != head.present_count {
        let (found, expected) = (head.present_count.into(), present.into());
        let problem = Problem::Disagrees { field: "present count", found, expected };
        return Err(DecodeError::new(Section::ClusterDirectory, start.offset_bytes() + 4, problem));
    }
    let mut entries = reader.clone().traced(None);
    let (slots, _) = entries.take_items("slots", present.into(), SLOT_LEN_BYTES as u64)?.as_chunks();
    if reader.trace().is_some() {
        for _ in slots {
            reader.u64("chunk version")?;
            reader.u32("chunk schema generation")?;
        }
    } else {
        *reader = entries;
    }
    Ok((groups, slots))
}

fn encode_entries(groups: &[GroupEntry], slots: &[SlotInfo], writer: &mut Writer<'_>) {
    for group in groups {
        writer.u64(group.presence);
        writer.u32(group.offset_bytes);
        writer.u32(group.stored_len_bytes);
        writer.u32(group.raw_len_bytes);
        writer.u32(group.checksum);
    }
    for slot in slots {
        writer.u64(slot.version);
        writer.u32(slot.schema_generation);
    }
}

fn slot_info(bytes: &[u8; SLOT_LEN_BYTES]) -> SlotInfo {
    let [v0, v1, v2, v3, v4, v5, v6, v7, generation @ ..] = *bytes;
    SlotInfo {
        version: u64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7]),
        schema_generation: u32::from_le_bytes(generation),
    }
}
