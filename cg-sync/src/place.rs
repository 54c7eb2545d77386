//! Places in messages: chunks are numbered in their 4³ cubes.

use cg_format::cluster::Slot;
use cg_format::{ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension};
use cg_registry::Catalog;
use cg_store::Error;

use super::error::{MessageError, SyncError};
use super::messages::SyncRequest;

pub(super) fn wrong(reason: &str) -> MessageError {
    MessageError::Fields { reason: reason.into() }
}

pub(super) fn position(tier: ClusterTier, [x, y, z]: [i64; 3]) -> Result<ClusterPos, MessageError> {
    ClusterPos::new(tier, x, y, z).map_err(|_| wrong("a cube lies outside the world"))
}

/// The place of a chunk in its 4³ cube.
pub(super) fn place_of(chunk: ChunkPos) -> u8 {
    Slot::of(chunk, ClusterTier::L1).in_cube()
}

/// The chunk at a place of a 4³ cube.
pub(super) fn chunk_at(cube: ClusterPos, place: u8) -> Result<ChunkPos, MessageError> {
    let slot = Slot::new(ClusterTier::L1, place.into());
    slot.and_then(|slot| slot.chunk(cube)).ok_or_else(|| wrong("a 4³ cube has places 0 to 63"))
}

/// Whether a cube has a chunk in a box.
pub(super) fn meets(area: &ChunkBox, cube: ClusterPos) -> bool {
    area.intersects(&ChunkBox::new(cube.min_chunk(), cube.max_chunk()))
}

/// Resolves a dimension number of a request to a dimension of the cache.
pub(super) fn dimension_of(
    request: &SyncRequest,
    catalog: &Catalog,
    number: u16,
) -> Result<Dimension, SyncError> {
    let name =
        request.dimensions.get(usize::from(number)).and_then(|asked| std::str::from_utf8(&asked.name).ok());
    name.and_then(|name| catalog.dimension(name)).ok_or(SyncError::NotTheReply)
}

/// The box of a request.
pub(super) fn area_of([min, max]: [[i64; 3]; 2]) -> Result<ChunkBox, SyncError> {
    let corner = |[x, y, z]: [i64; 3]| ChunkPos::new(x, y, z).map_err(Error::from);
    Ok(ChunkBox::new(corner(min)?, corner(max)?))
}

/// The 4³ cube of a message.
pub(super) fn cube_of([x, y, z]: [i64; 3]) -> Result<ClusterPos, SyncError> {
    Ok(ClusterPos::new(ClusterTier::L1, x, y, z).map_err(Error::from)?)
}
