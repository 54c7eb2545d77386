//! The chunks of a region that were read on one thread, to be captured on another.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, SchemaView};
use cg_registry::Catalog;

use crate::capture::{checked_section_count, stands_in};
use crate::error::SnapshotError;
use crate::region::{Region, Section};

/// The chunks and entities of a region as a queue read them, see [`Operation::Copy`](crate::Operation::Copy).
///
/// It is a source that never changes: [`capture`](crate::capture()) makes a snapshot of it on any thread. Outside of the
/// region it has no chunks.
///
/// It shares the memory of the host's chunks, 8 bytes per section beside it. A chunk that the host changes later takes
/// its memory twice until this value and the [outcome](crate::Handle::outcome) in each handle are dropped.
pub struct Copied {
    region: Region,
    /// In the order of [`Region::sections`].
    chunks: Vec<Option<Arc<Chunk>>>,
    entities: BTreeMap<EntityId, Entity>,
    schema: Arc<dyn SchemaView + Send + Sync>,
}

impl Copied {
    /// Begins a copy.
    pub(crate) fn new(region: Region, catalog: &Catalog) -> Result<Self, SnapshotError> {
        // Space for all, which the system provides as it is used: a longer list is never moved within a tick.
        let chunks = Vec::with_capacity(checked_section_count(region)?);
        let schema = Arc::new(catalog.current_schema());
        Ok(Self { region, chunks, entities: BTreeMap::new(), schema })
    }

    /// Adds the chunk of the next section, by the schema that explains it.
    pub(crate) fn add(&mut self, chunk: Option<Arc<Chunk>>, schema: Arc<dyn SchemaView + Send + Sync>) {
        self.chunks.push(chunk);
        self.schema = schema;
    }

    /// Adds an entity of a section's chunk, if its position is in the region.
    pub(crate) fn add_entity(&mut self, id: EntityId, entity: &Entity, section: &Section) {
        if entity.owner == Owner::Chunk(section.at) && stands_in(entity, self.region) {
            self.entities.insert(id, entity.clone());
        }
    }

    /// The region that was copied.
    pub const fn region(&self) -> Region {
        self.region
    }

    /// The place of a chunk in the order of sections.
    fn place(&self, at: ChunkAt) -> Option<usize> {
        let chunks = self.region.area().chunks();
        if at.dimension != self.region.dimension() || !chunks.contains(at.pos) {
            return None;
        }
        let [x, y, z] = at.pos.relative_to(chunks.min()).map(|along| usize::try_from(along).ok());
        let [_, height, depth] = chunks.max().relative_to(chunks.min()).map(|last| last as usize + 1);
        Some((x? * height + y?) * depth + z?)
    }
}

impl ChunkSource for Copied {
    type Error = Infallible;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Infallible> {
        let chunk = self.place(at).and_then(|place| self.chunks.get(place)?.as_ref());
        Ok(chunk.map_or(Lookup::NotFound, |chunk| Lookup::Found(Arc::clone(chunk))))
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::clone(&self.schema)
    }
}

impl EntitySource for Copied {
    type Error = Infallible;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Infallible> {
        Ok(self.entities.get(&id).cloned())
    }
}

/// By content; the schemas are not compared.
impl PartialEq for Copied {
    fn eq(&self, other: &Self) -> bool {
        self.region == other.region && self.chunks == other.chunks && self.entities == other.entities
    }
}

impl fmt::Debug for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copied").field("region", &self.region).finish_non_exhaustive()
    }
}
