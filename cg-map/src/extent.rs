//! Where a map has something to show, found from the keys alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::{BlockArea, BlockBox, BlockPos, ChunkBox, ChunkPos, Dimension};
use cg_store::quarantine::LostChunks;
use cg_store::view::Area;
use cg_store::{Error, World};

use crate::seen::Seen;

/// The side of a tile: one cube of 16³ chunks, whose keys lie together.
pub(super) const TILE_BLOCKS: i64 = 256;
/// The same in chunks.
const TILE_CHUNKS: i64 = 16;

/// The part of a dimension that is drawn: tiles of 256×256 blocks that hold chunks, and what bounds them.
#[derive(Debug)]
pub(super) struct Extent {
    /// The least x and z, in blocks.
    pub(super) min: [i64; 2],
    /// The greatest x and z, in blocks.
    pub(super) max: [i64; 2],
    /// Tiles by z, then x.
    tiles: BTreeMap<(i64, i64), Parts>,
    /// Damage that was met, in words.
    pub(super) unreadable: Vec<String>,
}

/// Contents of a tile.
#[derive(Debug, Default)]
struct Parts {
    /// The cubes of chunks, by y.
    cubes: BTreeSet<i64>,
    /// The chunks that damaged rows may hold.
    damaged: Vec<ChunkBox>,
}

/// One tile: its place in tiles, and the y of its cubes from the top down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) x: i64,
    pub(super) z: i64,
    pub(super) cubes_down: Vec<i64>,
    /// The chunks that damaged rows may hold: each box is in one cube.
    pub(super) damaged: Vec<ChunkBox>,
}

/// The tiles of one strip from west to east.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StripTiles {
    /// Which strip, counted in strips from z = 0.
    pub(super) index: i64,
    pub(super) tiles: Vec<Tile>,
}

impl Extent {
    /// Looks for chunks of an area; `None` if there are neither chunks nor damage.
    pub(super) fn find(world: &World, dimension: Dimension, area: &BlockArea) -> Result<Option<Self>, Error> {
        let mut tiles: BTreeMap<(i64, i64), Parts> = BTreeMap::new();
        let mut bounds: Option<BlockBox> = None;
        let mut unreadable = Vec::new();
        world.read_view(|view| {
            view.for_each_place(Area::Blocks(dimension, area), |stored| {
                let (found, is_damaged) = match stored {
                    Ok(stored) => (vec![ChunkBox::new(stored.at.pos, stored.at.pos)], false),
                    Err(error) => {
                        let problem = error.to_string();
                        if !unreadable.contains(&problem) {
                            unreadable.push(problem);
                        }
                        let damaged = chunks_of_row(&error).filter(|(found, _)| *found == dimension);
                        let common =
                            |(_, damaged)| area.chunks().filter_map(move |chunks| common(damaged, chunks));
                        (damaged.into_iter().flat_map(common).collect(), true)
                    }
                };
                for found in found {
                    let [x, y, z] = [found.min().x(), found.min().y(), found.min().z()]
                        .map(|c| c.div_euclid(TILE_CHUNKS));
                    let parts = tiles.entry((z, x)).or_default();
                    parts.cubes.insert(y);
                    if is_damaged {
                        parts.damaged.push(found);
                    }
                    let drawn = area.intersection(&found.blocks());
                    for drawn in drawn.boxes() {
                        bounds = Some(bounds.map_or(*drawn, |bounds| around(bounds, *drawn)));
                    }
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        Ok(bounds.map(|bounds| {
            let (first, last) = (bounds.min(), bounds.max());
            Self { min: [first.x, first.z], max: [last.x, last.z], tiles, unreadable }
        }))
    }

    pub(super) fn longer_side_blocks(&self) -> u64 {
        let side = |axis: usize| self.max[axis].abs_diff(self.min[axis]).saturating_add(1);
        side(0).max(side(1))
    }

    /// Cuts the extent down to some pixels of its picture.
    pub(super) fn narrow(&mut self, seen: Seen, scale_blocks: u32) {
        let scale = i64::from(scale_blocks);
        for axis in [0, 1] {
            let first_px = self.min[axis].div_euclid(scale);
            let least = (first_px + i64::from(seen.min[axis])) * scale;
            let greatest = (first_px + i64::from(seen.max[axis])) * scale + (scale - 1);
            self.min[axis] = self.min[axis].max(least);
            self.max[axis] = self.max[axis].min(greatest);
        }
    }

    /// The tiles strip by strip from north to south. A strip is as high as a tile or a pixel, whichever is higher.
    pub(super) fn strips(&self, scale_blocks: u32) -> Vec<StripTiles> {
        let mut strips: BTreeMap<i64, Vec<Tile>> = BTreeMap::new();
        let height = strip_blocks(scale_blocks);
        for ((z, x), parts) in &self.tiles {
            let cubes_down = parts.cubes.iter().rev().copied().collect();
            let tile = Tile { x: *x, z: *z, cubes_down, damaged: parts.damaged.clone() };
            strips.entry((z * TILE_BLOCKS).div_euclid(height)).or_default().push(tile);
        }
        strips.into_iter().map(|(index, tiles)| StripTiles { index, tiles }).collect()
    }
}

/// The height of a strip. Scales are powers of two, so tiles and pixels never cross its border.
pub(super) fn strip_blocks(scale_blocks: u32) -> i64 {
    TILE_BLOCKS.max(scale_blocks.into())
}

/// The chunks that a damaged row may hold; `None` if the error does not name the row of a chunk or a cluster.
fn chunks_of_row(error: &Error) -> Option<(Dimension, ChunkBox)> {
    let Error::Corrupt(damage) = error else { return None };
    let chunks = LostChunks::of_row(damage.space, &damage.key)?;
    Some((chunks.dimension, chunks.bounds))
}

/// The chunks that two boxes share.
fn common(a: ChunkBox, b: ChunkBox) -> Option<ChunkBox> {
    let (min, max) = (greatest(a.min(), b.min()), least(a.max(), b.max()));
    let is_ordered = min.x() <= max.x() && min.y() <= max.y() && min.z() <= max.z();
    is_ordered.then(|| ChunkBox::new(min, max))
}

/// The smallest box that contains two others.
fn around(a: BlockBox, b: BlockBox) -> BlockBox {
    let pick = |a: BlockPos, b: BlockPos, f: fn(i64, i64) -> i64| {
        BlockPos::new(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z))
    };
    BlockBox::new(pick(a.min(), b.min(), i64::min), pick(a.max(), b.max(), i64::max))
}

fn least(a: ChunkPos, b: ChunkPos) -> ChunkPos {
    ChunkBox::new(a, b).min()
}

fn greatest(a: ChunkPos, b: ChunkPos) -> ChunkPos {
    ChunkBox::new(a, b).max()
}
