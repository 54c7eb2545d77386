//! The head of a cluster's directory. It determines how many bytes of a cluster's payload the frame's checksum covers.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 1 | directory version | 3 in L1, 5 in L2; 1 and 2 are read in both, 4 in L2 |
//! | 1 | 1 | scale level | 1 = L1, 2 = L2 |
//! | 2 | 2 | reserved | 0 |
//! | 4 | 4 | present count | chunks in the cluster |
//! | 8 | 4 | entries length | only in versions 2, 4 and 5: bytes of the entries as stored |
//! | 12 | 8 | equal planes | only in version 5: bit b: the bytes of plane b are equal, and one of them is stored |

use crate::wire::{Reader, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// Slots of a cube of 4³ chunks, which is a group in versions 1 and 2.
pub(crate) const CUBE_SLOT_COUNT: u16 = 64;
const LEN_BYTES: usize = 8;
const ENTRIES_LEN_LEN_BYTES: usize = 4;
const EQUAL_PLANES_LEN_BYTES: usize = 8;
/// The length of a directory entry for a group.
pub(crate) const GROUP_LEN_BYTES: usize = 24;
/// The length of a directory entry for a present chunk.
pub(crate) const SLOT_LEN_BYTES: usize = 12;

/// The layout of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// Entries are stored as they are, and every group has its own bytes.
    Plain = 1,
    /// Entries are compressed if that makes them shorter. From here on equal groups may be listed at one place.
    Compact = 2,
    /// A warm cluster of four groups.
    Slabs = 3,
    /// A cold cluster of 128 groups, whose entries are in byte planes, and compressed if that makes them shorter.
    Halves = 4,
    /// As [`Halves`](Self::Halves). Planes of equal bytes are one byte.
    ShortPlanes = 5,
}

impl Version {
    const NEWEST: Self = Self::ShortPlanes;

    /// The version of a new cluster.
    pub(crate) const fn written(tier: ClusterTier) -> Self {
        match tier {
            ClusterTier::L1 => Self::Slabs,
            ClusterTier::L2 => Self::ShortPlanes,
        }
    }

    /// The slots of each group: 64, 16 or 32.
    pub(crate) const fn group_slot_count(self) -> u16 {
        match self {
            Self::Plain | Self::Compact => CUBE_SLOT_COUNT,
            Self::Slabs => CUBE_SLOT_COUNT / 4,
            Self::Halves | Self::ShortPlanes => CUBE_SLOT_COUNT / 2,
        }
    }

    /// Whether equal groups may be listed at one place.
    pub(crate) fn shares_groups(self) -> bool {
        self != Self::Plain
    }

    /// Whether the head has the entries' length, as they may be compressed.
    pub(crate) const fn has_entries_len(self) -> bool {
        matches!(self, Self::Compact | Self::Halves | Self::ShortPlanes)
    }

    /// Whether the head says which planes are one byte.
    pub(crate) const fn shortens_planes(self) -> bool {
        matches!(self, Self::ShortPlanes)
    }

    /// The version of a stored byte, in the directory of a tier. `start` is at the byte.
    fn parse(byte: u8, tier: ClusterTier, start: &Reader<'_>) -> Result<Self, DecodeError> {
        let allowed = match (byte, tier) {
            (1, _) => return Ok(Self::Plain),
            (2, _) => return Ok(Self::Compact),
            (3, ClusterTier::L1) => return Ok(Self::Slabs),
            (4, ClusterTier::L2) => return Ok(Self::Halves),
            (5, ClusterTier::L2) => return Ok(Self::ShortPlanes),
            (_, ClusterTier::L1) => "1 to 3 in L1",
            (_, ClusterTier::L2) => "1, 2, 4 or 5 in L2",
        };
        let (field, found) = ("directory version", byte.into());
        Err(start.error(Problem::OutOfRange { field, found, allowed }))
    }
}

/// The content of the first 8 bytes, 12 or 20.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) version: Version,
    pub(crate) tier: ClusterTier,
    pub(crate) present_count: u32,
    /// The length of the entries as stored. Only versions 2, 4 and 5 store it.
    pub(crate) stored_len_bytes: u32,
    /// Bit b: plane b is stored as the one byte that all of it is. First the planes of groups, then those of chunks.
    pub(crate) equal_planes: u64,
}

impl Head {
    /// The length of the whole directory as stored.
    pub(crate) const fn directory_len_bytes(self) -> usize {
        let mut len_bytes = LEN_BYTES;
        if self.version.has_entries_len() {
            len_bytes += ENTRIES_LEN_LEN_BYTES;
        }
        if self.version.shortens_planes() {
            len_bytes += EQUAL_PLANES_LEN_BYTES;
        }
        len_bytes + self.stored_len_bytes as usize
    }

    /// Whether the entries are compressed.
    pub(crate) const fn is_compressed(self) -> bool {
        (self.stored_len_bytes as usize) < self.entries_len_bytes()
    }

    /// Whether the entries are in byte planes: byte 0 of all, then byte 1 of all, and so on.
    pub(crate) const fn is_in_planes(self) -> bool {
        matches!(self.version, Version::Halves | Version::ShortPlanes)
    }

    /// The length of the entries of groups and chunks, decompressed: 52,224 at most.
    pub(crate) const fn entries_len_bytes(self) -> usize {
        self.groups_len_bytes()
            + len_bytes(SLOT_LEN_BYTES, self.equal_planes_of_slots(), self.present_count as usize)
    }

    /// The length of the entries of groups, decompressed.
    pub(crate) const fn groups_len_bytes(self) -> usize {
        len_bytes(GROUP_LEN_BYTES, self.equal_planes_of_groups(), self.group_count())
    }

    pub(crate) const fn equal_planes_of_groups(self) -> u64 {
        self.equal_planes & ((1 << GROUP_LEN_BYTES) - 1)
    }

    pub(crate) const fn equal_planes_of_slots(self) -> u64 {
        self.equal_planes >> GROUP_LEN_BYTES
    }

    /// The number of groups: 1, 4, 64 or 128.
    pub(crate) const fn group_count(self) -> usize {
        self.tier.slot_count() / self.version.group_slot_count() as usize
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(Section::ClusterDirectory);
        let start = reader.clone();
        let version = reader.version_u8("directory version", Version::NEWEST as u8)?;
        let tier = reader.scale_level()?;
        let version = Version::parse(version, tier, &start)?;
        let here = reader.clone();
        let reserved = reader.u16("reserved")?;
        if reserved != 0 {
            return Err(here.error(Problem::NotZero { field: "reserved", found: reserved.into() }));
        }
        let here = reader.clone();
        let present_count = reader.u32("present count")?;
        if present_count == 0 || present_count as usize > tier.slot_count() {
            let allowed = match tier {
                ClusterTier::L1 => "1 to 64",
                ClusterTier::L2 => "1 to 4096",
            };
            let (field, found) = ("present count", present_count.into());
            return Err(here.error(Problem::OutOfRange { field, found, allowed }));
        }
        let mut head = Self { version, tier, present_count, stored_len_bytes: 0, equal_planes: 0 };
        head.stored_len_bytes = head.entries_len_bytes() as u32;
        if version.has_entries_len() {
            let here = reader.clone();
            let len_bytes = reader.u32("entries length")?;
            if version.shortens_planes() {
                let here = reader.clone();
                head.equal_planes = reader.u64("equal planes")?;
                if head.equal_planes >> (GROUP_LEN_BYTES + SLOT_LEN_BYTES) != 0 {
                    let (field, found) = ("equal planes", head.equal_planes);
                    let allowed = "below 68719476736, as there are 36 planes";
                    return Err(here.error(Problem::OutOfRange { field, found, allowed }));
                }
                head.stored_len_bytes = head.entries_len_bytes() as u32;
            }
            if len_bytes == 0 || len_bytes > head.stored_len_bytes {
                let (field, found) = ("entries length", len_bytes.into());
                let allowed = "1 to what the entries take decompressed";
                return Err(here.error(Problem::OutOfRange { field, found, allowed }));
            }
            head.stored_len_bytes = len_bytes;
        }
        Ok(head)
    }

    pub(crate) fn encode(self, writer: &mut Writer<'_>) {
        writer.u8(self.version as u8);
        writer.u8(self.tier.scale_level());
        writer.u16(0);
        writer.u32(self.present_count);
        if self.version.has_entries_len() {
            writer.u32(self.stored_len_bytes);
        }
        if self.version.shortens_planes() {
            writer.u64(self.equal_planes);
        }
    }
}

/// The length of a number of entries, if some of their planes are one byte.
const fn len_bytes(entry_len_bytes: usize, equal_planes: u64, count: usize) -> usize {
    let short = equal_planes.count_ones() as usize;
    (entry_len_bytes - short) * count + short
}
