//! The head of a cluster's directory. It determines how many bytes of a cluster's payload the frame's checksum covers.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 1 | directory version | 1 |
//! | 1 | 1 | scale level | 1 = L1, 2 = L2 |
//! | 2 | 2 | reserved | 0 |
//! | 4 | 4 | present count | chunks in the cluster |

use crate::wire::{Reader, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The newest version of the directory's layout, and the one that is written.
const DIRECTORY_VERSION: u8 = 1;
const LEN_BYTES: usize = 8;
const GROUP_LEN_BYTES: usize = 24;
/// The length of a directory entry for a present chunk.
pub(crate) const SLOT_LEN_BYTES: usize = 12;

/// The content of the first 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tier: ClusterTier,
    pub(crate) present_count: u32,
}

impl Head {
    /// The length of the whole directory.
    pub(crate) const fn directory_len_bytes(self) -> usize {
        let groups = self.tier.group_count() * GROUP_LEN_BYTES;
        LEN_BYTES + groups + self.present_count as usize * SLOT_LEN_BYTES
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(Section::ClusterDirectory);
        reader.version_u8("directory version", DIRECTORY_VERSION)?;
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
        Ok(Self { tier, present_count })
    }

    pub(crate) fn encode(self, writer: &mut Writer<'_>) {
        writer.u8(DIRECTORY_VERSION);
        writer.u8(self.tier.scale_level());
        writer.u16(0);
        writer.u32(self.present_count);
    }
}
