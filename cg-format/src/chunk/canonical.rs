//! The canonical form of a chunk's blocks: kinds in the order of first appearance.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::blocks::Blocks;
use super::layers::Upper;
use super::owned::Chunk;
use super::palette::Palette;
use crate::BlockId;
use crate::wire::bits;

/// Palette, layer 0 and upper layers in canonical form; borrowed if the chunk already has that form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canonical<'c> {
    pub(super) ids: Cow<'c, [BlockId]>,
    pub(super) blocks: Cow<'c, Blocks>,
    pub(super) upper: Cow<'c, [Upper]>,
}

impl Chunk {
    /// Brings palette, layer 0 and upper layers into canonical form.
    ///
    /// After many edits this makes the next [`encode`](Self::encode) a copy, and the chunk as small as possible.
    pub fn pack(&mut self) {
        if !self.has_canonical_blocks {
            let Canonical { ids, blocks, upper } = self.canonical_anew();
            let (ids, blocks, upper) = (ids.into_owned(), blocks.into_owned(), upper.into_owned());
            self.palette = Palette::new(ids);
            self.blocks = blocks;
            self.upper = upper;
            self.has_canonical_blocks = true;
        }
    }

    /// The blocks in canonical form.
    pub(super) fn canonical(&self) -> Canonical<'_> {
        if self.has_canonical_blocks { self.as_held() } else { self.canonical_anew() }
    }

    /// As [`canonical`](Self::canonical), independent of `has_canonical_blocks`.
    ///
    /// Visits cells until every kind appeared. Most edits keep the order of kinds; then nothing is packed.
    pub(super) fn canonical_anew(&self) -> Canonical<'_> {
        let order = self.first_met();
        let kinds = order.met.len();
        let width = bits::width_for(kinds as u64);
        if order.is_identity() && kinds == self.palette.ids().len() && self.blocks.width() == width {
            return self.as_held();
        }
        let mut locals = self.blocks.unpacked();
        for local in locals.iter_mut() {
            *local = order.renamed(*local);
        }
        let upper = |entry: &Upper| Upper { cell: entry.cell, local: order.renamed(entry.local) };
        Canonical {
            ids: order.met.iter().map(|local| self.palette.get(*local)).collect(),
            blocks: Cow::Owned(Blocks::pack(&locals, width)),
            upper: self.upper.iter().map(upper).collect(),
        }
    }

    /// Whether every cell and layer has the same block in both chunks.
    pub(super) fn has_blocks_of(&self, other: &Self) -> bool {
        if self.shares_local_ids(other) {
            return self.upper == other.upper && self.blocks.has_ids_of(&other.blocks);
        }
        self.canonical() == other.canonical()
    }

    /// The kinds of block in all layers, in the order of first appearance. Visits cells until every kind appeared.
    pub(super) fn first_met_kinds(&self) -> Vec<BlockId> {
        self.first_met().met.iter().map(|local| self.palette.get(*local)).collect()
    }

    /// Whether the palettes agree over the length of the shorter one, as they usually do if one chunk is an edit of the
    /// other.
    ///
    /// Then a common local id has the same meaning in both. Any other id is a kind that the other chunk lacks, because
    /// a palette repeats no kind. So equal blocks have equal local ids, and no canonical form is needed.
    pub(super) fn shares_local_ids(&self, other: &Self) -> bool {
        self.palette.ids().iter().zip(other.palette.ids()).all(|(one, other)| one == other)
    }

    fn as_held(&self) -> Canonical<'_> {
        Canonical {
            ids: Cow::Borrowed(self.palette.ids()),
            blocks: Cow::Borrowed(&self.blocks),
            upper: Cow::Borrowed(&self.upper),
        }
    }

    /// The order in which local ids first appear: by cell, then layer.
    fn first_met(&self) -> MeetingOrder {
        let mut order = MeetingOrder::new(self.palette.ids().len(), self.palette.alive().count());
        let mut upper = self.upper.iter().peekable();
        let mut plane = [0; Blocks::PLANE_CELLS];
        for x in 0..16 {
            if order.is_complete() {
                break;
            }
            self.blocks.unpack_plane(x, &mut plane);
            let mut rest = &plane[..];
            let mut behind = 0;
            while let Some(entry) = upper.next_if(|entry| entry.cell.x() == x) {
                let next = usize::from(entry.cell.index()) % Blocks::PLANE_CELLS + 1;
                let (below, above) = rest.split_at_checked(next - behind).unwrap_or((rest, &[]));
                order.meet(below);
                order.meet(&[entry.local]);
                (rest, behind) = (above, next);
            }
            order.meet(rest);
        }
        order
    }
}

/// Local ids in the order of first appearance, and the inverse.
struct MeetingOrder {
    met: Vec<u32>,
    new_of_old: Vec<u32>,
    /// The maximum number of ids that can appear.
    alive: usize,
    /// All ids below this one were met.
    met_up_to: u32,
}

const UNMET: u32 = u32::MAX;

impl MeetingOrder {
    fn new(kinds: usize, alive: usize) -> Self {
        Self { met: Vec::with_capacity(alive), new_of_old: alloc::vec![UNMET; kinds], alive, met_up_to: 0 }
    }

    const fn is_complete(&self) -> bool {
        self.met.len() == self.alive
    }

    fn is_identity(&self) -> bool {
        (0..).zip(&self.met).all(|(new, old)| new == *old)
    }

    fn renamed(&self, old: u32) -> u32 {
        self.new_of_old.get(old as usize).copied().unwrap_or(0)
    }

    /// Meets cells. A group of them whose ids are all below one that is known to have been met, with all before it, is
    /// passed over: after an edit of a chunk in canonical form those are most groups.
    fn meet(&mut self, locals: &[u32]) {
        let (groups, rest) = locals.as_chunks::<64>();
        for group in groups {
            if group.iter().copied().fold(0, u32::max) >= self.met_up_to {
                self.meet_each(group);
            }
            if self.is_complete() {
                return;
            }
        }
        self.meet_each(rest);
    }

    fn meet_each(&mut self, locals: &[u32]) {
        // Neighbours are usually equal.
        let mut last = UNMET;
        for local in locals {
            if *local == last {
                continue;
            }
            last = *local;
            if let Some(new) = self.new_of_old.get_mut(last as usize)
                && *new == UNMET
            {
                *new = self.met.len() as u32;
                self.met.push(last);
                while self.new_of_old.get(self.met_up_to as usize).is_some_and(|new| *new != UNMET) {
                    self.met_up_to += 1;
                }
                if self.is_complete() {
                    return;
                }
            }
        }
    }
}
