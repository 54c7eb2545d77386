//! The opacity map.

use cg_format::Dimension;

use crate::api::world::World;
use crate::kinds::opacity::{self, OpacityColumn};
use crate::storage::error::Error;

/// The opacity map: which blocks are opaque, by columns.
///
/// A world keeps it if it was opened once with [`Keep::On`](crate::opacity::Keep::On), or it was
/// [rebuilt](Self::rebuild); until it is opened with [`Keep::Off`](crate::opacity::Keep::Off). Then every commit stores
/// with its chunks what changes in the map.
///
/// A map ends too when a block that was registered before changes its opacity, by its pack or by
/// [`set_opacity`](crate::WorldRegistry::set_opacity), and when lost commits are accepted. Maps of earlier drafts are
/// not used, for these drafts did not store whether a map is whole.
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
    /// Whether the world keeps the map, so that [`column`](Self::column) answers.
    pub fn is_kept(&self) -> bool {
        self.world.rooms().shared.map.is_whole()
    }

    /// The opaque parts of the column of blocks at (x, z). Absent chunks are transparent.
    ///
    /// Costs one scan of the tile of 64×64 columns and its patches since it was last folded.
    ///
    /// # Errors
    /// [`Error::NotKept`] if the world keeps no map, or it is being drawn for the first time; [`Error::Corrupt`] if a row
    /// of the map is damaged. [`rebuild`](Self::rebuild) helps against both.
    pub fn column(&self, dimension: Dimension, x: i64, z: i64) -> Result<OpacityColumn, Error> {
        let rooms = self.world.applied()?;
        rooms.commit.drain()?;
        let (engine, kept) = rooms.shared.engine_with(|| rooms.shared.map.check())?;
        kept?;
        let _guard = engine.hold_apply()?;
        opacity::column(&*engine, dimension, x, z)
    }

    /// Folds at most `tiles` tiles that have patches. Returns the number of folded tiles. Ticks let a folded tile rest
    /// for some seconds; this does not. A world without a map has none.
    ///
    /// # Errors
    /// As [`column`](Self::column); [`Error::LowDiskSpace`].
    pub fn fold(&self, tiles: usize) -> Result<usize, Error> {
        self.world.applied()?.maintain.fold_opacity(tiles)
    }

    /// Rebuilds the opacity map from the chunks. A world that kept none keeps it from then on. Returns the number of replaced tiles: those that were wrong, and those
    /// with patches that were not folded.
    ///
    /// Columns of 256×256 blocks are read one after the other, each from a snapshot. Then one small commit replaces
    /// each tile with its patches, unless the tile is already correct. A tile is drawn again if another commit changed
    /// it meanwhile. Other commits continue during the rebuild. If it stops in the middle, every tile is either
    /// unchanged or correct, and a world that kept no map keeps none.
    ///
    /// Costs one read and one decoding of every chunk, and about six more seeks per cube of 16³ chunks. Memory holds
    /// the outlines of one column's chunks, half a KiB each. A snapshot is held until the end, so rows that are
    /// replaced meanwhile keep their space. Damaged chunks count as transparent.
    ///
    /// # Errors
    /// If the engine fails, or was opened read-only; [`Error::LowDiskSpace`].
    pub fn rebuild(&self) -> Result<u64, Error> {
        self.world.applied()?.maintain.rebuild_opacity()
    }
}
