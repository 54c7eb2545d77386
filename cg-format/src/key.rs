//! Row keys: the bytes that identify a row, and their order.
//!
//! Every integer in a key is big-endian and every signed one is biased (see [`morton`]). So byte order is number order,
//! and an aligned cube of chunks is one contiguous range.
//!
//! | [`Space`] | family | key | bytes |
//! |---|---|---|---|
//! | `WorldMeta` | `worldMeta` | property name | 1… |
//! | `WorldProperty` | `worldProperties` | `namespace:name` | 1… |
//! | `ChunkL0` | `chunkl0` | dimension ‖ Morton(chunk) | 32 |
//! | `ClusterL1` | `chunkl1` | dimension ‖ Morton(chunk >> 2) | 32 |
//! | `ClusterL2` | `chunkl2` | dimension ‖ Morton(chunk >> 4) | 32 |
//! | `Entity` | `entity` | UUID | 16 |
//! | `OpacityTile` | `opacityMap` | dimension ‖ Morton(x >> 2, z >> 2) | 24 |
//! | `OpacityPatch` | `opacityMap` | tile key ‖ chunk y ‖ place in tile | 33 |
//! | `ChunkDelta` | `chunkDelta` | chunk key ‖ commit sequence | 40 |
//! | `Object` | `object` | the caller's bytes | 1…512 |
//! | `Record` | `record` | 1 ‖ dimension ‖ Morton(table) ‖ number in its parent, for each level ‖ UUID | 53…113 |
//! | `Snapshot` | `snapshot` | name ‖ 0 ‖ number of the part | 6…260 |
//! | `Heat` | `index` | 1 ‖ dimension ‖ Morton(chunk >> 2) | 33 |
//! | `ChangeMark` | `index` | 2 ‖ scale ‖ dimension ‖ Morton(cluster) | 34 |
//! | `Quarantine` | `index` | 3 ‖ space ‖ the quarantined row's key ‖ commit sequence | 11… |
//! | `Intent` | `index` | 4 ‖ number | 9 |
//! | `RecordPlace` | `record` | 2 ‖ UUID | 17 |
//! | `ColdHeat` | `index` | 5 ‖ dimension ‖ Morton(chunk >> 4) | 33 |
//! | `ChangeLog` | `index` | 6 ‖ space ‖ commit sequence ‖ the key of the changed value | 11… |
//!
//! An overlay's rows have the same spaces, in a separate engine. A key is a lease's number ‖ the key of a chunk (40
//! bytes), of an entity (24 bytes), of an object, of a property, of a record, or of a record's place (25 bytes).
//!
//! Source of the first seven families: the "World Storage" reference of CherryGrove (CC-BY-4.0).
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

mod change_log;
mod intent;
mod overlay;
mod quarantine;
mod record;
mod snapshot;
mod space;

use core::ops::RangeInclusive;

use crate::morton::{self, bias, unbias};
use crate::wire::Reader;
use crate::{
    ChunkAt, ChunkPos, ClusterPos, ClusterTier, DecodeError, Dimension, EntityId, OutOfRange, Problem,
    Section,
};

pub use change_log::{CHANGE_LOG_MIN_LEN_BYTES, change_log, decode_change_log};
pub use intent::{INTENT_LEN_BYTES, STAGED_LEN_BYTES, decode_intent, decode_staged, intent, staged};
pub use overlay::{
    LEASE_LEN_BYTES, OVERLAY_CHUNK_LEN_BYTES, OVERLAY_ENTITY_LEN_BYTES, OVERLAY_RECORD_PLACE_LEN_BYTES,
    decode_overlay_chunk, decode_overlay_entity, decode_overlay_object, decode_overlay_property,
    decode_overlay_record_place, lease, lease_of, overlay_chunk, overlay_entity, overlay_object,
    overlay_property, overlay_record, overlay_record_place, overlay_record_places,
};

pub use quarantine::{decode_quarantine, quarantine, quarantine_copies};
pub use record::{
    RECORD_MAX_LEVELS, RECORD_PLACE_LEN_BYTES, RECORD_TABLE_LEN_BYTES, RecordLeaf, RecordPath, decode_record,
    decode_record_leaf, decode_record_place, record, record_leaf, record_len_bytes, record_place,
    record_table_name,
};
pub use snapshot::{SNAPSHOT_NAME_MAX_LEN_BYTES, decode_snapshot, snapshot};
pub use space::{Family, Space};

use space::{CHANGE_MARK_TAG, COLD_HEAT_TAG, HEAT_TAG};

/// The length of a chunk's or cluster's key.
pub const CHUNK_LEN_BYTES: usize = 8 + morton::LEN_3D_BYTES;
/// The length of an opacity tile's key.
pub const OPACITY_TILE_LEN_BYTES: usize = 8 + morton::LEN_2D_BYTES;
/// The length of an opacity patch's key.
pub const OPACITY_PATCH_LEN_BYTES: usize = OPACITY_TILE_LEN_BYTES + 8 + 1;
/// The length of a delta's key.
pub const DELTA_LEN_BYTES: usize = CHUNK_LEN_BYTES + 8;
/// The length of a heat row's key, of a cube or of a cold cluster.
pub const HEAT_LEN_BYTES: usize = 1 + CHUNK_LEN_BYTES;
/// The length of a change mark's key.
pub const CHANGE_MARK_LEN_BYTES: usize = 2 + CHUNK_LEN_BYTES;
/// The maximum length of an object's key; the minimum is one byte.
pub const OBJECT_MAX_LEN_BYTES: usize = 512;

/// A chunk's key in `chunkl0`.
pub fn chunk(at: ChunkAt) -> [u8; CHUNK_LEN_BYTES] {
    cube(at.dimension, [at.pos.x(), at.pos.y(), at.pos.z()])
}

/// The inverse of [`chunk`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or a chunk outside the world.
pub fn decode_chunk(key: &[u8]) -> Result<ChunkAt, DecodeError> {
    whole(key, read_chunk)
}

/// A cluster's key in `chunkl1` or `chunkl2`.
pub fn cluster(dimension: Dimension, pos: ClusterPos) -> [u8; CHUNK_LEN_BYTES] {
    cube(dimension, [pos.x(), pos.y(), pos.z()])
}

/// The inverse of [`cluster`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or a cluster outside the world.
pub fn decode_cluster(tier: ClusterTier, key: &[u8]) -> Result<(Dimension, ClusterPos), DecodeError> {
    whole(key, |reader| read_cluster(reader, tier))
}

/// The range of keys in `chunkl0` that contains exactly the chunks of a cluster, from the first to the last.
pub fn chunks_of_cluster(dimension: Dimension, pos: ClusterPos) -> RangeInclusive<[u8; CHUNK_LEN_BYTES]> {
    let key = |pos| chunk(ChunkAt { dimension, pos });
    key(pos.min_chunk())..=key(pos.max_chunk())
}

/// An entity's key.
pub fn entity(id: EntityId) -> [u8; EntityId::LEN_BYTES] {
    id.to_bytes()
}

/// The inverse of [`entity`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length.
pub fn decode_entity(key: &[u8]) -> Result<EntityId, DecodeError> {
    whole(key, |reader| reader.array("entity uuid").map(EntityId::from_bytes))
}

/// Checks the length of an object's key: 1 to [`OBJECT_MAX_LEN_BYTES`] bytes. Any bytes are allowed.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length.
pub fn check_object(key: &[u8]) -> Result<(), DecodeError> {
    let found = key.len() as u64;
    if (1..=OBJECT_MAX_LEN_BYTES).contains(&key.len()) {
        return Ok(());
    }
    let (field, allowed) = ("object key length", "1 to 512");
    Err(Reader::new(key, Section::Key).error(Problem::OutOfRange { field, found, allowed }))
}

/// The key of the opacity tile over a chunk: 4×4 chunks, 64×64 columns.
pub fn opacity_tile(at: ChunkAt) -> [u8; OPACITY_TILE_LEN_BYTES] {
    let mut key = [0; OPACITY_TILE_LEN_BYTES];
    let (dimension, code) = key.split_at_mut(8);
    dimension.copy_from_slice(&at.dimension.get().to_be_bytes());
    code.copy_from_slice(&morton::encode_2d([at.pos.x() >> 2, at.pos.z() >> 2]));
    key
}

/// The inverse of [`opacity_tile`]: the dimension, and the tile's x and z in tiles.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length.
pub fn decode_opacity_tile(key: &[u8]) -> Result<(Dimension, [i64; 2]), DecodeError> {
    whole(key, read_tile)
}

/// The key of one chunk's opacity patch: its tile's key, its y, and its place `x·4 + z` in the tile.
pub fn opacity_patch(at: ChunkAt) -> [u8; OPACITY_PATCH_LEN_BYTES] {
    let mut key = [0; OPACITY_PATCH_LEN_BYTES];
    let (tile, rest) = key.split_at_mut(OPACITY_TILE_LEN_BYTES);
    let (y, place) = rest.split_at_mut(8);
    tile.copy_from_slice(&opacity_tile(at));
    y.copy_from_slice(&bias(at.pos.y()).to_be_bytes());
    place.fill(((at.pos.x() & 3) << 2 | at.pos.z() & 3) as u8);
    key
}

/// The inverse of [`opacity_patch`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length, a place above 15 or a chunk outside the world.
pub fn decode_opacity_patch(key: &[u8]) -> Result<ChunkAt, DecodeError> {
    whole(key, |reader| {
        let (dimension, [tile_x, tile_z]) = read_tile(reader)?;
        let y = unbias(u64::from_be_bytes(reader.array("chunk y")?));
        let here = reader.clone();
        let place = i64::from(reader.u8("place in tile")?);
        if place > 15 {
            let (field, found) = ("place in tile", place as u64);
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 15" }));
        }
        let axis = |tile: i64, place: i64| tile.checked_mul(4).map_or(tile, |min| min | place);
        let pos = ChunkPos::new(axis(tile_x, place >> 2), y, axis(tile_z, place & 3));
        Ok(ChunkAt { dimension, pos: pos.map_err(|error| outside(&here, error))? })
    })
}

/// The key of a chunk's delta. Deltas of one chunk are sorted by their commits.
pub fn delta(at: ChunkAt, commit_seq: u64) -> [u8; DELTA_LEN_BYTES] {
    let mut key = [0; DELTA_LEN_BYTES];
    let (head, tail) = key.split_at_mut(CHUNK_LEN_BYTES);
    head.copy_from_slice(&chunk(at));
    tail.copy_from_slice(&commit_seq.to_be_bytes());
    key
}

/// The inverse of [`delta`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or a chunk outside the world.
pub fn decode_delta(key: &[u8]) -> Result<(ChunkAt, u64), DecodeError> {
    whole(key, |reader| Ok((read_chunk(reader)?, u64::from_be_bytes(reader.array("commit sequence")?))))
}

/// The key of the heat row of the 4³ cube around a chunk.
pub fn heat(at: ChunkAt) -> [u8; HEAT_LEN_BYTES] {
    tagged(HEAT_TAG, &cluster(at.dimension, at.pos.cluster(ClusterTier::L1)))
}

/// The inverse of [`heat`]: the cube.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or tag, or a cluster outside the world.
pub fn decode_heat(key: &[u8]) -> Result<(Dimension, ClusterPos), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", HEAT_TAG)?;
        read_cluster(reader, ClusterTier::L1)
    })
}

/// The key of the heat row of the cold cluster around a chunk.
pub fn cold_heat(at: ChunkAt) -> [u8; HEAT_LEN_BYTES] {
    tagged(COLD_HEAT_TAG, &cluster(at.dimension, at.pos.cluster(ClusterTier::L2)))
}

/// The inverse of [`cold_heat`]: the cluster.
///
/// # Errors
/// As [`decode_heat`].
pub fn decode_cold_heat(key: &[u8]) -> Result<(Dimension, ClusterPos), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", COLD_HEAT_TAG)?;
        read_cluster(reader, ClusterTier::L2)
    })
}

/// The key of the change mark of a cluster's cube.
pub fn change_mark(dimension: Dimension, pos: ClusterPos) -> [u8; CHANGE_MARK_LEN_BYTES] {
    let scaled: [u8; 1 + CHUNK_LEN_BYTES] = tagged(pos.tier().scale_level(), &cluster(dimension, pos));
    tagged(CHANGE_MARK_TAG, &scaled)
}

/// The inverse of [`change_mark`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length, tag or scale, or a cluster outside the world.
pub fn decode_change_mark(key: &[u8]) -> Result<(Dimension, ClusterPos), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", CHANGE_MARK_TAG)?;
        let tier = reader.scale_level()?;
        read_cluster(reader, tier)
    })
}

fn cube(dimension: Dimension, coordinates: [i64; 3]) -> [u8; CHUNK_LEN_BYTES] {
    let mut key = [0; CHUNK_LEN_BYTES];
    let (head, code) = key.split_at_mut(8);
    head.copy_from_slice(&dimension.get().to_be_bytes());
    code.copy_from_slice(&morton::encode_3d(coordinates));
    key
}

/// Reads a key to its end.
fn whole<'a, T>(
    key: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(key, Section::Key);
    let value = read(&mut reader)?;
    reader.end("bytes after the key")?;
    Ok(value)
}

fn read_chunk(reader: &mut Reader<'_>) -> Result<ChunkAt, DecodeError> {
    let dimension = read_dimension(reader)?;
    let here = reader.clone();
    let [x, y, z] = morton::decode_3d(&reader.array("Morton code")?);
    let pos = ChunkPos::new(x, y, z).map_err(|error| outside(&here, error))?;
    Ok(ChunkAt { dimension, pos })
}

fn read_cluster(reader: &mut Reader<'_>, tier: ClusterTier) -> Result<(Dimension, ClusterPos), DecodeError> {
    let dimension = read_dimension(reader)?;
    let here = reader.clone();
    let [x, y, z] = morton::decode_3d(&reader.array("Morton code")?);
    let pos = ClusterPos::new(tier, x, y, z).map_err(|error| outside(&here, error))?;
    Ok((dimension, pos))
}

fn read_tile(reader: &mut Reader<'_>) -> Result<(Dimension, [i64; 2]), DecodeError> {
    Ok((read_dimension(reader)?, morton::decode_2d(&reader.array("tile")?)))
}

fn read_dimension(reader: &mut Reader<'_>) -> Result<Dimension, DecodeError> {
    reader.array("dimension").map(u64::from_be_bytes).map(Dimension::new)
}

fn tagged<const N: usize>(tag: u8, rest: &[u8]) -> [u8; N] {
    let mut key = [tag; N];
    for (to, from) in key.iter_mut().skip(1).zip(rest) {
        *to = *from;
    }
    key
}

fn outside(here: &Reader<'_>, error: OutOfRange) -> DecodeError {
    here.error(Problem::OutOfRange {
        field: "coordinate",
        found: error.found.cast_unsigned(),
        allowed: "a position inside the world",
    })
}

#[cfg(test)]
mod tests;
