//! The one form in which a chunk's blocks are written: kinds in the order in which they are first met.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::blocks::Blocks;
use super::layers::Upper;
use super::owned::Chunk;
use super::palette::Palette;
use crate::BlockId;
use crate::wire::bits;

/// Palette, layer 0 and upper layers as they are written; borrowed where the chunk holds them like that already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canonical<'c> {
    pub(super) ids: Cow<'c, [BlockId]>,
    pub(super) blocks: Cow<'c, Blocks>,
    pub(super) upper: Cow<'c, [Upper]>,
}

impl Chunk {
    /// Brings palette, layer 0 and upper layers into the form in which they are written.
    ///
    /// After many edits this makes the next [`encode`](Self::encode) a copy, and the chunk as small as it can be.
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

    /// The blocks as they are written.
    pub(super) fn canonical(&self) -> Canonical<'_> {
        if self.has_canonical_blocks { self.as_held() } else { self.canonical_anew() }
    }

    /// The same, whatever the chunk says of itself.
    ///
    /// Looks at cells until every kind was met. Most edits leave the order of kinds as it was: then nothing is packed.
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

    /// Whether every cell and layer holds the same block in both chunks.
    ///
    /// Mostly one of them is an edit of the other, and their palettes agree as far as both go. Then a local id that
    /// both have means the same in both, and one that only one has is a kind that the other lacks: palettes repeat
    /// nothing. So equal blocks are equal local ids, and nothing is brought into canonical form.
    pub(super) fn has_blocks_of(&self, other: &Self) -> bool {
        let both = self.palette.ids().iter().zip(other.palette.ids());
        if self.blocks.width() == other.blocks.width() && both.into_iter().all(|(one, other)| one == other) {
            return self.blocks == other.blocks && self.upper == other.upper;
        }
        self.canonical() == other.canonical()
    }

    fn as_held(&self) -> Canonical<'_> {
        Canonical {
            ids: Cow::Borrowed(self.palette.ids()),
            blocks: Cow::Borrowed(&self.blocks),
            upper: Cow::Borrowed(&self.upper),
        }
    }

    /// The order in which local ids are met: by cell, then layer.
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

/// Local ids in the order in which they are met, and the other way round.
struct MeetingOrder {
    met: Vec<u32>,
    new_of_old: Vec<u32>,
    /// At most this many can be met.
    alive: usize,
}

const UNMET: u32 = u32::MAX;

impl MeetingOrder {
    fn new(kinds: usize, alive: usize) -> Self {
        Self { met: Vec::with_capacity(alive), new_of_old: alloc::vec![UNMET; kinds], alive }
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

    fn meet(&mut self, locals: &[u32]) {
        // Neighbours are mostly alike.
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
                if self.is_complete() {
                    return;
                }
            }
        }
    }
}
