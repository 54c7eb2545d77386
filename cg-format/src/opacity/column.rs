//! One column of a tile, and its queries.

use core::ops::RangeInclusive;

/// The opaque runs of one column of blocks, borrowed from a tile.
///
/// Boundaries ascend strictly. An even one (counted from 0) is the first opaque y of a run, an odd one the first y
/// above it that is not opaque. A run that reaches `i64::MAX` has no upper boundary, so the count may be odd. A query
/// costs one binary search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnView<'a> {
    boundaries: &'a [[u8; 8]],
}

/// The opacity of a range of y.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// No block is opaque.
    Transparent,
    /// Every block is opaque.
    Opaque,
    /// Some blocks are opaque.
    Mixed,
}

impl<'a> ColumnView<'a> {
    /// Wraps boundaries, which must ascend strictly.
    pub(super) const fn new(boundaries: &'a [[u8; 8]]) -> Self {
        Self { boundaries }
    }

    /// Whether the block at a y is opaque.
    pub fn is_opaque(self, y: i64) -> bool {
        self.boundaries_up_to(y) % 2 == 1
    }

    /// The opacity of a range of y. An empty range is transparent.
    pub fn coverage(self, y: RangeInclusive<i64>) -> Coverage {
        if y.is_empty() {
            return Coverage::Transparent;
        }
        let passed = self.boundaries_up_to(*y.start());
        match (passed == self.boundaries_up_to(*y.end()), passed % 2 == 1) {
            (false, _) => Coverage::Mixed,
            (true, true) => Coverage::Opaque,
            (true, false) => Coverage::Transparent,
        }
    }

    /// The topmost opaque y; `None` if the column is transparent.
    pub fn highest_opaque(self) -> Option<i64> {
        let last = i64::from_le_bytes(*self.boundaries.last()?);
        // An odd count leaves the last run open. An upper boundary is above its run, so it is above `i64::MIN`.
        Some(if self.boundaries.len() % 2 == 1 { i64::MAX } else { last - 1 })
    }

    /// The opaque runs from the lowest up: first and last opaque y of each.
    pub fn runs(self) -> impl Iterator<Item = RangeInclusive<i64>> + use<'a> {
        let (closed, open) = self.boundaries.as_chunks::<2>();
        let closed =
            closed.iter().map(|[first, above]| i64::from_le_bytes(*first)..=i64::from_le_bytes(*above) - 1);
        closed.chain(open.iter().map(|first| i64::from_le_bytes(*first)..=i64::MAX))
    }

    /// The stored boundaries from the lowest up.
    pub fn boundaries(self) -> impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + use<'a> {
        self.boundaries.iter().map(|y| i64::from_le_bytes(*y))
    }

    /// The stored bytes of the boundaries above `low`, up to and including `high`.
    pub(super) fn boundaries_between(self, low: i64, high: i64) -> &'a [[u8; 8]] {
        let (from, to) = (self.boundaries_up_to(low), self.boundaries_up_to(high));
        self.boundaries.get(from..to).expect("boundaries ascend, and low is at most high")
    }

    /// The number of boundaries at or below a y.
    fn boundaries_up_to(self, y: i64) -> usize {
        self.boundaries.partition_point(|at| i64::from_le_bytes(*at) <= y)
    }
}
