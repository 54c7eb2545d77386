//! A minimal host in memory: chunks and entities in maps, and what a queue needs around them. It is for hosts without a
//! stored world, examples, benchmarks and tests.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use cg_format::chunk::{Chunk, EditError};
use cg_format::entity::{Entity, Owner};
use cg_format::{
    BlockBox, BlockId, BlockPos, ChunkAt, ChunkSink, ChunkSource, Dimension, Editor, EntityId, EntitySource,
    LocalPos, Lookup, SchemaView,
};
use cg_registry::{Catalog, Schema};

mod live;

pub use live::{Live, Touch, Watch};

/// Chunks and entities in memory.
#[derive(Debug, Clone)]
pub struct Memory {
    chunks: HashMap<ChunkAt, Arc<Chunk>>,
    entities: BTreeMap<EntityId, Entity>,
    schema: Schema,
}

impl Memory {
    /// An empty memory with the catalog's current schema.
    pub fn new(catalog: &Catalog) -> Self {
        Self { chunks: HashMap::new(), entities: BTreeMap::new(), schema: catalog.current_schema() }
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// All entities, ascending by id.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = (EntityId, &Entity)> {
        self.entities.iter().map(|(id, entity)| (*id, entity))
    }

    /// Inserts or replaces a chunk.
    pub fn insert(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.chunks.insert(at, chunk.into());
    }

    /// Fills a box with a block. Absent chunks are created, filled with that block.
    ///
    /// # Errors
    /// [`EditError::UnknownBlock`].
    pub fn fill(&mut self, dimension: Dimension, area: BlockBox, block: BlockId) -> Result<(), EditError> {
        for pos in area.chunks().iter() {
            let at = ChunkAt::new(dimension, pos);
            let Some(chunk) = self.chunks.get_mut(&at) else {
                self.insert(at, Chunk::filled(block, &self.schema)?);
                continue;
            };
            let chunk = Arc::make_mut(chunk);
            for cell in LocalPos::all().filter(|cell| area.contains(pos.block(*cell))) {
                chunk.set_block(cell, block, &self.schema)?;
            }
        }
        Ok(())
    }

    /// The block in layer 0 of a cell.
    pub fn block(&self, dimension: Dimension, pos: BlockPos) -> Option<BlockId> {
        let chunk = self.chunks.get(&ChunkAt::new(dimension, pos.chunk()))?;
        Some(chunk.block(pos.local()))
    }

    /// Sets the block in layer 0 of a cell. Returns the old one, or `None` if there is no chunk.
    ///
    /// # Errors
    /// As [`Chunk::set_block`].
    pub fn set_block(
        &mut self,
        dimension: Dimension,
        pos: BlockPos,
        block: BlockId,
    ) -> Result<Option<BlockId>, EditError> {
        let Some(chunk) = self.chunks.get_mut(&ChunkAt::new(dimension, pos.chunk())) else { return Ok(None) };
        Arc::make_mut(chunk).set_block(pos.local(), block, &self.schema).map(Some)
    }

    /// Edits a chunk in place; `None` if there is none.
    pub fn edit<T>(&mut self, at: ChunkAt, change: impl FnOnce(&mut Chunk) -> T) -> Option<T> {
        self.chunks.get_mut(&at).map(|chunk| change(Arc::make_mut(chunk)))
    }

    /// Removes the reference to an entity from the chunk that owns it.
    fn release(&mut self, id: EntityId) {
        let Some(Owner::Chunk(at)) = self.entities.get(&id).map(|entity| entity.owner.clone()) else {
            return;
        };
        self.edit(at, |chunk| chunk.remove_entity(id));
    }
}

impl ChunkSource for Memory {
    type Error = Infallible;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Infallible> {
        Ok(self.chunks.get(&at).map_or(Lookup::NotFound, |chunk| Lookup::Found(Arc::clone(chunk))))
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.schema.clone())
    }
}

impl EntitySource for Memory {
    type Error = Infallible;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Infallible> {
        Ok(self.entities.get(&id).cloned())
    }
}

impl ChunkSink for Memory {
    type Error = Infallible;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Infallible> {
        self.chunks.insert(at, chunk);
        Ok(())
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        if let Some(chunk) = self.chunks.remove(&at) {
            for id in chunk.entities() {
                self.entities.remove(id);
            }
        }
        Ok(())
    }
}

impl Editor for Memory {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Infallible> {
        Ok(self.chunks.get(&at).cloned())
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        ChunkSource::schema(self)
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Infallible> {
        Ok(self.entities.get(&id).cloned())
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Infallible> {
        self.release(id);
        if let Owner::Chunk(at) = entity.owner {
            self.edit(at, |chunk| chunk.add_entity(id));
        }
        self.entities.insert(id, entity);
        Ok(())
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Infallible> {
        self.release(id);
        self.entities.remove(&id);
        Ok(())
    }
}
