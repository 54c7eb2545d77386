//! Places that a caller gave, and those that it gets.

use cg_format::entity::EntityPos;
use cg_format::{BlockPos, CellOrder, ChunkAt, ChunkPos, Dimension};

use crate::error::Fault;
use crate::types::cg_pos;

/// A block.
pub(crate) const fn block(given: cg_pos) -> BlockPos {
    BlockPos::new(given.x, given.y, given.z)
}

/// A block, for the caller.
pub(crate) const fn of_block(block: BlockPos) -> cg_pos {
    cg_pos { x: block.x, y: block.y, z: block.z }
}

/// A chunk, for the caller.
pub(crate) const fn of_chunk(chunk: ChunkPos) -> cg_pos {
    cg_pos { x: chunk.x(), y: chunk.y(), z: chunk.z() }
}

/// The position of a chunk.
pub(crate) fn chunk_pos(given: cg_pos) -> Result<ChunkPos, Fault> {
    Ok(ChunkPos::new(given.x, given.y, given.z).map_err(cg_store::Error::from)?)
}

/// A chunk.
pub(crate) fn chunk(dimension: u32, given: cg_pos) -> Result<ChunkAt, Fault> {
    Ok(ChunkAt::new(Dimension::new(dimension.into()), chunk_pos(given)?))
}

/// A point: a block and a place within it.
pub(crate) fn point(dimension: u32, given: cg_pos, fraction: [f32; 3]) -> Result<EntityPos, Fault> {
    let point = EntityPos::new(Dimension::new(dimension.into()), block(given), fraction);
    let place = ChunkAt::new(Dimension::new(dimension.into()), block(given).chunk());
    point.map_err(|error| Fault::from(cg_store::Error::from(error)).at(Some(place)))
}

/// Refuses a box whose corners are the wrong way round.
pub(crate) fn ordered(min: cg_pos, max: cg_pos) -> Result<(), Fault> {
    if min.x <= max.x && min.y <= max.y && min.z <= max.z {
        return Ok(());
    }
    Err(Fault::invalid("a box has a corner min above its corner max"))
}

/// An order of cells.
pub(crate) fn order(number: u32) -> Result<CellOrder, Fault> {
    match number {
        0 => Ok(CellOrder::Xyz),
        1 => Ok(CellOrder::Xzy),
        2 => Ok(CellOrder::Yzx),
        found => Err(Fault::invalid(format!("order {found} of cells is none"))),
    }
}

/// The number of an order.
pub(crate) const fn number_of(order: CellOrder) -> u8 {
    match order {
        CellOrder::Xzy => 1,
        CellOrder::Yzx => 2,
        _ => 0,
    }
}

/// A dimension, for the caller. Those of the C interface have 32 bits.
pub(crate) const fn of_dimension(dimension: Dimension) -> u32 {
    dimension.get() as u32
}

/// Refuses a reserved field that is not 0.
pub(crate) fn reserved(found: u32, of: &str) -> Result<(), Fault> {
    if found == 0 { Ok(()) } else { Err(Fault::invalid(format!("a reserved field of {of} is not 0"))) }
}

/// Refuses bits that mean nothing.
pub(crate) fn flags(found: u32, known: u32, of: &str) -> Result<(), Fault> {
    if found & !known == 0 {
        return Ok(());
    }
    Err(Fault::invalid(format!("flags of {of} are {found:#x}, known are {known:#x}")))
}
