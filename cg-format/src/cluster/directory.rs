//! The directory of a stored cluster.

use crate::wire::Reader;
use crate::{ClusterTier, DecodeError, Problem};

/// Bytes in front of the groups' entries.
pub(crate) const HEAD_LEN_BYTES: usize = 8;
/// Bytes of one group's entry.
pub(crate) const GROUP_LEN_BYTES: usize = 24;
/// Bytes of one present slot's entry.
pub(crate) const SLOT_LEN_BYTES: usize = 12;
/// The newest version of the directory's layout.
pub(crate) const VERSION: u8 = 1;

/// What the first 8 bytes of a directory say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tier: ClusterTier,
    pub(crate) present_count: usize,
}

impl Head {
    /// Bytes of the whole directory.
    pub(crate) const fn directory_len_bytes(self) -> usize {
        HEAD_LEN_BYTES + self.tier.group_count() * GROUP_LEN_BYTES + self.present_count * SLOT_LEN_BYTES
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.enter(crate::Section::ClusterDirectory);
        let here = reader.clone();
        match reader.u8("directory version")? {
            VERSION => {}
            0 => {
                let problem = Problem::OutOfRange { field: "directory version", found: 0, allowed: "1" };
                return Err(here.error(problem));
            }
            found => {
                let (field, newest) = ("directory version", VERSION.into());
                return Err(here.error(Problem::Newer { field, found: found.into(), newest }));
            }
        }
        let here = reader.clone();
        let level = reader.u8("scale level")?;
        let Some(tier) = ClusterTier::from_scale_level(level) else {
            let problem =
                Problem::OutOfRange { field: "scale level", found: level.into(), allowed: "1 or 2" };
            return Err(here.error(problem));
        };
        let here = reader.clone();
        let reserved = reader.u16("reserved")?;
        if reserved != 0 {
            return Err(here.error(Problem::NotZero { field: "reserved", found: reserved.into() }));
        }
        let here = reader.clone();
        let present = reader.u32("present count")?;
        if present == 0 || present as usize > tier.slot_count() {
            let allowed = match tier {
                ClusterTier::L1 => "1 to 64",
                ClusterTier::L2 => "1 to 4096",
            };
            let problem = Problem::OutOfRange { field: "present count", found: present.into(), allowed };
            return Err(here.error(problem));
        }
        Ok(Self { tier, present_count: present as usize })
    }
}
