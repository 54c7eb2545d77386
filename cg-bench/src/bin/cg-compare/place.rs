//! Where columns are, and how many chunks one has.

use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, LocalPos};

use crate::failure::Failure;

/// Chunks of a column, from [`BOTTOM`] upwards: the height of the game's overworld.
pub(crate) const HEIGHT: usize = 24;
/// The height of the lowest chunk of a column, in chunks.
pub(crate) const BOTTOM: i64 = -4;

/// The place of a column, in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) x: i64,
    pub(crate) z: i64,
}

impl Place {
    pub(crate) const fn new(x: i64, z: i64) -> Self {
        Self { x, z }
    }

    /// The place of one of its chunks, counted from the bottom.
    pub(crate) fn chunk(self, dimension: Dimension, index: usize) -> Result<ChunkAt, Failure> {
        Ok(ChunkAt::new(dimension, ChunkPos::new(self.x, BOTTOM + index as i64, self.z)?))
    }

    /// A cell of one of its chunks.
    pub(crate) fn block(self, index: usize, cell: LocalPos) -> Result<BlockPos, Failure> {
        Ok(ChunkPos::new(self.x, BOTTOM + index as i64, self.z)?.block(cell))
    }
}

/// The columns of a square whose lowest corner is at zero, x slowest: the first `count` of it.
pub(crate) fn square(count: usize) -> Vec<Place> {
    let side = (count as f64).sqrt().ceil() as usize;
    (0..count).map(|index| Place::new((index / side) as i64, (index % side) as i64)).collect()
}

/// The columns within `radius` of a middle, x slowest.
pub(crate) fn view(middle: Place, radius: i64) -> Vec<Place> {
    let across = -radius..=radius;
    let columns = across.clone().flat_map(|x| across.clone().map(move |z| (x, z)));
    columns.map(|(x, z)| Place::new(middle.x + x, middle.z + z)).collect()
}
