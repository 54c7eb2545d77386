//! One group of a stored cluster, decompressed.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::directory::GroupEntry;
use super::fields::{self, Fields};
use super::{ClusterView, Slot, trace_seed};
use crate::frame::Codec;
use crate::wire::Span;
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The group that was decompressed last, for [`StoredCluster::group_after`](super::StoredCluster::group_after).
#[derive(Debug, Default)]
pub struct LastGroup {
    /// Tier and codec of its cluster, by which the same bytes may mean something else.
    pub(super) form: Option<(ClusterTier, Codec)>,
    /// Its bytes as stored, if they are few.
    pub(super) stored: Vec<u8>,
    pub(super) raw: Vec<u8>,
    /// Of `raw`, if it is by field.
    pub(super) fields: Option<Fields>,
}

impl LastGroup {
    /// Groups with more stored bytes rarely repeat.
    pub(super) const MAX_BYTES: usize = 4096;

    pub(super) fn is(&self, form: (ClusterTier, Codec), entry: &GroupEntry, stored: &[u8]) -> bool {
        // Every stored group has at least one byte.
        self.stored == stored && self.form == Some(form) && self.raw.len() == entry.raw_len_bytes as usize
    }
}

/// One group of a stored cluster, decompressed and checked: 1×4×4 chunks in a warm cluster and 2×4×4 in a cold one, or
/// 4³ as earlier drafts wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBytes<'a> {
    tier: ClusterTier,
    group: u8,
    /// The number of places of the group.
    slot_count: u16,
    content: Content<'a>,
    decompressed_bytes: usize,
}

/// The bytes of a group, and its checked fields if it is not in the seed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) fields: Option<Cow<'a, Fields>>,
}

impl<'a> GroupBytes<'a> {
    /// Checks the header of a group's bytes in the seed form, and the presence in both forms.
    pub(super) fn new(
        tier: ClusterTier,
        (group, slot_count): (u8, u16),
        (entry, at): (&GroupEntry, u64),
        content: Content<'a>,
        decompressed_bytes: usize,
    ) -> Result<Self, DecodeError> {
        let found = if let Some(fields) = &content.fields {
            fields.presence
        } else {
            let view = ClusterView::new(&content.bytes)?;
            if view.tier() != ClusterTier::L1 {
                let (field, found) = ("scale level", view.tier().scale_level().into());
                let problem = Problem::Disagrees { field, found, expected: 1 };
                return Err(DecodeError::new(Section::ClusterHeader, 8, problem));
            }
            view.presence()
        };
        if found != entry.presence {
            let problem = Problem::Disagrees { field: "presence", found, expected: entry.presence };
            return Err(DecodeError::new(Section::ClusterGroup, at, problem));
        }
        Ok(Self { tier, group, slot_count, content, decompressed_bytes })
    }
}

impl GroupBytes<'_> {
    /// The number of the group in its cluster.
    pub const fn group(&self) -> u8 {
        self.group
    }

    /// The group's bytes, decompressed: the seed form, or by field. [`trace_group`] explains both.
    pub fn bytes(&self) -> &[u8] {
        &self.content.bytes
    }

    /// The bytes of a chunk, by its slot in the whole cluster; `None` if it is absent or in another group.
    ///
    /// Borrowed from the seed form. A chunk that is stored by field is put together: about a microsecond.
    pub fn chunk(&self, slot: Slot) -> Option<Cow<'_, [u8]>> {
        let place = slot.stored_order().checked_sub(self.first())?;
        let is_here = slot.tier() == self.tier && place < self.slot_count;
        is_here.then(|| self.at_place(place as u8)).flatten()
    }

    /// Every present chunk, by its slot in the whole cluster.
    pub fn chunks(&self) -> impl Iterator<Item = (Slot, Cow<'_, [u8]>)> + Clone {
        (0..self.slot_count as u8).filter_map(|place| Some((self.slot(place)?, self.at_place(place)?)))
    }

    /// The length of every present chunk, by its slot in the whole cluster.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (Slot, usize)> {
        (0..self.slot_count as u8).filter_map(|place| {
            let len_bytes = match &self.content.fields {
                Some(fields) => fields.chunk_len_bytes(place)?,
                None => self.at_place(place)?.len(),
            };
            Some((self.slot(place)?, len_bytes))
        })
    }

    fn slot(&self, place: u8) -> Option<Slot> {
        Slot::at_stored_order(self.tier, self.first() + u16::from(place))
    }

    /// Where the group begins among all slots of a directory.
    fn first(&self) -> u16 {
        u16::from(self.group) * self.slot_count
    }

    fn at_place(&self, place: u8) -> Option<Cow<'_, [u8]>> {
        if let Some(fields) = &self.content.fields {
            return fields.chunk(&self.content.bytes, place).map(Cow::Owned);
        }
        let view = ClusterView::of_checked_group(&self.content.bytes)?;
        view.chunk(Slot::new(ClusterTier::L1, place.into())?).map(Cow::Borrowed)
    }

    /// The number of bytes decompressed for it; 0 if the group was stored uncompressed, or was decompressed before.
    pub const fn decompressed_bytes(&self) -> usize {
        self.decompressed_bytes
    }
}

/// Checks the decompressed bytes of a group in either form, and lists their fields up to the first error.
pub fn trace_group(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
    if fields::claims_to_be_by_field(bytes) { fields::trace(bytes) } else { trace_seed(bytes) }
}
