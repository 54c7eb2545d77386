//! An endless building of shelves: chunks in which a third of the blocks hold data of their own.

use cg_format::BlockPos;

use super::built::{chest, furnace, sign, things};
use super::canvas::Canvas;
use super::names::Ids;
use super::noise::{Noise, Salt};

const SHELF: Salt = Salt(50);

/// Floors lie so far above each other.
const STOREY: i64 = 4;

/// Draws one chunk of the building.
pub(super) fn draw(canvas: &mut Canvas, noise: Noise, ids: &Ids) {
    let corner = canvas.corner();
    for x in corner.x..corner.x + 16 {
        for z in corner.z..corner.z + 16 {
            for y in corner.y..corner.y + 16 {
                cell(canvas, noise, ids, BlockPos::new(x, y, z));
            }
        }
    }
}

fn cell(canvas: &mut Canvas, noise: Noise, ids: &Ids, at: BlockPos) {
    if at.y.rem_euclid(STOREY) == 0 {
        canvas.set(at, ids.blocks.oak_planks);
        return;
    }
    // Rows of shelves with an aisle between them.
    let is_row = at.x.rem_euclid(3) == 0 && at.z.rem_euclid(16) != 7;
    let bits = noise.pick(SHELF, [at.x, at.y, at.z], 64);
    match (is_row, bits) {
        (true, 0) => furnace(canvas, noise, ids, at),
        (true, 1) => chest(canvas, noise, ids, at),
        (true, _) => {
            canvas.set(at, ids.blocks.bookshelf);
            canvas.describe(at, ids.components.items, things(noise, at, bits % 5));
        }
        (false, 0) if at.y.rem_euclid(STOREY) == 1 => {
            canvas.set(at, ids.blocks.lectern);
            canvas.describe(at, ids.components.text, format!("Shelf {}, {}", at.x, at.z).into_bytes());
            canvas.describe(at, ids.components.smelting, (at.x ^ at.z).to_le_bytes().to_vec());
        }
        (false, 1) if at.y.rem_euclid(STOREY) == 1 => sign(canvas, ids, at, "Silence"),
        _ => {}
    }
}
