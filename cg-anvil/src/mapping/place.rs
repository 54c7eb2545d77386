//! Where an entity of a save is in a world.

use cg_format::entity::EntityPos;
use cg_format::{BlockPos, ChunkPos, Dimension};

use crate::region::ColumnPos;

/// The place that an entity's `Pos` says, or the corner of its column when it says none that a world has.
pub fn of_entity(dimension: Dimension, pos: Option<[f64; 3]>, column: ColumnPos) -> EntityPos {
    pos.and_then(|pos| EntityPos::from_f64(dimension, pos).ok()).unwrap_or_else(|| {
        let corner = BlockPos::new(i64::from(column.x) * 16, 0, i64::from(column.z) * 16);
        EntityPos::new(dimension, corner, [0.0; 3]).expect("zero is a fraction")
    })
}

/// The number in side data [`DATA_VERSION`](cg_minecraft::content::DATA_VERSION).
pub fn data_version(side: &[u8]) -> Option<i32> {
    std::str::from_utf8(side).ok()?.parse().ok()
}

/// The column of a chunk or block column, when a save has it.
pub fn column_of(pos: ChunkPos) -> Option<ColumnPos> {
    Some(ColumnPos::new(i32::try_from(pos.x()).ok()?, i32::try_from(pos.z()).ok()?))
}
