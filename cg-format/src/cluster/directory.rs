//! The directory of a stored cluster: its chunks, their versions, and the places of their groups.
//!
//! It begins with its [`Head`]. Then come the entries, which the row's codec compresses in versions 2, 4 and 5. An L2
//! row has 128 groups from version 4 on, and 64 before. An L1 row has four in version 3, and one before. Each group
//! takes 24 bytes:
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
//!
//! In versions 4 and 5 the entries are in [planes]. In version 5 planes of equal bytes are one byte.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::header::header_len_bytes;
use super::planes::{self, SlotEntries};
use super::{Slot, SlotInfo};
use crate::codec::{Effort, compress, decompress};
use crate::frame::head::{GROUP_LEN_BYTES, Head, SLOT_LEN_BYTES, Version};
use crate::frame::{Codec, FrameView};
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section, Space};

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
    version: Version,
    /// Each group, with the number of chunks in the groups before it.
    groups: Vec<(GroupEntry, u16)>,
    slots: SlotEntries<'a>,
}

impl<'a> Directory<'a> {
    /// Reads a directory. The reader ends after it. Allocates at most 100 kB: the entries if they are compressed, and
    /// those of groups once more.
    pub(super) fn parse(reader: &mut Reader<'a>, codec: Codec) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let head = Head::parse(reader)?;
        let (groups, slots) = if head.is_compressed() || head.is_in_planes() {
            let at = reader.offset_bytes();
            let entries = take_entries(reader, head, codec)?;
            let rows = group_rows(&entries, head);
            let mut rows = Reader::at_offset(&rows, at, Section::ClusterDirectory);
            let groups = parse_groups(&mut rows, &start, head, codec)?;
            (groups, SlotEntries::after_groups(entries, head))
        } else {
            let groups = parse_groups(reader, &start, head, codec)?;
            (groups, SlotEntries::of_rows(take_slots(reader, head)?))
        };
        Ok(Self { tier: head.tier, version: head.version, groups, slots })
    }

    /// Appends the directory of all groups of a version and tier, in order, and of their chunks in the same order. The
    /// entries are compressed if the version allows it and that makes them shorter.
    pub(super) fn encode(
        (version, tier): (Version, ClusterTier),
        codec: Codec,
        groups: &[GroupEntry],
        slots: &[SlotInfo],
        out: &mut Vec<u8>,
    ) {
        let present_count = slots.len() as u32;
        let mut head = Head { version, tier, present_count, stored_len_bytes: 0, equal_planes: 0 };
        debug_assert_eq!(groups.len(), head.group_count());
        let mut entries = Vec::new();
        encode_entries(groups, slots, &mut Writer::new(&mut entries));
        if head.is_in_planes() {
            let (groups, slots) = entries.split_at(groups.len() * GROUP_LEN_BYTES);
            if version.shortens_planes() {
                head.equal_planes = planes::equal_planes(groups, GROUP_LEN_BYTES)
                    | planes::equal_planes(slots, SLOT_LEN_BYTES) << GROUP_LEN_BYTES;
            }
            let mut in_planes = Vec::with_capacity(head.entries_len_bytes());
            planes::of_rows(groups, GROUP_LEN_BYTES, head.equal_planes_of_groups(), &mut in_planes);
            planes::of_rows(slots, SLOT_LEN_BYTES, head.equal_planes_of_slots(), &mut in_planes);
            entries = in_planes;
        }
        if head.version.has_entries_len() {
            let mut compressed = Vec::new();
            compress(codec, Effort::Fast, &entries, &mut compressed);
            if compressed.len() < entries.len() {
                entries = compressed;
            }
        }
        head.stored_len_bytes = entries.len() as u32;
        let mut writer = Writer::new(out);
        head.encode(&mut writer);
        writer.bytes(&entries);
    }

    /// The slots of each group.
    pub(super) const fn group_slot_count(&self) -> u16 {
        self.version.group_slot_count()
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
        let bit = 1_u64 << (slot.stored_order() % self.group_slot_count());
        if slot.tier() != self.tier || entry.presence & bit == 0 {
            return None;
        }
        let rank = (entry.presence & (bit - 1)).count_ones() as usize;
        self.slots.get(usize::from(*before) + rank)
    }

    /// The group of a slot.
    pub(super) const fn group_of(&self, slot: Slot) -> u8 {
        (slot.stored_order() / self.group_slot_count()) as u8
    }

    /// Every present slot, group by group.
    pub(super) fn slots(&self) -> impl Iterator<Item = (Slot, SlotInfo)> + use<'_, 'a> {
        let present = self.groups.iter().zip(0_u16..).flat_map(move |((entry, _), group)| {
            (0..self.group_slot_count()).filter(|place| entry.presence >> place & 1 == 1).filter_map(
                move |place| Slot::at_stored_order(self.tier, group * self.group_slot_count() + place),
            )
        });
        present.zip(self.slots.iter())
    }
}

// A written cluster has as many groups as its tier says.
const _: () = assert!(written_group_count(ClusterTier::L1) == ClusterTier::L1.group_count());
const _: () = assert!(written_group_count(ClusterTier::L2) == ClusterTier::L2.group_count());

const fn written_group_count(tier: ClusterTier) -> usize {
    tier.slot_count() / Version::written(tier).group_slot_count() as usize
}

/// The entries of a row's directory, decompressed and one after another, and their fields; `None` if they are stored so,
/// or damaged.
pub fn trace_entries(tier: ClusterTier, key: &[u8], row: &[u8]) -> Option<(Vec<u8>, Vec<Span>)> {
    let frame = FrameView::open(Space::of_cluster(tier), key, row).ok()?;
    let codec = frame.header().codec;
    let mut reader = Reader::new(frame.payload(), Section::ClusterDirectory);
    let head = Head::parse(&mut reader).ok().filter(|head| head.is_compressed() || head.is_in_planes())?;
    let entries = take_entries(&mut reader, head, codec).ok()?;
    let mut rows = group_rows(&entries, head).into_owned();
    let slots = entries.get(head.groups_len_bytes()..).unwrap_or_default();
    if head.is_in_planes() {
        let (count, equal) = (head.present_count as usize, head.equal_planes_of_slots());
        planes::to_rows(slots, (count, SLOT_LEN_BYTES), equal, &mut rows);
    } else {
        rows.extend_from_slice(slots);
    }
    let trace = Trace::default();
    let mut entries = Reader::new(&rows, Section::ClusterDirectory).traced(Some(&trace));
    // An error is reported where the row is read.
    let _ = parse_groups(&mut entries, &reader, head, codec).and_then(|_| take_slots(&mut entries, head));
    Some((rows, trace.into_inner()))
}

/// Takes entries that may be compressed. At most 53 kB when they are decompressed.
fn take_entries<'a>(reader: &mut Reader<'a>, head: Head, codec: Codec) -> Result<Cow<'a, [u8]>, DecodeError> {
    let at = reader.offset_bytes();
    let block = reader.take("entries", head.stored_len_bytes as usize)?;
    if !head.is_compressed() {
        return Ok(Cow::Borrowed(block));
    }
    let mut raw = Vec::new();
    decompress(codec, block, head.entries_len_bytes(), &mut raw)
        .map_err(|problem| DecodeError::new(Section::ClusterDirectory, at, problem))?;
    Ok(Cow::Owned(raw))
}

/// The entries of groups, one after another.
fn group_rows(entries: &[u8], head: Head) -> Cow<'_, [u8]> {
    let groups = entries.get(..head.groups_len_bytes()).unwrap_or_default();
    if !head.is_in_planes() {
        return Cow::Borrowed(groups);
    }
    let mut rows = Vec::new();
    let equal = head.equal_planes_of_groups();
    planes::to_rows(groups, (head.group_count(), GROUP_LEN_BYTES), equal, &mut rows);
    Cow::Owned(rows)
}

/// Reads the entries of groups: each with the number of chunks in the groups before it. `start` is at the first byte of
/// the directory.
fn parse_groups(
    reader: &mut Reader<'_>,
    start: &Reader<'_>,
    head: Head,
    codec: Codec,
) -> Result<Vec<(GroupEntry, u16)>, DecodeError> {
    let group_slot_count = head.version.group_slot_count();
    let (mut end_bytes, mut present) = (0_u32, 0_u32);
    let mut groups = Vec::with_capacity(head.group_count());
    for _ in 0..head.group_count() {
        let here = reader.clone();
        let entry = GroupEntry::parse(reader)?;
        // Every group before takes at least one byte, so one that is not shared is not before their end.
        let is_shared = head.version.shares_groups()
            && entry.presence != 0
            && entry.offset_bytes < end_bytes
            && groups.iter().any(|(earlier, _)| entry.is_shared_with(earlier));
        if is_shared {
            groups.push((entry, present as u16));
            present += entry.presence.count_ones();
            continue;
        }
        if entry.presence.checked_shr(group_slot_count.into()).unwrap_or(0) != 0 {
            let allowed = match head.version {
                Version::Slabs => "below 65536, as a group has 16 places",
                _ => "below 4294967296, as a group has 32 places",
            };
            let problem = Problem::OutOfRange { field: "presence", found: entry.presence, allowed };
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
    Ok(groups)
}

/// Takes the entries of slots.
fn take_slots<'e>(reader: &mut Reader<'e>, head: Head) -> Result<&'e [u8], DecodeError> {
    let mut entries = reader.clone().traced(None);
    let slots = entries.take_items("slots", head.present_count.into(), SLOT_LEN_BYTES as u64)?;
    if reader.trace().is_some() {
        for _ in 0..head.present_count {
            reader.u64("chunk version")?;
            reader.u32("chunk schema generation")?;
        }
    } else {
        *reader = entries;
    }
    Ok(slots)
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
