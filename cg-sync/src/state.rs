//! The state that a cache keeps about its server, as objects beside its chunks. The transactions that write chunks
//! write these objects too, so a chunk and its version always match.
//!
//! | object, after `\0sync/` | content |
//! |---|---|
//! | `head` | which world and life of it is cached, and which pages of names exist |
//! | `point` | the newest commit of the server that is known |
//! | `names/` ‖ u32 | a page of names, as received |
//! | `cube/` ‖ the cube's key | the versions of a 4³ cube's chunks, of one life |
//! | `stale/` ‖ the cube's key | empty: the cube has chunks whose version is unknown or not the newest |
//! | `area/` ‖ dimension ‖ corners | the commit up to which an area's changes are known, of one life |
//! | `values` | the sets of values that were asked about, and how far each is known, of one life |
//!
//! A life ends when the server's history does not have the commit in `point`: versions of two lives are not compared.
//! Numbers in keys are little-endian, except those of cubes. Dimensions are those of the cache. Objects are in no
//! box, so the content hash of a box ignores them.

use std::collections::BTreeMap;

use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension, key};
use cg_store::{Error, Transaction};
use serde::{Deserialize, Serialize};

use super::error::SyncError;
use super::messages::{Position, decode_row, encode_row};
use super::place::place_of;
use super::value_set::StoredSet;

pub(super) const CUBES: &[u8] = b"\0sync/cube/";
pub(super) const STALE: &[u8] = b"\0sync/stale/";
pub(super) const HEAD: &[u8] = b"\0sync/head";
pub(super) const POINT: &[u8] = b"\0sync/point";
const NAMES: &[u8] = b"\0sync/names/";
pub(super) const VALUES: &[u8] = b"\0sync/values";
pub(super) const AREAS: &[u8] = b"\0sync/area/";

/// The cached server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) uuid: [u8; 16],
    pub(super) life: [u8; 16],
    /// The pages of names of this life.
    pub(super) first_page: u32,
    pub(super) behind_page: u32,
}

/// The newest commit of the server that a cache knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) opening: [u8; 8],
    pub(super) commit: u64,
}

/// The commit up to which an area is known.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AreaRow {
    pub(super) life: [u8; 16],
    pub(super) commit: u64,
}

/// How far a set of values is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ValuesRow {
    pub(super) set: StoredSet,
    pub(super) life: [u8; 16],
    pub(super) known: Position,
}

/// The versions of a cached 4³ cube.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CubeRow {
    pub(super) life: [u8; 16],
    /// Every version was the newest at this commit, or is newer.
    pub(super) as_of: u64,
    /// The version by place. `None` if the stored version is unknown, or if a newer one is known to exist.
    pub(super) chunks: BTreeMap<u8, Option<u64>>,
}

/// A 4³ cube of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CubeKey([u8; key::CHUNK_LEN_BYTES]);

impl CubeKey {
    pub(super) fn new(dimension: Dimension, cube: ClusterPos) -> Self {
        Self(key::cluster(dimension, cube))
    }

    pub(super) fn of(at: ChunkAt) -> Self {
        Self::new(at.dimension, at.pos.cluster(ClusterTier::L1))
    }

    /// The cube of an object with a prefix.
    pub(super) fn from_object(prefix: &[u8], object: &[u8]) -> Option<(Self, Dimension, ClusterPos)> {
        let bytes: [u8; key::CHUNK_LEN_BYTES] = object.strip_prefix(prefix)?.try_into().ok()?;
        let (dimension, cube) = key::decode_cluster(ClusterTier::L1, &bytes).ok()?;
        Some((Self(bytes), dimension, cube))
    }

    pub(super) fn object(self, prefix: &[u8]) -> Vec<u8> {
        [prefix, &self.0].concat()
    }
}

pub(super) fn names_key(page: u32) -> Vec<u8> {
    [NAMES, &page.to_le_bytes()[..]].concat()
}

pub(super) fn area_key(dimension: Dimension, area: &ChunkBox) -> Vec<u8> {
    let (min, max) = (area.min(), area.max());
    let mut key = [AREAS, &dimension.get().to_le_bytes()[..]].concat();
    for c in [min.x(), min.y(), min.z(), max.x(), max.y(), max.z()] {
        key.extend(c.to_le_bytes());
    }
    key
}

/// The area that an object of [`AREAS`] is of.
pub(super) fn area_of_key(object: &[u8]) -> Option<(Dimension, ChunkBox)> {
    let bytes: &[u8; 56] = object.strip_prefix(AREAS)?.try_into().ok()?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let [dimension, corners @ ..] = numbers else { return None };
    let mut corners = corners.iter().map(|bytes| i64::from_le_bytes(*bytes));
    let mut corner = || ChunkPos::new(corners.next()?, corners.next()?, corners.next()?).ok();
    let (min, max) = (corner()?, corner()?);
    Some((Dimension::new(u64::from_le_bytes(*dimension)), ChunkBox::new(min, max)))
}

impl CubeRow {
    pub(super) fn new(life: [u8; 16]) -> Self {
        Self { life, as_of: 0, chunks: BTreeMap::new() }
    }

    /// Decodes a stored row for a life. If the row is of another one, it has only the places of chunks.
    pub(super) fn read(bytes: &[u8], life: [u8; 16]) -> Result<Self, SyncError> {
        Ok(decode_row::<Self>(bytes)?.in_life(life))
    }

    /// Converts the row to a life. Versions of another one become unknown.
    pub(super) fn in_life(mut self, life: [u8; 16]) -> Self {
        if self.life == life {
            return self;
        }
        self.chunks.values_mut().for_each(|version| *version = None);
        Self { life, as_of: 0, chunks: self.chunks }
    }

    pub(super) fn version(&self, at: ChunkAt) -> Option<u64> {
        self.chunks.get(&place_of(at.pos)).copied().flatten()
    }

    /// Writes the row, and the mark of a stale cube if any chunk is stale.
    pub(super) fn write(&self, tx: &mut Transaction<'_>, key: CubeKey) -> Result<(), Error> {
        if self.chunks.is_empty() {
            tx.delete_object(key.object(CUBES))?;
        } else {
            tx.put_object(key.object(CUBES), encode_row(self))?;
        }
        if self.chunks.values().any(Option::is_none) {
            tx.put_object(key.object(STALE), [])
        } else {
            tx.delete_object(key.object(STALE))
        }
    }
}
