//! Reads chunks from a cluster in the seed form.

use alloc::vec::Vec;
use core::cell::RefCell;

use super::header::{self, FIXED_LEN_BYTES, Header, header_len_bytes};
use super::{CUBE_SLOT_COUNT, Slot};
use crate::wire::{Reader, Span, Trace};
use crate::{ClusterTier, DecodeError, Section};

/// A cluster in the seed form, checked once; chunks are borrowed from it.
///
/// The check reads only the header, because the chunks are opaque. It allocates nothing.
///
/// ```
/// use cg_format::cluster::{ClusterView, Slot};
/// use cg_format::ClusterTier;
/// let slots = [3, 60].map(|index| Slot::new(ClusterTier::L1, index).unwrap());
/// let bytes = ClusterView::encode(ClusterTier::L1, [(slots[0], &b"one"[..]), (slots[1], b"another")]).unwrap();
///
/// let cluster = ClusterView::new(&bytes)?;
/// assert_eq!(cluster.chunk(slots[1]), Some(&b"another"[..]));
/// assert_eq!(cluster.chunks().count(), 2);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterView<'a> {
    header: Header<'a>,
    bytes: &'a [u8],
}

impl<'a> ClusterView<'a> {
    /// Checks the header.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::ClusterHeader`] for another version or scale, for no chunk at all, and for offsets
    /// that do not ascend, leave a gap after the header or are outside the bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = Header::parse(&mut Reader::new(bytes, Section::ClusterHeader))?;
        Ok(Self { header, bytes })
    }

    /// Writes chunks, given in any order, as a cluster in the seed form. If a slot occurs twice, the last chunk counts.
    ///
    /// `None` if there is no chunk, or one is empty or of another tier: such a cluster cannot be written.
    pub fn encode<'v>(
        tier: ClusterTier,
        chunks: impl IntoIterator<Item = (Slot, &'v [u8])>,
    ) -> Option<Vec<u8>> {
        let chunks: alloc::collections::BTreeMap<_, _> = chunks.into_iter().collect();
        if chunks.is_empty() || chunks.iter().any(|(slot, value)| slot.tier() != tier || value.is_empty()) {
            return None;
        }
        let mut out = Vec::new();
        header::encode(tier, chunks.iter().map(|(slot, value)| (*slot, *value)), &mut out);
        Some(out)
    }

    /// The tier in the header.
    pub const fn tier(&self) -> ClusterTier {
        self.header.tier
    }

    /// The bytes of one chunk; `None` if it is absent or the slot is of another tier.
    ///
    /// Reads each offset up to the next present chunk.
    pub fn chunk(&self, slot: Slot) -> Option<&'a [u8]> {
        if slot.tier() != self.tier() {
            return None;
        }
        let mut offsets = self.offsets_from(usize::from(slot.index()));
        let start = offsets.next().filter(|start| *start != 0)?;
        let end = offsets.find(|end| *end != 0).unwrap_or(self.bytes.len());
        self.bytes.get(start..end)
    }

    /// Every present chunk in slot order.
    pub fn chunks(&self) -> impl Iterator<Item = (Slot, &'a [u8])> + Clone + use<'a> {
        let bytes = self.bytes;
        let present = Slot::all(self.tier()).zip(self.offsets_from(0)).filter(|(_, start)| *start != 0);
        let ends = self.offsets_from(0).filter(|end| *end != 0).skip(1).chain([bytes.len()]);
        present.zip(ends).filter_map(move |((slot, start), end)| Some((slot, bytes.get(start..end)?)))
    }

    /// One bit per slot of an L1 cluster: which chunks are present.
    pub(super) fn presence(&self) -> u64 {
        let bits = self.offsets_from(0).take(CUBE_SLOT_COUNT).enumerate();
        bits.fold(0, |all, (place, offset)| all | u64::from(offset != 0) << place)
    }

    /// A group whose bytes were checked before; `None` only if they were not.
    pub(super) fn of_checked_group(bytes: &'a [u8]) -> Option<Self> {
        let tier = ClusterTier::L1;
        let (offsets, _) = bytes.get(FIXED_LEN_BYTES..header_len_bytes(tier))?.as_chunks();
        Some(Self { header: Header { tier, offsets }, bytes })
    }

    fn offsets_from(&self, index: usize) -> impl Iterator<Item = usize> + Clone + use<'a> {
        self.header.offsets.iter().skip(index).map(|offset| u64::from_le_bytes(*offset) as usize)
    }
}

/// Checks a cluster in the seed form and lists its fields, the chunks as one field each.
pub fn trace_seed(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
    let trace: Trace = RefCell::default();
    let mut reader = Reader::new(bytes, Section::ClusterHeader).traced(Some(&trace));
    let answer = Header::parse(&mut reader).and_then(|header| {
        let cluster = ClusterView { header, bytes };
        cluster.chunks().try_for_each(|(_, value)| reader.take("chunk", value.len()).map(|_| ()))
    });
    (trace.into_inner(), answer)
}
