//! Row keys: which bytes name a row, and how they sort.
//!
//! Every integer in a key is big-endian and every signed one is biased (see [`morton`]), so that
//! byte order is number order and an aligned cube of chunks is one contiguous range.
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
//!
//! An overlay's rows have the same spaces, in an engine of their own: a lease's number ‖ the key of a chunk (40 bytes), of
//! an entity (24 bytes), of an object, of a property, of a record, or of a record's place (25 bytes).
//!
//! Source of the first seven families: the "World Storage" reference of CherryGrove (CC-BY-4.0).
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

mod overlay;

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::morton::{self, bias, unbias};
use crate::wire::Reader;
use crate::{
    ChunkAt, ChunkPos, ClusterPos, ClusterTier, DecodeError, Dimension, EntityId, OutOfRange, Problem,
    Section,
};

pub use overlay::{
    LEASE_LEN_BYTES, OVERLAY_CHUNK_LEN_BYTES, OVERLAY_ENTITY_LEN_BYTES, OVERLAY_RECORD_PLACE_LEN_BYTES,
    decode_overlay_chunk, decode_overlay_entity, decode_overlay_object, decode_overlay_property,
    decode_overlay_record_place, lease, lease_of, overlay_chunk, overlay_entity, overlay_object,
    overlay_property, overlay_record, overlay_record_place, overlay_record_places,
};

mod record;

pub use record::{
    RECORD_MAX_LEVELS, RECORD_PLACE_LEN_BYTES, RecordLeaf, RecordPath, decode_record, decode_record_leaf,
    decode_record_place, record, record_leaf, record_len_bytes, record_place,
};

/// What a row is. The number is part of every row's checksum, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// Properties of the world itself, and its registries.
    WorldMeta = 1,
    /// Properties that mods keep for the whole world.
    WorldProperty = 2,
    /// Hot chunks, one per key.
    ChunkL0 = 3,
    /// Warm clusters of 4³ chunks.
    ClusterL1 = 4,
    /// Cold clusters of 16³ chunks.
    ClusterL2 = 5,
    /// Entities by UUID.
    Entity = 6,
    /// Opacity tiles of 64×64 columns.
    OpacityTile = 7,
    /// One chunk's share of a tile, newer than the tile.
    OpacityPatch = 8,
    /// Changes to a chunk since its last full save.
    ChunkDelta = 9,
    /// Versioned objects by name.
    Object = 10,
    /// Spatial records.
    Record = 11,
    /// Region snapshots kept in the world.
    Snapshot = 12,
    /// When each 4³ cube was last accessed.
    Heat = 13,
    /// The commit that last changed each cluster cube.
    ChangeMark = 14,
    /// Damaged rows that were set aside.
    Quarantine = 15,
    /// A commit too large for one batch, to be rolled forward, and its parts: told by the length of their keys.
    Intent = 16,
    /// In which leaf a record lies.
    RecordPlace = 17,
}

impl Space {
    /// Every space.
    pub const ALL: [Self; 17] = [
        Self::WorldMeta,
        Self::WorldProperty,
        Self::ChunkL0,
        Self::ClusterL1,
        Self::ClusterL2,
        Self::Entity,
        Self::OpacityTile,
        Self::OpacityPatch,
        Self::ChunkDelta,
        Self::Object,
        Self::Record,
        Self::Snapshot,
        Self::Heat,
        Self::ChangeMark,
        Self::Quarantine,
        Self::Intent,
        Self::RecordPlace,
    ];

    /// The byte that stands for the space in checksums and in quarantine keys.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The inverse of [`byte`](Self::byte).
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.byte() == byte)
    }

    /// The column family that holds the space's rows.
    pub const fn family(self) -> Family {
        match self {
            Self::WorldMeta => Family::WorldMeta,
            Self::WorldProperty => Family::WorldProperties,
            Self::ChunkL0 => Family::ChunkL0,
            Self::ClusterL1 => Family::ChunkL1,
            Self::ClusterL2 => Family::ChunkL2,
            Self::Entity => Family::Entity,
            Self::OpacityTile | Self::OpacityPatch => Family::OpacityMap,
            Self::ChunkDelta => Family::ChunkDelta,
            Self::Object => Family::Object,
            Self::Record | Self::RecordPlace => Family::Record,
            Self::Snapshot => Family::Snapshot,
            Self::Heat | Self::ChangeMark | Self::Quarantine | Self::Intent => Family::Index,
        }
    }

    /// The tag byte that starts the space's keys in the `index` family.
    pub const fn index_tag(self) -> Option<u8> {
        match self {
            Self::Heat => Some(HEAT_TAG),
            Self::ChangeMark => Some(CHANGE_MARK_TAG),
            Self::Quarantine => Some(QUARANTINE_TAG),
            Self::Intent => Some(INTENT_TAG),
            _ => None,
        }
    }

    /// The space of the chunks or clusters of a tier.
    pub const fn of_cluster(tier: ClusterTier) -> Self {
        match tier {
            ClusterTier::L1 => Self::ClusterL1,
            ClusterTier::L2 => Self::ClusterL2,
        }
    }

    /// What a row of a family is, told from its key; `None` for a key that this code does not know.
    pub fn of_row(family: Family, key: &[u8]) -> Option<Self> {
        Some(match family {
            Family::WorldMeta => Self::WorldMeta,
            Family::WorldProperties => Self::WorldProperty,
            Family::ChunkL0 => Self::ChunkL0,
            Family::ChunkL1 => Self::ClusterL1,
            Family::ChunkL2 => Self::ClusterL2,
            Family::Entity => Self::Entity,
            Family::OpacityMap if key.len() == OPACITY_TILE_LEN_BYTES => Self::OpacityTile,
            Family::OpacityMap if key.len() == OPACITY_PATCH_LEN_BYTES => Self::OpacityPatch,
            Family::OpacityMap => return None,
            Family::ChunkDelta => Self::ChunkDelta,
            Family::Object => Self::Object,
            Family::Record => match *key.first()? {
                record::RECORD_TAG => Self::Record,
                record::PLACE_TAG => Self::RecordPlace,
                _ => return None,
            },
            Family::Snapshot => Self::Snapshot,
            Family::Index => {
                let tag = *key.first()?;
                return Self::ALL.into_iter().find(|space| space.index_tag() == Some(tag));
            }
        })
    }
}

/// A column family: rows that are stored, tuned and compacted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `worldMeta`
    WorldMeta,
    /// `worldProperties`
    WorldProperties,
    /// `chunkl0`
    ChunkL0,
    /// `chunkl1`
    ChunkL1,
    /// `chunkl2`
    ChunkL2,
    /// `entity`
    Entity,
    /// `opacityMap`
    OpacityMap,
    /// `chunkDelta`
    ChunkDelta,
    /// `object`
    Object,
    /// `record`
    Record,
    /// `snapshot`
    Snapshot,
    /// `index`
    Index,
}

impl Family {
    /// Every family. All are created with the world; none is added later.
    pub const ALL: [Self; 12] = [
        Self::WorldMeta,
        Self::WorldProperties,
        Self::ChunkL0,
        Self::ChunkL1,
        Self::ChunkL2,
        Self::Entity,
        Self::OpacityMap,
        Self::ChunkDelta,
        Self::Object,
        Self::Record,
        Self::Snapshot,
        Self::Index,
    ];

    /// The name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorldMeta => "worldMeta",
            Self::WorldProperties => "worldProperties",
            Self::ChunkL0 => "chunkl0",
            Self::ChunkL1 => "chunkl1",
            Self::ChunkL2 => "chunkl2",
            Self::Entity => "entity",
            Self::OpacityMap => "opacityMap",
            Self::ChunkDelta => "chunkDelta",
            Self::Object => "object",
            Self::Record => "record",
            Self::Snapshot => "snapshot",
            Self::Index => "index",
        }
    }
}

/// Bytes of a chunk's or cluster's key.
pub const CHUNK_LEN_BYTES: usize = 8 + morton::LEN_3D_BYTES;
/// Bytes of an opacity tile's key.
pub const OPACITY_TILE_LEN_BYTES: usize = 8 + morton::LEN_2D_BYTES;
/// Bytes of an opacity patch's key.
pub const OPACITY_PATCH_LEN_BYTES: usize = OPACITY_TILE_LEN_BYTES + 8 + 1;
/// Bytes of a delta's key.
pub const DELTA_LEN_BYTES: usize = CHUNK_LEN_BYTES + 8;
/// Bytes of a heat row's key.
pub const HEAT_LEN_BYTES: usize = 1 + CHUNK_LEN_BYTES;
/// Bytes of a change mark's key.
pub const CHANGE_MARK_LEN_BYTES: usize = 2 + CHUNK_LEN_BYTES;
/// Bytes of an intent's key.
pub const INTENT_LEN_BYTES: usize = 1 + 8;
/// Bytes of the key of a part of what an intent is to carry out.
pub const STAGED_LEN_BYTES: usize = INTENT_LEN_BYTES + 4;
/// The longest key of an object; the shortest has one byte.
pub const OBJECT_MAX_LEN_BYTES: usize = 512;

const HEAT_TAG: u8 = 1;
const CHANGE_MARK_TAG: u8 = 2;
const QUARANTINE_TAG: u8 = 3;
const INTENT_TAG: u8 = 4;

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

/// The keys in `chunkl0` of exactly the chunks of a cluster: from its first child to its last.
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

/// Whether an object can have this key: 1 to [`OBJECT_MAX_LEN_BYTES`] bytes, whatever they are.
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

/// The key of a chunk's delta: deltas of one chunk sort by the commit that made them.
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

/// The key under which a damaged row is set aside by a commit: a row that is damaged again has another copy.
pub fn quarantine(space: Space, row: &[u8], commit_seq: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + row.len() + 8);
    out.extend([QUARANTINE_TAG, space.byte()]);
    out.extend_from_slice(row);
    out.extend(commit_seq.to_be_bytes());
    out
}

/// The keys of all copies of one row, from the oldest. Copies of longer keys may lie between them, so each key that is
/// found has to be [decoded](decode_quarantine) and compared.
pub fn quarantine_copies(space: Space, row: &[u8]) -> RangeInclusive<Vec<u8>> {
    quarantine(space, row, 0)..=quarantine(space, row, u64::MAX)
}

/// The inverse of [`quarantine`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another tag, an unknown space or fewer bytes than a commit sequence.
pub fn decode_quarantine(key: &[u8]) -> Result<(Space, &[u8], u64), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", QUARANTINE_TAG)?;
        let here = reader.clone();
        let byte = reader.u8("space")?;
        let Some(space) = Space::from_byte(byte) else {
            let (field, found) = ("space", byte.into());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "1 to 17" }));
        };
        let row = reader.take("row key", reader.left_bytes().saturating_sub(8))?;
        Ok((space, row, u64::from_be_bytes(reader.array("commit sequence")?)))
    })
}

/// The longest name of a snapshot that is kept in a world.
pub const SNAPSHOT_NAME_MAX_LEN_BYTES: usize = 255;

/// The key of a part of a snapshot that is kept in a world, or `None` for a name that is empty, too long or holds a zero
/// byte. Part 0 says what the others are.
pub fn snapshot(name: &str, part: u32) -> Option<Vec<u8>> {
    if name.is_empty() || name.len() > SNAPSHOT_NAME_MAX_LEN_BYTES || name.contains('\0') {
        return None;
    }
    let mut key = Vec::with_capacity(name.len() + 5);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key.extend(part.to_be_bytes());
    Some(key)
}

/// The inverse of [`snapshot`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for a key that no name gives.
pub fn decode_snapshot(key: &[u8]) -> Result<(&str, u32), DecodeError> {
    whole(key, |reader| {
        let here = reader.clone();
        let name = reader.take("snapshot name", reader.left_bytes().saturating_sub(5))?;
        let name = core::str::from_utf8(name).map_err(|error| {
            let found = name.get(error.valid_up_to()).copied().unwrap_or_default();
            here.error(Problem::NotUtf8 { field: "snapshot name", found })
        })?;
        reader.expect_u8("end of name", 0)?;
        let part = u32::from_be_bytes(reader.array("part")?);
        if snapshot(name, part).is_none() {
            let (field, found) = ("snapshot name", name.len() as u64);
            return Err(here.error(Problem::OutOfRange {
                field,
                found,
                allowed: "1 to 255 bytes, none zero",
            }));
        }
        Ok((name, part))
    })
}

/// The key of a piece of work that is to be rolled forward; numbers are given out in rising order.
pub fn intent(number: u64) -> [u8; INTENT_LEN_BYTES] {
    tagged(INTENT_TAG, &number.to_be_bytes())
}

/// The inverse of [`intent`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or tag.
pub fn decode_intent(key: &[u8]) -> Result<u64, DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", INTENT_TAG)?;
        reader.array("number").map(u64::from_be_bytes)
    })
}

/// The key of a part of what an intent is to carry out. A part's key begins with its intent's, so it sorts behind it.
pub fn staged(number: u64, part: u32) -> [u8; STAGED_LEN_BYTES] {
    let mut rest = [0; STAGED_LEN_BYTES - 1];
    let (head, tail) = rest.split_at_mut(8);
    head.copy_from_slice(&number.to_be_bytes());
    tail.copy_from_slice(&part.to_be_bytes());
    tagged(INTENT_TAG, &rest)
}

/// The inverse of [`staged`]: the intent's number and the part's.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`] for another length or tag.
pub fn decode_staged(key: &[u8]) -> Result<(u64, u32), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", INTENT_TAG)?;
        let number = reader.array("number").map(u64::from_be_bytes)?;
        Ok((number, reader.array("part").map(u32::from_be_bytes)?))
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
    reader.end("bytes behind the key")?;
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
