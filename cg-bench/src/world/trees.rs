//! Trees: at most one in each square of a grid, drawn into every chunk that they reach.

use cg_format::{BlockId, BlockPos};

use super::canvas::Canvas;
use super::ground::{Biome, Column, is_firm};
use super::names::Blocks;
use super::noise::{Noise, Salt};

/// The side of a square of the grid.
const GRID: i64 = 6;
/// How far leaves reach from the trunk.
const REACH: i64 = 2;
/// From the ground to the highest leaf, at most.
const TALLEST: i64 = 10;

const TREE: Salt = Salt(20);

/// Draws all trees that reach into the chunk.
pub(super) fn draw(canvas: &mut Canvas, noise: Noise, blocks: &Blocks) {
    let corner = canvas.corner();
    let squares = |from: i64| (from - REACH).div_euclid(GRID)..=(from + 15 + REACH).div_euclid(GRID);
    for square_x in squares(corner.x) {
        for square_z in squares(corner.z) {
            tree(canvas, noise, blocks, square_x, square_z);
        }
    }
}

fn tree(canvas: &mut Canvas, noise: Noise, blocks: &Blocks, square_x: i64, square_z: i64) {
    let at = |salt: i64| [square_x, salt, square_z];
    let x = square_x * GRID + noise.pick(TREE, at(0), GRID as u64) as i64;
    let z = square_z * GRID + noise.pick(TREE, at(1), GRID as u64) as i64;
    let column = Column::at(noise, x, z);
    if !canvas.meets(column.height + 1, column.height + TALLEST) || !is_firm(noise, column, x, z) {
        return;
    }
    // How many of ten squares have a tree.
    let density = match column.biome {
        Biome::Forest => 8,
        Biome::Snow => 3,
        Biome::Plains => 1,
        Biome::Ocean | Biome::Beach | Biome::Desert | Biome::Caves => 0,
    };
    if noise.pick(TREE, at(2), 10) >= density {
        return;
    }
    let trunk = 4 + noise.pick(TREE, at(3), 3) as i64;
    let base = BlockPos::new(x, column.height + 1, z);
    match (column.biome, noise.pick(TREE, at(4), 3)) {
        (Biome::Snow, _) => spruce(canvas, blocks, base, trunk + 2),
        (_, 0) => leafy(canvas, base, trunk, blocks.birch_log, blocks.birch_leaves),
        _ => leafy(canvas, base, trunk, blocks.oak_log, blocks.oak_leaves),
    }
}

/// A round crown on a trunk.
fn leafy(canvas: &mut Canvas, base: BlockPos, trunk: i64, log: BlockId, leaves: BlockId) {
    let top = base.y + trunk;
    for (y, reach) in [(top - 3, 2), (top - 2, 2), (top - 1, 1), (top, 1)] {
        disc(canvas, BlockPos { y, ..base }, reach, leaves);
    }
    stem(canvas, base, trunk, log);
}

/// A cone of leaves around a trunk.
fn spruce(canvas: &mut Canvas, blocks: &Blocks, base: BlockPos, trunk: i64) {
    for (step, y) in (base.y + 2..=base.y + trunk).enumerate() {
        let reach = if y >= base.y + trunk - 1 { 0 } else { 1 + (step as i64 + 1) % 2 };
        disc(canvas, BlockPos { y, ..base }, reach, blocks.spruce_leaves);
    }
    stem(canvas, base, trunk, blocks.spruce_log);
}

/// A square of leaves without its corners.
fn disc(canvas: &mut Canvas, center: BlockPos, reach: i64, leaves: BlockId) {
    for dx in -reach..=reach {
        for dz in -reach..=reach {
            let is_corner = dx.abs() == reach && dz.abs() == reach && reach > 0;
            if !is_corner {
                canvas.set(BlockPos::new(center.x + dx, center.y, center.z + dz), leaves);
            }
        }
    }
}

fn stem(canvas: &mut Canvas, base: BlockPos, trunk: i64, log: BlockId) {
    for y in base.y..base.y + trunk {
        canvas.set(BlockPos { y, ..base }, log);
    }
}
