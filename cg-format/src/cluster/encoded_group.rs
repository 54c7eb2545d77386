//! One group of a cluster, compressed.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::assemble::{AssembleError, MAX_RAW_BYTES};
use super::directory::GroupEntry;
use super::{Slot, SlotInfo, fields, header};
use crate::ClusterTier;
use crate::codec::{Effort, compress};
use crate::frame::Codec;

/// A group's chunks by place.
pub(super) type GroupChunks<'c> = BTreeMap<u8, (SlotInfo, Cow<'c, [u8]>)>;

/// A group as stored in a cluster: its compressed bytes and its directory entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedGroup<'a> {
    /// Without the offset, which depends on earlier groups.
    pub(super) entry: GroupEntry,
    pub(super) stored: Cow<'a, [u8]>,
    pub(super) slots: Vec<SlotInfo>,
}

impl EncodedGroup<'_> {
    /// The length of the group in its cluster's row, without its directory entry.
    pub fn stored_bytes(&self) -> usize {
        self.stored.len()
    }

    /// The number of its chunks.
    pub fn present_count(&self) -> usize {
        self.slots.len()
    }

    /// The same group without borrowed data.
    pub fn into_owned(self) -> EncodedGroup<'static> {
        let Self { entry, stored, slots } = self;
        EncodedGroup { entry, stored: Cow::Owned(stored.into_owned()), slots }
    }

    pub(super) fn encode(
        tier: ClusterTier,
        codec: Codec,
        chunks: &GroupChunks<'_>,
    ) -> Result<Self, AssembleError> {
        if chunks.is_empty() {
            return Ok(Self::default());
        }
        let values_len_bytes: usize = chunks.values().map(|(_, value)| value.len()).sum();
        if header::header_len_bytes(ClusterTier::L1) + values_len_bytes > MAX_RAW_BYTES {
            return Err(AssembleError::TooLarge { form: "decompressed", max_bytes: MAX_RAW_BYTES });
        }
        let presence = chunks.keys().fold(0, |all, place| all | 1 << place);
        let (raw_len_bytes, stored) =
            by_field(tier, codec, presence, chunks).unwrap_or_else(|| in_seed_form(tier, codec, chunks));
        let entry = GroupEntry {
            presence,
            offset_bytes: 0,
            stored_len_bytes: stored.len() as u32,
            raw_len_bytes,
            checksum: crc32c::crc32c(&stored),
        };
        let slots = chunks.values().map(|(info, _)| *info).collect();
        Ok(Self { entry, stored: Cow::Owned(stored), slots })
    }
}

/// The length of a group by field, and its stored bytes. `None` if a group of this cluster, or this one, keeps the seed
/// form. So does a small one, because all groups have at least the length of its header, and one that does not shrink.
fn by_field(
    tier: ClusterTier,
    codec: Codec,
    presence: u64,
    chunks: &GroupChunks<'_>,
) -> Option<(u32, Vec<u8>)> {
    if !fields::is_allowed(tier, codec) {
        return None;
    }
    let values: Vec<_> = chunks.values().map(|(_, value)| &**value).collect();
    let raw = fields::encode(presence, &values)?;
    if raw.len() < header::header_len_bytes(ClusterTier::L1) + values.len() || raw.len() > MAX_RAW_BYTES {
        return None;
    }
    let mut stored = Vec::new();
    compress(codec, effort_for(tier), &raw, &mut stored);
    (stored.len() < raw.len()).then_some((raw.len() as u32, stored))
}

fn in_seed_form(tier: ClusterTier, codec: Codec, chunks: &GroupChunks<'_>) -> (u32, Vec<u8>) {
    let mut raw = Vec::new();
    let slot = |place| Slot::new(ClusterTier::L1, place).expect("a place is a slot of an L1 cluster");
    let values = chunks.iter().map(|(place, (_, value))| (slot((*place).into()), &**value));
    header::encode(ClusterTier::L1, values, &mut raw);
    let raw_len_bytes = raw.len() as u32;
    if codec != Codec::None {
        let mut compressed = Vec::new();
        compress(codec, effort_for(tier), &raw, &mut compressed);
        if compressed.len() < raw.len() {
            return (raw_len_bytes, compressed);
        }
    }
    (raw_len_bytes, raw)
}

/// A cold cluster is written once, in the background, and kept for long.
const fn effort_for(tier: ClusterTier) -> Effort {
    match tier {
        ClusterTier::L1 => Effort::Fast,
        ClusterTier::L2 => Effort::Small,
    }
}
