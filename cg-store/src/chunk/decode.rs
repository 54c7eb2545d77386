//! Decoding a stored chunk with the schema it was written with, and carrying it to the current one.

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ClusterTier, Space, Tier, key};
use cg_registry::{Catalog, UpgradeFunctions, Upgrader};

use super::StoredChunk;
use crate::engine::Engine;
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::Inner;

impl<E: Engine> Inner<E> {
    /// Decodes a stored chunk and upgrades it in memory. Upgrading is no change: nothing is written.
    pub(crate) fn decode(&self, catalog: &Catalog, stored: StoredChunk<'_>) -> Result<Chunk, Error> {
        Counters::add(&self.counters.chunks_decoded, 1);
        decode(catalog, &self.options.upgrades, stored)
    }
}

/// Decodes a stored chunk and upgrades it to the catalog's current generation.
pub(crate) fn decode(
    catalog: &Catalog,
    functions: &UpgradeFunctions,
    stored: StoredChunk<'_>,
) -> Result<Chunk, Error> {
    let generation = stored.schema_generation;
    let schema = catalog.schema(generation).ok_or_else(|| Error::UnknownGeneration {
        what: stored.at.to_string(),
        found: generation,
        newest: catalog.current_generation(),
    })?;
    let chunk = Chunk::decode(stored.value, &schema).map_err(|problem| damage(stored, problem))?;
    let upgrade = Upgrader::new(catalog, functions).upgrade(&chunk, generation);
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
