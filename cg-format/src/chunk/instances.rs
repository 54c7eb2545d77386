//! The owner block of a component instance, and its index in the column.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter::successors;

use crate::LocalPos;

/// A block of a chunk: a cell and a layer of it. Ordered by cell, then layer, which is the order of instances in a
/// component's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellLayer {
    /// The cell.
    pub cell: LocalPos,
    /// The layer; 0 is the lowest.
    pub layer: u8,
}

impl CellLayer {
    /// A block at a layer of a cell.
    pub const fn new(cell: LocalPos, layer: u8) -> Self {
        Self { cell, layer }
    }

    /// The lowest block of a cell.
    pub const fn base(cell: LocalPos) -> Self {
        Self { cell, layer: 0 }
    }
}

impl From<LocalPos> for CellLayer {
    fn from(cell: LocalPos) -> Self {
        Self::base(cell)
    }
}

/// The instances of one component in ascending order, as a rank table for a view.
#[derive(Debug, Clone)]
pub(super) enum Instances {
    /// The instances, sorted.
    Few(Vec<CellLayer>),
    /// One bit per cell for layer 0; the others sorted.
    Many(Box<Ranks>),
}

/// Up to this many instances a sorted list is smaller than the bits and as fast to search.
const FEW: usize = 128;

impl Instances {
    /// Takes instances in ascending order.
    pub(super) fn new(sorted: Vec<CellLayer>) -> Self {
        if sorted.len() <= FEW { Self::Few(sorted) } else { Self::Many(Box::new(Ranks::new(&sorted))) }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Few(sorted) => sorted.len(),
            Self::Many(ranks) => usize::from(ranks.base_count) + ranks.upper.len(),
        }
    }

    /// The index of an instance in its column.
    #[inline]
    pub(super) fn rank(&self, at: CellLayer) -> Option<usize> {
        match self {
            Self::Few(sorted) => sorted.binary_search(&at).ok(),
            Self::Many(ranks) => ranks.rank(at),
        }
    }

    /// All instances in ascending order.
    pub(super) fn to_vec(&self) -> Vec<CellLayer> {
        match self {
            Self::Few(sorted) => sorted.clone(),
            Self::Many(ranks) => ranks.to_vec(),
        }
    }
}

/// Instances of a component that many cells have.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    /// By cell, 64 to a word, the lowest bit first.
    base: [u64; 64],
    /// By word of `base`: the number of bits that are set in all words before it.
    before: [u16; 64],
    base_count: u16,
    upper: Vec<CellLayer>,
}

impl Ranks {
    fn new(sorted: &[CellLayer]) -> Self {
        let mut base = [0_u64; 64];
        let mut upper = Vec::new();
        for at in sorted {
            let (word, bit) = word_and_bit(at.cell);
            match base.get_mut(word) {
                Some(word) if at.layer == 0 => *word |= 1 << bit,
                _ => upper.push(*at),
            }
        }
        let (mut before, mut base_count) = ([0; 64], 0_u16);
        for (before, word) in before.iter_mut().zip(&base) {
            *before = base_count;
            base_count += word.count_ones() as u16;
        }
        Self { base, before, base_count, upper }
    }

    /// The number of layer 0 instances below a cell, and whether the cell is one.
    #[inline]
    fn base_rank(&self, cell: LocalPos) -> (usize, bool) {
        let (word, bit) = word_and_bit(cell);
        let bits = self.base.get(word).copied().unwrap_or(0);
        let below = (bits & ((1 << bit) - 1)).count_ones() as usize;
        (usize::from(self.before.get(word).copied().unwrap_or(0)) + below, bits >> bit & 1 == 1)
    }

    #[inline]
    fn rank(&self, at: CellLayer) -> Option<usize> {
        let (base, owns_base) = self.base_rank(at.cell);
        if at.layer == 0 {
            let upper =
                if self.upper.is_empty() { 0 } else { self.upper.partition_point(|upper| *upper < at) };
            owns_base.then_some(base + upper)
        } else {
            let upper = self.upper.binary_search(&at).ok()?;
            Some(base + usize::from(owns_base) + upper)
        }
    }

    fn to_vec(&self) -> Vec<CellLayer> {
        let mut all = Vec::with_capacity(usize::from(self.base_count) + self.upper.len());
        let mut upper = self.upper.iter().copied().peekable();
        let words = self.base.iter().zip((0..).step_by(64));
        let indices = words.flat_map(|(word, first)| ones(*word).map(move |bit| first + bit as u16));
        for cell in indices.filter_map(LocalPos::from_index) {
            let base = CellLayer::base(cell);
            while let Some(lower) = upper.next_if(|at| *at < base) {
                all.push(lower);
            }
            all.push(base);
        }
        all.extend(upper);
        all
    }
}

/// The word of a cell in the bits of all cells, and its bit there.
#[inline]
fn word_and_bit(cell: LocalPos) -> (usize, u16) {
    (usize::from(cell.index() / 64), cell.index() % 64)
}

/// The numbers of the bits that are set, from the lowest.
fn ones(word: u64) -> impl Iterator<Item = u32> {
    let rest = successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
    rest.take_while(|rest| *rest != 0).map(u64::trailing_zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// For Miri, which takes minutes for the property below.
    #[test]
    fn any_bytes_of_ranks_count_instances() {
        let at = |index| CellLayer::new(LocalPos::from_index(index).unwrap(), 0);
        let sorted = [0, 5, 63, 64, 4095].map(at);
        let ranks = Ranks::new(&sorted);
        assert_eq!(sorted.map(|at| ranks.rank(at)), [0, 1, 2, 3, 4].map(Some));
        assert_eq!(ranks.rank(at(6)), None);
        assert_eq!(ranks.to_vec(), sorted);
    }

    proptest! {
        #[test]
        fn a_rank_is_the_number_of_instances_before(
            dense in prop::collection::btree_set((0..200_u16, 0..3_u8), 0..400),
            sparse in prop::collection::btree_set((0..4096_u16, 0..3_u8), 0..100),
        ) {
            let at = |(index, layer)| CellLayer::new(LocalPos::from_index(index).unwrap(), layer);
            let all: BTreeSet<CellLayer> = dense.into_iter().chain(sparse).map(at).collect();
            let sorted: Vec<CellLayer> = all.iter().copied().collect();
            for instances in [Instances::Few(sorted.clone()), Instances::Many(Box::new(Ranks::new(&sorted)))] {
                prop_assert_eq!(instances.count(), sorted.len());
                prop_assert_eq!(instances.to_vec(), sorted.clone());
                for (rank, at) in sorted.iter().enumerate() {
                    prop_assert_eq!(instances.rank(*at), Some(rank));
                }
                for other in (0..4096).step_by(7).flat_map(|index| (0..4).map(move |layer| at((index, layer)))) {
                    prop_assert_eq!(instances.rank(other).is_some(), all.contains(&other));
                }
            }
        }
    }
}
