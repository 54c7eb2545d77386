//! The opacity map.

use cg_format::Dimension;

use crate::api::world::World;
use crate::kinds::opacity::{self, OpacityColumn};
use crate::storage::error::Error;

/// The opacity map: which blocks let light through, by columns.
#[derive(Debug, Clone, Copy)]
pub struct OpacityMap<'w> {
    world: &'w World,
}

impl World {
    /// The opacity map.
    pub fn opacity(&self) -> OpacityMap<'_> {
        OpacityMap { world: self }
    }
}

impl OpacityMap<'_> {
    /// The opaque parts of the column of blocks at (x, z). Chunks that are not stored hide nothing.
    ///
    /// Costs one scan over the tile of 64×64 columns and its patches since the last folding.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row of the map is damaged; [`rebuild`](Self::rebuild) mends that.
    pub fn column(&self, dimension: Dimension, x: i64, z: i64) -> Result<OpacityColumn, Error> {
        let engine = self.world.applied()?.commit.settled_engine()?;
        let _guard = engine.hold_apply()?;
        opacity::column(&*engine, dimension, x, z)
    }

    /// Folds up to `tiles` tiles whose patches have gathered; returns how many were folded. Ticks leave a tile alone for
    /// some seconds after they folded it; this does not.
    ///
    /// # Errors
    /// As [`column`](Self::column); [`Error::LowDiskSpace`].
    pub fn fold(&self, tiles: usize) -> Result<usize, Error> {
        self.world.applied()?.maintain.fold_opacity(tiles)
    }

    /// Draws the opacity map again from the chunks; returns how many tiles were replaced: those that were wrong, and
    /// those whose patches were not folded in yet.
    ///
    /// Columns of 256×256 blocks are read one after the other, each from a snapshot; then each of their tiles is
    /// replaced with its patches in one small commit, unless it stands as it should. A tile over which somebody committed meanwhile is
    /// drawn again. Commits go on all the while. Stopped in the middle, every tile is as it was or as it should be.
    ///
    /// Costs one read and one decoding of every chunk, and about six seeks more per cube of 16³ chunks. Memory holds
    /// the outlines of one column's chunks, half a KiB each. A snapshot is held all the while, so that rows which are
    /// replaced meanwhile keep their space until the end. Damaged chunks are taken to hide nothing.
    ///
    /// # Errors
    /// If the engine fails, or was opened for reading only; [`Error::LowDiskSpace`].
    pub fn rebuild(&self) -> Result<u64, Error> {
        self.world.applied()?.maintain.rebuild_opacity()
    }
}
