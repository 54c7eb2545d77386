//! The head of a cluster's directory. It determines how many bytes of a cluster's payload the frame's checksum covers.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 1 | directory version | 3 in L1; 2 with Zstandard in L2, 1 with other codecs; 1 and 2 are read in both |
//! | 1 | 1 | scale level | 1 = L1, 2 = L2 |
//! | 2 | 2 | reserved | 0 |
//! | 4 | 4 | present count | chunks in the cluster |
//! | 8 | 4 | entries length | only in version 2: bytes of the entries as stored |

use crate::wire::{Reader, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The version of a directory whose entries are stored as they are.
const PLAIN_VERSION: u8 = 1;
/// The version of a directory whose entries are compressed if that makes them shorter, and which lists equal groups at
/// one place.
const COMPACT_VERSION: u8 = 2;
/// The version of a warm cluster's directory with four groups, which lists equal ones at one place. The newest.
const SLABS_VERSION: u8 = 3;
/// Slots of a group of 4³ chunks.
pub(crate) const CUBE_SLOT_COUNT: u16 = 64;
/// Slots of a group of 1×4×4 chunks.
pub(crate) const SLAB_SLOT_COUNT: u16 = 16;
const LEN_BYTES: usize = 8;
const ENTRIES_LEN_LEN_BYTES: usize = 4;
const GROUP_LEN_BYTES: usize = 24;
/// The length of a directory entry for a present chunk.
pub(crate) const SLOT_LEN_BYTES: usize = 12;

/// The content of the first 8 bytes, or 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tier: ClusterTier,
    pub(crate) present_count: u32,
    /// The slots of each group: 16 in version 3, or 64.
    pub(crate) group_slot_count: u16,
    /// The length of the entries as stored, in version 2.
    pub(crate) stored_len_bytes: Option<u32>,
}

impl Head {
    /// The length of the whole directory as stored.
    pub(crate) const fn directory_len_bytes(self) -> usize {
        match self.stored_len_bytes {
            None => LEN_BYTES + self.entries_len_bytes(),
            Some(len_bytes) => LEN_BYTES + ENTRIES_LEN_LEN_BYTES + len_bytes as usize,
        }
    }

    /// Whether the entries are compressed.
    pub(crate) const fn is_compressed(self) -> bool {
        match self.stored_len_bytes {
            None => false,
            Some(len_bytes) => (len_bytes as usize) < self.entries_len_bytes(),
        }
    }

    /// The length of the entries of groups and chunks, decompressed: 50,688 at most.
    pub(crate) const fn entries_len_bytes(self) -> usize {
        self.group_count() * GROUP_LEN_BYTES + self.present_count as usize * SLOT_LEN_BYTES
    }

    /// The number of groups: 1, 4 or 64.
    pub(crate) const fn group_count(self) -> usize {
        self.tier.slot_count() / self.group_slot_count as usize
    }

    /// Whether equal groups may be listed at one place.
    pub(crate) const fn shares_groups(self) -> bool {
        self.version() != PLAIN_VERSION
    }

    const fn version(self) -> u8 {
        match self.stored_len_bytes {
            Some(_) => COMPACT_VERSION,
            None if self.group_slot_count == SLAB_SLOT_COUNT => SLABS_VERSION,
            None => PLAIN_VERSION,
        }
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(Section::ClusterDirectory);
        let start = reader.clone();
        let version = reader.version_u8("directory version", SLABS_VERSION)?;
        let tier = reader.scale_level()?;
        if version == SLABS_VERSION && tier != ClusterTier::L1 {
            let (field, found) = ("directory version", version.into());
            return Err(start.error(Problem::OutOfRange { field, found, allowed: "1 or 2 in L2" }));
        }
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
        let group_slot_count = if version == SLABS_VERSION { SLAB_SLOT_COUNT } else { CUBE_SLOT_COUNT };
        let mut head = Self { tier, present_count, group_slot_count, stored_len_bytes: None };
        if version == COMPACT_VERSION {
            let here = reader.clone();
            let len_bytes = reader.u32("entries length")?;
            if len_bytes == 0 || len_bytes as usize > head.entries_len_bytes() {
                let (field, found) = ("entries length", len_bytes.into());
                let allowed = "1 to what the entries take decompressed";
                return Err(here.error(Problem::OutOfRange { field, found, allowed }));
            }
            head.stored_len_bytes = Some(len_bytes);
        }
        Ok(head)
    }

    pub(crate) fn encode(self, writer: &mut Writer<'_>) {
        writer.u8(self.version());
        writer.u8(self.tier.scale_level());
        writer.u16(0);
        writer.u32(self.present_count);
        if let Some(len_bytes) = self.stored_len_bytes {
            writer.u32(len_bytes);
        }
    }
}
