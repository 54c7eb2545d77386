//! The ground: how high it is, of what it is made, and where it is hollow.

use cg_format::{BlockId, BlockPos};

use super::canvas::Canvas;
use super::names::Blocks;
use super::noise::{Noise, Salt};

/// The highest block of water.
pub(super) const SEA_Y: i64 = 62;
/// The lowest block that a pick can break; bedrock lies around and under it.
const BOTTOM_Y: i64 = -64;
/// No ground is higher.
const TOP_Y: i64 = 118;

const CONTINENT: Salt = Salt(1);
const HILLS: Salt = Salt(2);
const ROUGH: Salt = Salt(3);
const PEAKS: Salt = Salt(4);
const WARMTH: Salt = Salt(5);
const WETNESS: Salt = Salt(6);
const CAVE: Salt = Salt(7);
const CAVE_TOO: Salt = Salt(8);
const ROCK: Salt = Salt(9);
const VEIN: Salt = Salt(10);
const BEDROCK: Salt = Salt(11);
const PLANT: Salt = Salt(12);
const BED: Salt = Salt(13);

/// The biome of a column of blocks, which decides what grows on it. The numbers are what side data holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Biome {
    Ocean = 0,
    Beach = 1,
    Plains = 2,
    Forest = 3,
    Desert = 4,
    Snow = 5,
    Caves = 6,
}

/// One column of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    /// The highest block of ground.
    pub(super) height: i64,
    pub(super) biome: Biome,
}

impl Column {
    pub(super) fn at(noise: Noise, x: i64, z: i64) -> Self {
        let continent = noise.flat(CONTINENT, x, z, 120);
        let peaks = noise.flat(PEAKS, x, z, 170).max(0.0);
        let hills = 11.0 * noise.flat(HILLS, x, z, 40) + 3.0 * noise.flat(ROUGH, x, z, 13);
        let height = 66.0 + 17.0 * continent + hills + 45.0 * peaks * peaks;
        // Rounds towards zero, and the ground is never below zero.
        let height = (height as i64).min(TOP_Y);
        let warmth = noise.flat(WARMTH, x, z, 210) - peaks * 0.5;
        let biome = match height {
            ..SEA_Y => Biome::Ocean,
            SEA_Y..=64 => Biome::Beach,
            _ if warmth > 0.4 => Biome::Desert,
            _ if warmth < -0.35 || height > 98 => Biome::Snow,
            _ if noise.flat(WETNESS, x, z, 70) > 0.0 => Biome::Forest,
            _ => Biome::Plains,
        };
        Self { height, biome }
    }

    /// Whether the ground lies under water.
    pub(super) const fn is_flooded(self) -> bool {
        self.height < SEA_Y
    }
}

/// Draws ground, caves, water, ice and plants of one column.
pub(super) fn draw(canvas: &mut Canvas, noise: Noise, blocks: &Blocks, column: Column, x: i64, z: i64) {
    let bottom = canvas.corner().y;
    for y in bottom..bottom + 16 {
        let at = BlockPos::new(x, y, z);
        let block = match y - column.height {
            1.. => over(noise, blocks, column, at),
            _ => ground(noise, blocks, column, at),
        };
        canvas.set(at, block);
    }
    bed(canvas, noise, blocks, column, x, z);
}

/// Whether the highest block of a column's ground is there, and dry.
pub(super) fn is_firm(noise: Noise, column: Column, x: i64, z: i64) -> bool {
    !column.is_flooded() && !is_hollow(noise, column, BlockPos::new(x, column.height, z))
}

/// The block in a cell above the ground.
fn over(noise: Noise, blocks: &Blocks, column: Column, at: BlockPos) -> BlockId {
    let BlockPos { x, y, z } = at;
    if y <= SEA_Y {
        let is_cold = noise.flat(WARMTH, x, z, 210) < -0.35;
        return if y == SEA_Y && is_cold { blocks.ice } else { blocks.water };
    }
    if y != column.height + 1 || is_hollow(noise, column, BlockPos::new(x, y - 1, z)) {
        return blocks.air;
    }
    let grown = noise.pick(PLANT, [x, 0, z], 40);
    match (column.biome, grown) {
        (Biome::Snow, _) => blocks.snow,
        (Biome::Plains, 0..8) | (Biome::Forest, 0..4) => blocks.short_grass,
        (Biome::Plains, 8) => blocks.poppy,
        (Biome::Plains, 9..11) => blocks.dandelion,
        (Biome::Desert, 0) if noise.one_in(PLANT, [x, 1, z], 3) => blocks.cactus,
        _ => blocks.air,
    }
}

/// Of what a cell of the ground is made.
fn ground(noise: Noise, blocks: &Blocks, column: Column, at: BlockPos) -> BlockId {
    let BlockPos { x, y, z } = at;
    if y <= BOTTOM_Y + noise.pick(BEDROCK, [x, y, z], 4) as i64 {
        return blocks.bedrock;
    }
    if is_hollow(noise, column, at) {
        return if y < -52 { blocks.lava } else { blocks.air };
    }
    let depth = column.height - y;
    match (column.biome, depth) {
        (Biome::Ocean, 0..3) if noise.flat(BED, x, z, 9) > 0.3 => blocks.clay,
        (Biome::Ocean, 0..3) => blocks.gravel,
        (Biome::Beach | Biome::Desert, 0..4) => blocks.sand,
        (Biome::Desert, 4..8) => blocks.sandstone,
        (Biome::Plains | Biome::Forest, 0) => blocks.grass_block,
        (Biome::Snow, 0) => blocks.snowy_grass_block,
        (Biome::Forest, 1) if noise.one_in(BED, [x, 0, z], 6) => blocks.coarse_dirt,
        (Biome::Plains | Biome::Forest | Biome::Snow, 1..4) => blocks.dirt,
        _ => rock(noise, blocks, at),
    }
}

/// Stone of several kinds, with veins of ore.
fn rock(noise: Noise, blocks: &Blocks, at: BlockPos) -> BlockId {
    let BlockPos { x, y, z } = at;
    // Veins lie in small cubes, and fill about half of them.
    let vein = noise.pick(VEIN, [x >> 1, y >> 1, z >> 1], 240);
    if vein < 9 && noise.one_in(VEIN, [x, y, z], 2) {
        return match (vein, y) {
            (0..3, 0..) => blocks.coal_ore,
            (3..5, _) => blocks.iron_ore,
            (5..7, 0..) => blocks.copper_ore,
            (5, ..0) => blocks.redstone_ore,
            (7, ..32) => blocks.gold_ore,
            (8, ..0) => blocks.diamond_ore,
            _ => blocks.stone,
        };
    }
    if y < 0 {
        return blocks.deepslate;
    }
    let lump = noise.solid(ROCK, [x, y, z], 18);
    match noise.pick(ROCK, [x.div_euclid(18), y.div_euclid(18), z.div_euclid(18)], 3) {
        0 if lump > 0.45 => blocks.granite,
        1 if lump > 0.45 => blocks.diorite,
        2 if lump > 0.45 => blocks.andesite,
        _ => blocks.stone,
    }
}

/// Whether a cave passes: where two smooth fields are both near zero. None opens under water.
fn is_hollow(noise: Noise, column: Column, BlockPos { x, y, z }: BlockPos) -> bool {
    let roof = if column.height <= SEA_Y + 2 { SEA_Y - 30 } else { column.height };
    let at = [x, y, z];
    y <= roof
        && y > BOTTOM_Y + 4
        && noise.solid(CAVE, at, 26).abs() < 0.14
        && noise.solid(CAVE_TOO, at, 26).abs() < 0.14
}

/// Sets the plants on the ground of a lake: in the water that is around it, some of it with algae on top.
fn bed(canvas: &mut Canvas, noise: Noise, blocks: &Blocks, column: Column, x: i64, z: i64) {
    let at = BlockPos::new(x, column.height + 1, z);
    if at.y >= SEA_Y || !noise.one_in(PLANT, [x, 2, z], 25) {
        return;
    }
    canvas.set(at, blocks.sea_pickle);
    canvas.cover(at, blocks.water);
    if noise.one_in(PLANT, [x, 3, z], 4) {
        canvas.cover(at, blocks.algae);
    }
}
