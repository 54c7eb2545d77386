//! The head of a cluster's directory. It determines how many bytes of a cluster's payload the frame's checksum covers.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 1 | directory version | 1, or 2 with Zstandard in L2 |
//! | 1 | 1 | scale level | 1 = L1, 2 = L2 |
//! | 2 | 2 | reserved | 0 |
//! | 4 | 4 | present count | chunks in the cluster |
//! | 8 | 4 | entries length | only in version 2: bytes of the entries as stored |

use crate::wire::{Reader, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The version of a directory whose entries are stored as they are.
const PLAIN_VERSION: u8 = 1;
/// The version of a directory whose entries are compressed if that makes them shorter, and which lists equal groups at
/// one place. The newest.
const COMPACT_VERSION: u8 = 2;
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
        self.tier.group_count() * GROUP_LEN_BYTES + self.present_count as usize * SLOT_LEN_BYTES
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(Section::ClusterDirectory);
        let version = reader.version_u8("directory version", COMPACT_VERSION)?;
        let tier = reader.scale_level()?;
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
        let mut head = Self { tier, present_count, stored_len_bytes: None };
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
        writer.u8(self.stored_len_bytes.map_or(PLAIN_VERSION, |_| COMPACT_VERSION));
        writer.u8(self.tier.scale_level());
        writer.u16(0);
        writer.u32(self.present_count);
        if let Some(len_bytes) = self.stored_len_bytes {
            writer.u32(len_bytes);
        }
    }
}
