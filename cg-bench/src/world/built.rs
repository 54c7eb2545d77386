//! Buildings: huts with furniture that holds things, and piers that stand in the water.

use cg_format::BlockPos;

use super::canvas::Canvas;
use super::ground::{Column, SEA_Y, is_firm};
use super::names::Ids;
use super::noise::{Noise, Salt};

/// The side of a square of the grid; each has a hut, a pier or nothing.
const GRID: i64 = 24;
/// How far a building reaches from its middle.
const REACH: i64 = 4;

const SITE: Salt = Salt(30);
const GOODS: Salt = Salt(31);
const FIRE: Salt = Salt(32);

/// Things that lie in chests and on shelves.
const THINGS: [&str; 12] = [
    "minecraft:apple",
    "minecraft:bread",
    "minecraft:coal",
    "minecraft:iron_ingot",
    "minecraft:oak_planks",
    "minecraft:string",
    "minecraft:wheat_seeds",
    "minecraft:torch",
    "minecraft:enchanted_book",
    "minecraft:fishing_rod",
    "minecraft:map",
    "cherrygrove:algae",
];

/// Draws all buildings that reach into the chunk.
pub(super) fn draw(canvas: &mut Canvas, noise: Noise, ids: &Ids) {
    let corner = canvas.corner();
    let squares = |from: i64| (from - REACH).div_euclid(GRID)..=(from + 15 + REACH).div_euclid(GRID);
    for square_x in squares(corner.x) {
        for square_z in squares(corner.z) {
            let place = |salt| 4 + noise.pick(SITE, [square_x, salt, square_z], GRID as u64 - 8) as i64;
            let (x, z) = (square_x * GRID + place(0), square_z * GRID + place(1));
            let column = Column::at(noise, x, z);
            if column.is_flooded() {
                pier(canvas, noise, ids, x, z);
            } else if is_firm(noise, column, x, z) && noise.pick(SITE, [square_x, 2, square_z], 10) < 4 {
                hut(canvas, noise, ids, BlockPos::new(x, column.height + 1, z));
            }
        }
    }
}

/// A room of 5×5 with a floor, a door, a chest, a furnace, and a sign before it.
fn hut(canvas: &mut Canvas, noise: Noise, ids: &Ids, floor: BlockPos) {
    if !canvas.meets(floor.y - 6, floor.y + 5) {
        return;
    }
    let blocks = &ids.blocks;
    let at = |dx: i64, dy: i64, dz: i64| BlockPos::new(floor.x + dx, floor.y + dy, floor.z + dz);
    for dx in -2..=2_i64 {
        for dz in -2..=2_i64 {
            let is_wall = dx.abs() == 2 || dz.abs() == 2;
            let is_door = dx == 0 && dz == -2;
            (-6..0).for_each(|dy| canvas.set(at(dx, dy, dz), blocks.cobblestone));
            canvas.set(at(dx, 0, dz), blocks.oak_planks);
            for dy in 1..=3 {
                let block = if is_wall && !(is_door && dy < 3) { blocks.oak_planks } else { blocks.air };
                canvas.set(at(dx, dy, dz), block);
            }
            canvas.set(at(dx, 4, dz), blocks.oak_slab);
        }
    }
    chest(canvas, noise, ids, at(1, 1, 1));
    furnace(canvas, noise, ids, at(-1, 1, 1));
    canvas.set(at(0, 0, -3), blocks.cobblestone);
    sign(canvas, ids, at(0, 1, -3), &format!("Hut at {}, {}\ndoor to the south", floor.x, floor.z));
}

/// Planks on posts; the posts stand in the water, which is a layer above them.
fn pier(canvas: &mut Canvas, noise: Noise, ids: &Ids, x: i64, z: i64) {
    let blocks = &ids.blocks;
    for step in -REACH..=REACH {
        let x = x + step;
        let column = Column::at(noise, x, z);
        if !column.is_flooded() {
            continue;
        }
        if step % 2 == 0 {
            for y in column.height + 1..=SEA_Y {
                let at = BlockPos::new(x, y, z);
                canvas.set(at, blocks.oak_fence);
                canvas.cover(at, blocks.water);
            }
        }
        canvas.set(BlockPos::new(x, SEA_Y + 1, z), blocks.oak_planks);
    }
    sign(canvas, ids, BlockPos::new(x, SEA_Y + 2, z), "No diving");
}

/// A chest with up to 26 things in it, sometimes none.
pub(super) fn chest(canvas: &mut Canvas, noise: Noise, ids: &Ids, at: BlockPos) {
    canvas.set(at, ids.blocks.chest);
    let count = noise.pick(GOODS, [at.x, at.y, at.z], 27);
    canvas.describe(at, ids.components.items, things(noise, at, count));
}

/// A furnace, burning or not, with what it smelts.
pub(super) fn furnace(canvas: &mut Canvas, noise: Noise, ids: &Ids, at: BlockPos) {
    let fire = noise.hash(FIRE, [at.x, at.y, at.z]);
    let is_lit = fire & 1 == 1;
    canvas.set(at, if is_lit { ids.blocks.lit_furnace } else { ids.blocks.furnace });
    canvas.describe(at, ids.components.items, things(noise, at, 1 + fire % 3));
    if is_lit {
        canvas.describe(at, ids.components.smelting, fire.rotate_left(20).to_le_bytes().to_vec());
    }
}

/// A sign with a text on it.
pub(super) fn sign(canvas: &mut Canvas, ids: &Ids, at: BlockPos, text: &str) {
    canvas.set(at, ids.blocks.sign);
    canvas.describe(at, ids.components.text, text.as_bytes().to_vec());
}

/// Contents of a container: for each thing its slot, how many, and its name after the name's length.
pub(super) fn things(noise: Noise, at: BlockPos, count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slot in 0..count {
        let bits = noise.hash(GOODS, [at.x ^ (slot as i64 + 1) << 32, at.y, at.z]);
        let name = THINGS[(bits % THINGS.len() as u64) as usize];
        bytes.extend([slot as u8, 1 + (bits >> 32) as u8 % 64, name.len() as u8]);
        bytes.extend(name.as_bytes());
    }
    bytes
}
