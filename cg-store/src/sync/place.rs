//! Places as messages name them: chunks by their 4³ cubes.

use cg_format::cluster::Slot;
use cg_format::{ChunkBox, ChunkPos, ClusterPos, ClusterTier};

use super::error::MessageError;

pub(super) fn wrong(reason: &str) -> MessageError {
    MessageError::Fields { reason: reason.into() }
}

pub(super) fn position(tier: ClusterTier, [x, y, z]: [i64; 3]) -> Result<ClusterPos, MessageError> {
    ClusterPos::new(tier, x, y, z).map_err(|_| wrong("a cube lies outside the world"))
}

/// The place of a chunk in its 4³ cube.
pub(super) fn place_of(chunk: ChunkPos) -> u8 {
    Slot::of(chunk, ClusterTier::L1).in_group()
}

/// The chunk at a place of a 4³ cube.
pub(super) fn chunk_at(cube: ClusterPos, place: u8) -> Result<ChunkPos, MessageError> {
    let slot = Slot::new(ClusterTier::L1, place.into());
    slot.and_then(|slot| slot.chunk(cube)).ok_or_else(|| wrong("a 4³ cube has places 0 to 63"))
}

/// Whether a cube has a chunk in a box.
pub(super) fn meets(area: &ChunkBox, cube: ClusterPos) -> bool {
    let (min, max) = (cube.min_chunk(), cube.max_chunk());
    let (from, to) = (area.min(), area.max());
    let overlap = |min: i64, max: i64, from: i64, to: i64| min <= to && from <= max;
    overlap(min.x(), max.x(), from.x(), to.x())
        && overlap(min.y(), max.y(), from.y(), to.y())
        && overlap(min.z(), max.z(), from.z(), to.z())
}
