//! Pinned places: their chunks are never demoted, even without players.

use std::collections::BTreeMap;

use cg_format::{ChunkBox, Dimension};

use crate::CubeAt;

/// Identifies a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinId(u64);

impl PinId {
    /// A number that is unique among all pins of this world, for traces.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Boxes whose chunks are not demoted.
///
/// A pin moves nothing by itself. Places may have any size and may overlap. A lookup costs a few comparisons for each
/// pin of the dimension.
///
/// ```
/// use cg_format::{ChunkAt, ChunkBox, ChunkPos, Dimension};
/// use cg_tiering::{CubeAt, Pinned};
/// let mut pinned = Pinned::default();
/// let spawn = ChunkPos::constant(0, 4, 0);
/// let id = pinned.pin(Dimension::new(0), ChunkBox::around(spawn, 8)?);
/// assert!(pinned.contains(CubeAt::of(ChunkAt::new(Dimension::new(0), spawn))));
/// assert!(pinned.unpin(id));
/// assert!(!pinned.contains(CubeAt::of(ChunkAt::new(Dimension::new(0), spawn))));
/// # Ok::<(), cg_format::OutOfRange>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Pinned {
    places: BTreeMap<(Dimension, PinId), ChunkBox>,
    next: u64,
}

impl Pinned {
    /// Pins a place.
    pub fn pin(&mut self, dimension: Dimension, place: ChunkBox) -> PinId {
        let id = PinId(self.next);
        self.next += 1;
        self.places.insert((dimension, id), place);
        id
    }

    /// Removes a pin. Returns whether it existed.
    pub fn unpin(&mut self, id: PinId) -> bool {
        let before = self.places.len();
        self.places.retain(|(_, pin), _| *pin != id);
        self.places.len() < before
    }

    /// Whether a chunk of the cube is pinned.
    pub fn contains(&self, cube: CubeAt) -> bool {
        let dimension = cube.dimension();
        let mut pins = self.places.range((dimension, PinId(0))..=(dimension, PinId(u64::MAX))).peekable();
        if pins.peek().is_none() {
            return false;
        }
        let blocks = cube.chunks().blocks();
        pins.any(|(_, place)| place.blocks().intersection(&blocks).is_some())
    }

    /// All pins with their places.
    pub fn pins(&self) -> impl Iterator<Item = (PinId, Dimension, ChunkBox)> {
        self.places.iter().map(|((dimension, id), place)| (*id, *dimension, *place))
    }

    /// The number of pins.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkAt, ChunkPos};

    #[test]
    fn a_pin_covers_every_cube_that_it_touches_in_its_dimension() {
        let cube =
            |dimension, x| CubeAt::of(ChunkAt::new(Dimension::new(dimension), ChunkPos::constant(x, 0, 0)));
        let mut pinned = Pinned::default();
        let place = ChunkBox::new(ChunkPos::constant(3, 0, 0), ChunkPos::constant(4, 0, 0));
        let one = pinned.pin(Dimension::new(1), place);
        let two = pinned.pin(Dimension::new(1), place);
        pinned.pin(Dimension::new(2), ChunkBox::EVERYTHING);
        let answers = |pinned: &Pinned| [-1, 0, 4, 8].map(|x| pinned.contains(cube(1, x)));
        assert_eq!(answers(&pinned), [false, true, true, false]);
        assert!(!pinned.contains(cube(0, 0)) && pinned.contains(cube(2, ChunkPos::MIN)));
        assert!(pinned.unpin(one) && !pinned.unpin(one));
        assert_eq!(answers(&pinned), [false, true, true, false], "the other pin still stands");
        assert!(pinned.unpin(two));
        assert_eq!((answers(&pinned), pinned.len()), ([false; 4], 1));
    }
}
