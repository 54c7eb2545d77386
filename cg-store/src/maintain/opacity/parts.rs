//! The parts in which the map is rebuilt and compared: columns of cubes that hold chunks, and tiles without chunks.

use std::ops::{Bound, ControlFlow};

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension};

use crate::engine::{Readable, ReadableExt as _};
use crate::kinds::opacity::TileKey;
use crate::read::chunk::{Area, Cubes};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// Chunks along a side of a tile.
const TILE_CHUNKS: i64 = ClusterTier::L1.side_chunks() as i64;

/// The chunks over some tiles, from the bottom of the world to its top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    dimension: Dimension,
    area: ChunkBox,
}

/// A part of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Sixteen tiles over which chunks are stored, or were stored.
    Column(Column),
    /// A tile of the map without a row of a chunk over it or its neighbours.
    Stray(TileKey),
}

impl Column {
    /// The column of cubes through a cube: 4×4 tiles. So a cold cluster is read once for all of them.
    fn of_cube(dimension: Dimension, cube: ClusterPos) -> Self {
        Self { dimension, area: upright(cube.min_chunk(), cube.max_chunk()) }
    }

    /// The column of one tile; `None` if no chunk can be over it.
    pub(crate) fn of_tile(tile: &TileKey) -> Option<Self> {
        let (dimension, [x, z]) = key::decode_opacity_tile(tile).ok()?;
        let (x, z) = (x.checked_mul(TILE_CHUNKS)?, z.checked_mul(TILE_CHUNKS)?);
        let min = ChunkPos::new(x, 0, z).ok()?;
        Some(Self { dimension, area: upright(min, min.offset(TILE_CHUNKS - 1, 0, TILE_CHUNKS - 1)?) })
    }

    /// The dimension.
    pub(crate) const fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// The chunks.
    pub(crate) const fn area(&self) -> ChunkBox {
        self.area
    }

    /// The keys of its tiles.
    pub(crate) fn tiles(self) -> impl Iterator<Item = TileKey> {
        let (min, max) = (self.area.min(), self.area.max());
        let step = TILE_CHUNKS as usize;
        (min.x()..=max.x()).step_by(step).flat_map(move |x| {
            (min.z()..=max.z()).step_by(step).map(move |z| {
                let pos = ChunkPos::new(x, 0, z).expect("between two corners in the world");
                key::opacity_tile(ChunkAt { dimension: self.dimension, pos })
            })
        })
    }

    /// The lowest of its cubes that has a row in any tier.
    fn first_cube(&self, view: &dyn Readable, counters: &Counters) -> Result<Option<ClusterPos>, Error> {
        Cubes::first(view, counters, self.dimension, self.area)
    }
}

/// The box of full height between two chunks.
fn upright(min: ChunkPos, max: ChunkPos) -> ChunkBox {
    let at =
        |corner: ChunkPos, y| ChunkPos::new(corner.x(), y, corner.z()).expect("y is an end of the world");
    ChunkBox::new(at(min, ChunkPos::MIN), at(max, ChunkPos::MAX))
}

/// Visits every part of a view once: first all columns with rows of chunks, then the tiles without chunks.
///
/// Uses constant memory, and reads only the keys of chunk rows. Costs about six seeks per cube, one per tile of the
/// map, and three per column of cubes that has tiles.
///
/// # Errors
/// If the engine fails, and the errors of `visit`.
pub(crate) fn each_part(
    view: &dyn Readable,
    counters: &Counters,
    mut visit: impl FnMut(Part) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut cubes = Cubes::of(Area::World);
    while let Some((dimension, cube)) = cubes.next(view, counters)? {
        let column = Column::of_cube(dimension, cube);
        // Of the cubes of a column, the lowest has the first key.
        if column.first_cube(view, counters)? == Some(cube) {
            visit(Part::Column(column))?;
        }
    }
    let mut behind = Vec::new();
    let mut known: Option<(Column, bool)> = None;
    while let Some(tile) = next_tile(view, counters, &behind)? {
        let column = Column::of_tile(&tile)
            .map(|of_tile| Column::of_cube(of_tile.dimension, of_tile.area.min().cluster(ClusterTier::L2)));
        let is_stray = match (column, known) {
            // No chunk can be there.
            (None, _) => true,
            (Some(column), Some((last, is_stray))) if last == column => is_stray,
            (Some(column), _) => {
                let is_stray = column.first_cube(view, counters)?.is_none();
                known = Some((column, is_stray));
                is_stray
            }
        };
        if is_stray {
            visit(Part::Stray(tile))?;
        }
        behind = last_key(&tile);
    }
    Ok(())
}

/// A key after all rows of a tile, and before those of the next one.
fn last_key(tile: &TileKey) -> Vec<u8> {
    [&tile[..], &[0xff; key::OPACITY_PATCH_LEN_BYTES]].concat()
}

/// The tile of the first row after a key, damaged or not.
fn next_tile(view: &dyn Readable, counters: &Counters, behind: &[u8]) -> Result<Option<TileKey>, Error> {
    let range = (Bound::Excluded(behind), Bound::Unbounded);
    Ok(view.scan(Family::OpacityMap, range, |key, _| {
        Counters::add(&counters.keys_scanned, 1);
        // A shorter key is not a row of the map.
        key.first_chunk().map_or(ControlFlow::Continue(()), |tile| ControlFlow::Break(*tile))
    })?)
}
