//! Builds a cluster from chunks, or from an older cluster and changes.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::directory::{Directory, GroupEntry};
use super::encoded_group::{EncodedGroup, GroupChunks};
use super::{GroupBytes, Slot, SlotInfo, StoredCluster};
use crate::frame::head::Version;
use crate::frame::{Codec, Draft};
use crate::{ClusterTier, DecodeError, Limits};

/// The maximum length of a cluster's row, including its frame: 8 MiB.
pub const MAX_STORED_BYTES: usize = 8 << 20;
/// The maximum decompressed length of all groups of a cluster, so that default [`Limits`] can read every cluster.
pub const MAX_RAW_BYTES: usize = 256 << 20;

/// Why a cluster was not built. Nothing was written; its chunks stay in their tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// The cluster would be too long. Leave its chunks in a hotter tier.
    #[error("the cluster would take more than {max_bytes} bytes {form}, so it is not formed")]
    TooLarge {
        /// `stored` or `decompressed`.
        form: &'static str,
        /// The limit that would be exceeded.
        max_bytes: usize,
    },
    /// A chunk without bytes cannot be distinguished from an absent one.
    #[error("the chunk at {slot:?} has no bytes")]
    EmptyChunk {
        /// Its slot.
        slot: Slot,
    },
    /// The slot belongs to another tier.
    #[error("{slot:?} is no slot of an {tier:?} cluster")]
    WrongTier {
        /// The slot.
        slot: Slot,
        /// The tier of the cluster.
        tier: ClusterTier,
    },
    /// A required group of the older cluster cannot be read. A group that is compressed again is required if any of its
    /// chunks is kept. A group that is copied is required only to be whole.
    #[error(transparent)]
    Damaged(#[from] DecodeError),
}

/// Collects chunks and writes them as one cluster.
///
/// [`over`](Self::over) starts from an older cluster. Then only groups with changes are decompressed and compressed
/// again; the others are copied as stored. The larger groups of a row of an earlier draft are split, and compressed
/// again. The result has the same bytes as if the same code built the whole cluster.
///
/// ```
/// use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo, StoredCluster};
/// use cg_format::{ClusterTier, Limits, Space};
/// let (tier, mut limits) = (ClusterTier::L2, Limits::default());
/// let slots = [0, 4095].map(|index| Slot::new(tier, index).unwrap());
/// let info = SlotInfo { version: 5, schema_generation: 1 };
/// let mut builder = ClusterBuilder::new(tier);
/// builder.put(slots[0], info, &b"first"[..]);
/// builder.put(slots[1], info, &b"last"[..]);
/// let row = builder.finish(&mut limits)?.unwrap().seal(Space::ClusterL2, b"key", 6);
///
/// let old = StoredCluster::open(tier, b"key", &row)?;
/// let mut merge = ClusterBuilder::over(&old);
/// merge.remove(slots[0]);
/// let row = merge.finish(&mut limits)?.unwrap().seal(Space::ClusterL2, b"key", 7);
/// assert_eq!(StoredCluster::open(tier, b"key", &row)?.present_count(), 1);
/// # Ok::<(), cg_format::cluster::AssembleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClusterBuilder<'a> {
    tier: ClusterTier,
    codec: Codec,
    base: Option<StoredCluster<'a>>,
    /// By group and place; `None` is a removal.
    changes: BTreeMap<u16, Change<'a>>,
    refused: Option<AssembleError>,
}

/// The change of one slot: a chunk, or its removal.
type Change<'a> = Option<(SlotInfo, Cow<'a, [u8]>)>;

impl<'a> ClusterBuilder<'a> {
    /// Starts without chunks. Groups are compressed with LZ4 for L1 and with Zstandard for L2.
    pub const fn new(tier: ClusterTier) -> Self {
        let codec = match tier {
            ClusterTier::L1 => Codec::Lz4,
            ClusterTier::L2 => Codec::Zstd,
        };
        Self { tier, codec, base: None, changes: BTreeMap::new(), refused: None }
    }

    /// Starts with the chunks and the codec of an older cluster.
    pub fn over(base: &StoredCluster<'a>) -> Self {
        let codec = base.codec();
        Self { codec, base: Some(base.clone()), ..Self::new(base.tier()) }
    }

    /// The tier of the cluster.
    pub const fn tier(&self) -> ClusterTier {
        self.tier
    }

    /// Selects another codec. If it differs from that of the older cluster, every compressed group is compressed again.
    pub const fn set_codec(&mut self, codec: Codec) -> &mut Self {
        self.codec = codec;
        self
    }

    /// Puts a chunk, replacing the one in the slot. [`finish`](Self::finish) refuses what cannot be stored.
    pub fn put(&mut self, slot: Slot, info: SlotInfo, value: impl Into<Cow<'a, [u8]>>) -> &mut Self {
        let value = value.into();
        if value.is_empty() {
            self.refused.get_or_insert(AssembleError::EmptyChunk { slot });
        }
        self.change(slot, Some((info, value)))
    }

    /// Removes a chunk; an absent one is not an error.
    pub fn remove(&mut self, slot: Slot) -> &mut Self {
        self.change(slot, None)
    }

    /// Writes the cluster. `None` if no chunk is left: then the caller deletes the row; an empty cluster is never
    /// stored.
    ///
    /// The groups of the older cluster that are compressed again are charged to the limits, each once. The others are
    /// copied unchecked: damage in them stays detectable.
    ///
    /// # Errors
    /// [`AssembleError::TooLarge`] over [`MAX_STORED_BYTES`] or [`MAX_RAW_BYTES`]; [`AssembleError::Damaged`] if a
    /// required group of the older cluster cannot be read; [`AssembleError::EmptyChunk`] and
    /// [`AssembleError::WrongTier`] for invalid chunks.
    pub fn finish(&self, limits: &mut Limits) -> Result<Option<Draft>, AssembleError> {
        let mut joined = Joined::new(self.tier, self.codec);
        let mut old = None;
        for group in 0..self.tier.group_count() as u8 {
            joined.push(&self.encode(group, &mut old, limits)?)?;
        }
        joined.finish()
    }

    /// Writes only one group, so that a large cluster can be built in steps or by several threads. [`join_groups`]
    /// builds the cluster from the groups. The bytes are the same as from [`finish`](Self::finish).
    ///
    /// For a builder over an older cluster, only the changes and the stored bytes of this group are read; of a row of an
    /// earlier draft the larger group that has its chunks.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), for this group.
    ///
    /// # Panics
    /// If the tier has no such group.
    pub fn encode_group(&self, group: u8, limits: &mut Limits) -> Result<EncodedGroup<'a>, AssembleError> {
        assert!(usize::from(group) < self.tier.group_count(), "group {group} of an {:?} cluster", self.tier);
        self.encode(group, &mut None, limits)
    }

    /// Writes a group. `old` is the group of the older cluster that was decompressed last.
    fn encode(
        &self,
        group: u8,
        old: &mut Option<GroupBytes<'a>>,
        limits: &mut Limits,
    ) -> Result<EncodedGroup<'a>, AssembleError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let slot_count = Version::written(self.tier).group_slot_count();
        let orders = u16::from(group) * slot_count..(u16::from(group) + 1) * slot_count;
        let changes = self.changes.range(orders.clone());
        let as_before = self.base.as_ref().filter(|base| base.group_slot_count() == slot_count);
        if let Some((base, entry)) = as_before.and_then(|base| Some((base, base.entry(group)?)))
            && changes.clone().next().is_none()
            && (base.codec() == self.codec || !entry.is_compressed() && self.codec == Codec::None)
        {
            let slots = orders.filter_map(|order| base.chunk_info(slot(self.tier, order))).collect();
            return Ok(EncodedGroup { entry, stored: base.stored(&entry)?.into(), slots });
        }
        let place = |order: u16| (order - orders.start) as u8;
        let mut chunks = GroupChunks::new();
        if let Some(base) = &self.base {
            let kept = orders.clone().filter(|order| !self.changes.contains_key(order));
            let kept = kept.filter_map(|order| {
                let slot = slot(self.tier, order);
                Some((slot, base.chunk_info(slot)?))
            });
            let kept: Vec<_> = kept.collect();
            // Even if the row's groups are larger, all of them are in one.
            let needed = kept.first().map(|(slot, _)| base.group_of(*slot));
            if let Some(needed) =
                needed.filter(|needed| old.as_ref().is_none_or(|old| old.group() != *needed))
            {
                *old = base.group(needed, limits)?;
            }
            for (slot, info) in kept {
                let value = old.as_ref().and_then(|old| old.chunk(slot));
                chunks.insert(
                    place(slot.stored_order()),
                    (info, value.expect("the group holds what the directory says")),
                );
            }
        }
        for (order, change) in changes {
            if let Some((info, value)) = change {
                chunks.insert(place(*order), (*info, Cow::Borrowed(&**value)));
            }
        }
        EncodedGroup::encode(self.tier, self.codec, &chunks)
    }

    fn change(&mut self, slot: Slot, change: Change<'a>) -> &mut Self {
        if slot.tier() == self.tier {
            self.changes.insert(slot.stored_order(), change);
        } else {
            self.refused.get_or_insert(AssembleError::WrongTier { slot, tier: self.tier });
        }
        self
    }
}

/// Builds a cluster from its groups, encoded in ascending order; `None` if none of them has a chunk.
///
/// # Errors
/// [`AssembleError::TooLarge`] over [`MAX_STORED_BYTES`] or [`MAX_RAW_BYTES`].
///
/// # Panics
/// If the number of groups is not that of the tier.
pub fn join_groups<'g, 'a: 'g>(
    tier: ClusterTier,
    codec: Codec,
    groups: impl IntoIterator<Item = &'g EncodedGroup<'a>>,
) -> Result<Option<Draft>, AssembleError> {
    let mut joined = Joined::new(tier, codec);
    for group in groups {
        joined.push(group)?;
    }
    joined.finish()
}

/// A cluster whose first groups were written.
#[derive(Debug)]
struct Joined {
    tier: ClusterTier,
    codec: Codec,
    groups: Vec<GroupEntry>,
    slots: Vec<SlotInfo>,
    body: Vec<u8>,
    raw_len_bytes: usize,
}

impl Joined {
    const fn new(tier: ClusterTier, codec: Codec) -> Self {
        Self { tier, codec, groups: Vec::new(), slots: Vec::new(), body: Vec::new(), raw_len_bytes: 0 }
    }

    /// Appends a group and sets its offset.
    fn push(&mut self, group: &EncodedGroup<'_>) -> Result<(), AssembleError> {
        if group.slots.is_empty() {
            self.groups.push(GroupEntry::default());
            return Ok(());
        }
        self.raw_len_bytes += group.entry.raw_len_bytes as usize;
        if self.raw_len_bytes > MAX_RAW_BYTES {
            return Err(AssembleError::TooLarge { form: "decompressed", max_bytes: MAX_RAW_BYTES });
        }
        self.slots.extend(&group.slots);
        if let Some(entry) = self.stored_before(group) {
            self.groups.push(entry);
            return Ok(());
        }
        if self.body.len() + group.stored.len() > MAX_STORED_BYTES {
            return Err(AssembleError::TooLarge { form: "stored", max_bytes: MAX_STORED_BYTES });
        }
        self.groups.push(GroupEntry { offset_bytes: self.body.len() as u32, ..group.entry });
        self.body.extend_from_slice(&group.stored);
        Ok(())
    }

    /// The entry of a group that has the same bytes. In empty space many are equal.
    fn stored_before(&self, group: &EncodedGroup<'_>) -> Option<GroupEntry> {
        let is_equal = |entry: &&GroupEntry| {
            let offset_bytes = entry.offset_bytes;
            let start = offset_bytes as usize;
            entry.is_shared_with(&GroupEntry { offset_bytes, ..group.entry })
                && self.body.get(start..start + group.stored.len()) == Some(&*group.stored)
        };
        self.groups.iter().find(is_equal).copied()
    }

    fn finish(self) -> Result<Option<Draft>, AssembleError> {
        assert_eq!(self.groups.len(), self.tier.group_count(), "groups of an {:?} cluster", self.tier);
        if self.slots.is_empty() {
            return Ok(None);
        }
        let draft = Draft::cluster(self.codec, |out| {
            let start = out.len();
            Directory::encode(
                (Version::written(self.tier), self.tier),
                self.codec,
                &self.groups,
                &self.slots,
                out,
            );
            let directory_len_bytes = out.len() - start;
            out.extend_from_slice(&self.body);
            directory_len_bytes
        });
        if draft.len_bytes() > MAX_STORED_BYTES {
            return Err(AssembleError::TooLarge { form: "stored", max_bytes: MAX_STORED_BYTES });
        }
        Ok(Some(draft))
    }
}

fn slot(tier: ClusterTier, order: u16) -> Slot {
    Slot::at_stored_order(tier, order).expect("groups and their slots are counted within the tier")
}
