//! Side data as a host would keep it: sky light, biomes, and how far the chunk is generated.
//!
//! | kind | bytes |
//! |---|---|
//! | `cherrygrove:sky_light` | a nibble per cell in storage order, or one byte if all are equal |
//! | `cherrygrove:biomes` | a byte per 4×4×4 cells, or one byte if all are equal |
//! | `cherrygrove:stage` | one byte, 255 for complete |

use cg_format::{BlockPos, Chunk, LocalPos};

use super::ground::{Biome, Column, SEA_Y};
use super::names::Sides;

/// The columns of a chunk, x slowest.
pub(super) type Columns = [Column; 256];

/// How far below the ground the caves' biome begins.
const CAVES_BELOW: i64 = 20;
/// The light of a cell under the open sky.
const FULL_LIGHT: u8 = 15;

/// Adds all kinds of side data to a chunk whose corner of smallest coordinates is given.
pub(super) fn attach(chunk: &mut Chunk, sides: &Sides, corner: BlockPos, columns: &Columns) {
    let light: Vec<u8> = LocalPos::all().map(|cell| light(column(columns, cell), corner.y, cell)).collect();
    let nibbles = light.chunks_exact(2).map(|pair| pair[0] | pair[1] << 4).collect();
    chunk.set_side(sides.sky_light, uniform_or(&light, nibbles));

    let corners = LocalPos::all().filter(|cell| cell.index() & 0x333 == 0);
    let biomes: Vec<u8> = corners.map(|cell| biome(column(columns, cell), corner.y, cell) as u8).collect();
    chunk.set_side(sides.biomes, uniform_or(&biomes, biomes.clone()));
    chunk.set_side(sides.stage, vec![u8::MAX]);
}

fn column(columns: &Columns, cell: LocalPos) -> Column {
    columns[usize::from(cell.x()) << 4 | usize::from(cell.z())]
}

/// Light is lost on the way down through water; under the ground there is none.
fn light(column: Column, bottom: i64, cell: LocalPos) -> u8 {
    let y = bottom + i64::from(cell.y());
    if y <= column.height {
        return 0;
    }
    FULL_LIGHT.saturating_sub((SEA_Y + 1 - y).clamp(0, 15) as u8)
}

fn biome(column: Column, bottom: i64, cell: LocalPos) -> Biome {
    let y = bottom + i64::from(cell.y());
    if y < column.height - CAVES_BELOW { Biome::Caves } else { column.biome }
}

/// One byte if all values are equal, else the long form.
fn uniform_or(values: &[u8], long: Vec<u8>) -> Vec<u8> {
    match values {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => vec![*first],
        _ => long,
    }
}
