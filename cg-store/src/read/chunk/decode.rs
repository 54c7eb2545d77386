//! Decodes a stored chunk with the schema with which it was written, and upgrades it to the current one.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ClusterTier, Space, Tier, key};
use cg_registry::{Catalog, Schema, UpgradeFunctions, Upgrader};

use super::StoredChunk;
use crate::read::cache::Stored;
use crate::storage::error::{Damage, Error};

/// Decodes a stored chunk and upgrades it to the catalog's current generation.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::UnknownGeneration`], [`Error::NotUpgraded`].
pub fn decode(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    stored: StoredChunk<'_>,
) -> Result<Chunk, Error> {
    upgrade(catalog, functions, stored, decode_as_stored(catalog, stored)?)
}

/// Decodes a stored chunk with the schema with which it was written.
pub(crate) fn decode_as_stored(catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
    let schema = schema_of(catalog, stored)?;
    Chunk::decode(stored.value, &schema).map_err(|problem| damage(stored, problem))
}

/// The schema with which a stored chunk was written.
pub(crate) fn schema_of(catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Schema, Error> {
    let generation = stored.schema_generation;
    catalog.schema(generation).ok_or_else(|| Error::UnknownGeneration {
        what: stored.at.to_string(),
        found: generation,
        newest: catalog.current_generation(),
    })
}

/// Upgrades a chunk from the generation of its row to the current one.
pub(crate) fn upgrade(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    stored: StoredChunk<'_>,
    chunk: Chunk,
) -> Result<Chunk, Error> {
    let upgrade = Upgrader::new(catalog, functions).upgrade(&chunk, stored.schema_generation);
    match upgrade.map_err(|why| Error::NotUpgraded { at: stored.at, why })? {
        Some(upgrade) => Ok(upgrade.chunk),
        None => Ok(chunk),
    }
}

/// Damage inside a stored chunk's own bytes.
pub(crate) fn damage(stored: StoredChunk<'_>, problem: cg_format::DecodeError) -> Error {
    let (space, key) = row_of(stored.at, stored.tier);
    Damage::of_chunk(space, &key, stored.at, problem)
}

/// The row that holds a chunk in a tier.
pub(crate) fn row_of(at: ChunkAt, tier: Tier) -> (Space, [u8; key::CHUNK_LEN_BYTES]) {
    let cluster = |tier| (Space::of_cluster(tier), key::cluster(at.dimension, at.pos.cluster(tier)));
    match tier {
        Tier::L0 => (Space::ChunkL0, key::chunk(at)),
        Tier::L1 => cluster(ClusterTier::L1),
        Tier::L2 => cluster(ClusterTier::L2),
    }
}

/// The last short chunk that was decoded, so that identical chunks are decoded once.
///
/// Most chunks of a world have one kind of block, air above the ground and stone below it, and identical bytes. They
/// are adjacent, so a load of many chunks returns one shared value for them.
#[derive(Debug, Default)]
pub(crate) struct LastDecoded {
    bytes: Vec<u8>,
    schema_generation: u32,
    decoded: Option<(Arc<Chunk>, bool)>,
}

impl LastDecoded {
    /// The maximum size of a compared chunk. No chunk with two kinds of blocks is as short, and longer ones are rarely
    /// identical.
    const MAX_BYTES: usize = 512;

    /// The last chunk, with the version of this one, if this one has the same bytes.
    pub(crate) fn get(&self, stored: StoredChunk<'_>) -> Option<Stored> {
        let (chunk, is_current) = self.decoded.as_ref()?;
        let is_same = self.bytes == stored.value && self.schema_generation == stored.schema_generation;
        let version = stored.version.get();
        is_same.then(|| Stored { chunk: Arc::clone(chunk), version, is_current: *is_current })
    }

    /// Remembers a chunk if it is short.
    pub(crate) fn set(&mut self, stored: StoredChunk<'_>, decoded: &Stored) {
        if stored.value.len() <= Self::MAX_BYTES {
            self.bytes.clear();
            self.bytes.extend_from_slice(stored.value);
            self.schema_generation = stored.schema_generation;
            self.decoded = Some((Arc::clone(&decoded.chunk), decoded.is_current));
        }
    }
}
