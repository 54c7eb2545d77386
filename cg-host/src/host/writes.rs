//! A list of writes that is committed at once.
//!
//! A transaction of the store is a closure. One that stays open over calls of another language is this list, and what it
//! expects of versions: it runs as one transaction, which refuses if a version differs.

use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{BlockId, BlockPos, ChunkAt, ComponentId, Dimension, EntityId, RecordId, SideKind};
use cg_store::Transaction;
use cg_store::objects::ObjectKey;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;

use super::seen::{Digest, Shown, digest};
use crate::binding::Binding;
use crate::column::Column;
use crate::error::Error;
use crate::problem::{CellsProblem, ColumnProblem};

/// Writes that are checked and committed at once: all or none.
#[derive(Debug, Default)]
pub struct Writes {
    pub(super) all: Vec<Write>,
    /// Chunks and the versions that they must have; 0: not stored.
    pub(super) chunks: Vec<(ChunkAt, u64)>,
    /// The same of entities.
    pub(super) entities: Vec<(EntityId, u64)>,
}

/// One write.
#[derive(Debug)]
pub(super) enum Write {
    Column(Arc<SavedColumn>),
    Chunk(ChunkAt, Arc<Chunk>),
    DeleteChunk(ChunkAt),
    Block(Dimension, BlockPos, BlockId),
    Component(ChunkAt, CellLayer, ComponentId, Vec<u8>),
    Side(ChunkAt, SideKind, Option<Vec<u8>>),
    /// With the component that the bytes replace; other components of the stored entity stay.
    Entity(EntityId, Box<Entity>),
    EntityComponent(EntityId, ComponentId, Option<Vec<u8>>),
    DeleteEntity(EntityId),
    Property(Property, Option<Vec<u8>>),
    Settings(Box<WorldSettings>),
    Object(ObjectKey, Option<Arc<[u8]>>),
    Record(RecordId, Option<Box<Record>>),
}

/// A column that was given, with what explains its numbers.
#[derive(Debug)]
pub(super) struct SavedColumn {
    pub(super) binding: Arc<Binding>,
    pub(super) column: Column,
    pub(super) is_part: bool,
    pub(super) digest: Digest,
    /// What the host was shown of it when it was accepted.
    pub(super) shown: Shown,
}

impl Writes {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is written and nothing expected.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty() && self.chunks.is_empty() && self.entities.is_empty()
    }

    /// About the memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.all.iter().map(Write::memory_bytes).sum()
    }

    /// The commit fails unless a chunk has this version; 0: unless it is not stored.
    pub fn expect_chunk(&mut self, at: ChunkAt, version: u64) {
        self.chunks.push((at, version));
    }

    /// The same of an entity.
    pub fn expect_entity(&mut self, id: EntityId, version: u64) {
        self.entities.push((id, version));
    }

    /// Saves a column, as [`Host::save`](crate::Host::save).
    ///
    /// # Errors
    /// [`Error::Column`]; the list is as before then.
    pub fn column(&mut self, binding: &Arc<Binding>, mut column: Column, is_part: bool) -> Result<(), Error> {
        column.sort();
        let digest = digest(binding, &column, is_part);
        self.sorted_column(binding, column, is_part, digest)
    }

    /// As [`column`](Self::column), of a sorted column.
    pub(super) fn sorted_column(
        &mut self,
        binding: &Arc<Binding>,
        column: Column,
        is_part: bool,
        digest: Digest,
    ) -> Result<(), Error> {
        check(binding, &column)?;
        let (binding, shown) = (Arc::clone(binding), Shown::default());
        self.all.push(Write::Column(Arc::new(SavedColumn { binding, column, is_part, digest, shown })));
        Ok(())
    }

    /// Saves a chunk, and keeps the entities that are stored there.
    pub fn chunk(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.all.push(Write::Chunk(at, chunk.into()));
    }

    /// Deletes a chunk and its entities.
    pub fn delete_chunk(&mut self, at: ChunkAt) {
        self.all.push(Write::DeleteChunk(at));
    }

    /// Replaces the block in layer 0 of a cell of a stored chunk.
    pub fn set_block(&mut self, dimension: Dimension, pos: BlockPos, block: BlockId) {
        self.all.push(Write::Block(dimension, pos, block));
    }

    /// Replaces a component of a block of a stored chunk.
    pub fn set_component(&mut self, at: ChunkAt, place: CellLayer, component: ComponentId, bytes: Vec<u8>) {
        self.all.push(Write::Component(at, place, component, bytes));
    }

    /// Replaces side data of a stored chunk; `None` removes it.
    pub fn set_side(&mut self, at: ChunkAt, kind: SideKind, bytes: Option<Vec<u8>>) {
        self.all.push(Write::Side(at, kind, bytes));
    }

    /// Stores an entity. Components of the stored one that this one does not have stay.
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.all.push(Write::Entity(id, Box::new(entity)));
    }

    /// Replaces a component of a stored entity, or of one that the list has put; `None` removes it. The commit fails with
    /// [`Error::EntityAbsent`] if there is none.
    pub fn set_entity_component(&mut self, id: EntityId, component: ComponentId, bytes: Option<Vec<u8>>) {
        self.all.push(Write::EntityComponent(id, component, bytes));
    }

    /// Deletes an entity.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.all.push(Write::DeleteEntity(id));
    }

    /// Sets a property; `None` removes it.
    pub fn property(&mut self, property: Property, bytes: Option<Vec<u8>>) {
        self.all.push(Write::Property(property, bytes));
    }

    /// Sets the settings that are there.
    pub fn settings(&mut self, settings: WorldSettings) {
        self.all.push(Write::Settings(Box::new(settings)));
    }

    /// Stores an object; `None` deletes it.
    pub fn object(&mut self, key: ObjectKey, bytes: Option<Arc<[u8]>>) {
        self.all.push(Write::Object(key, bytes));
    }

    /// Stores a record; `None` deletes it.
    pub fn record(&mut self, id: RecordId, record: Option<Record>) {
        self.all.push(Write::Record(id, record.map(Box::new)));
    }

    /// The columns that it saves.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Arc<SavedColumn>> {
        self.all.iter().filter_map(|write| match write {
            Write::Column(saved) => Some(saved),
            _ => None,
        })
    }

    /// The entities that are in its columns.
    pub(super) fn entities_of_columns(&self) -> impl Iterator<Item = EntityId> {
        self.columns().flat_map(|saved| &saved.column.entities).map(|entity| entity.id)
    }

    /// Whether it changes chunks, or entities that may be in them, past the columns.
    pub(super) fn is_raw(&self) -> bool {
        self.is_of_chunks() || self.all.iter().any(|write| matches!(write, Write::DeleteEntity(_)))
    }

    /// Whether it changes chunks past the columns, or puts entities into them.
    pub(super) fn is_of_chunks(&self) -> bool {
        self.all.iter().any(|write| {
            matches!(
                write,
                Write::Chunk(..)
                    | Write::DeleteChunk(_)
                    | Write::Block(..)
                    | Write::Component(..)
                    | Write::Side(..)
                    | Write::EntityComponent(..)
            ) || matches!(write, Write::Entity(_, entity) if !is_detached(entity))
        })
    }
}

const fn is_detached(entity: &Entity) -> bool {
    matches!(entity.owner, cg_format::entity::Owner::Detached(_))
}

impl Write {
    fn memory_bytes(&self) -> usize {
        let content = match self {
            Self::Column(saved) => saved.column.memory_bytes(),
            Self::Chunk(_, chunk) => chunk.memory_bytes(),
            Self::Component(.., bytes) => bytes.len(),
            Self::Side(.., bytes) | Self::EntityComponent(.., bytes) | Self::Property(_, bytes) => {
                bytes.as_ref().map_or(0, Vec::len)
            }
            Self::Entity(_, entity) => entity.components().map(|(_, bytes)| bytes.len()).sum(),
            Self::Object(_, bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len()),
            Self::Settings(settings) => settings.thumbnail.as_ref().map_or(0, Vec::len),
            Self::Record(_, record) => record.as_ref().map_or(0, |record| record.payload.len()),
            Self::DeleteChunk(_) | Self::Block(..) | Self::DeleteEntity(_) => 0,
        };
        size_of::<Self>() + content
    }

    /// Writes it, unless it is a column.
    pub(super) fn run(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        match self {
            Self::Column(_) => {}
            Self::Chunk(at, chunk) => {
                tx.save_blocks(*at, Arc::clone(chunk)).map_err(|error| Error::of_chunk(*at, error))?;
            }
            Self::DeleteChunk(at) => tx.delete(*at),
            Self::Block(dimension, pos, block) => {
                let at = ChunkAt::new(*dimension, pos.chunk());
                tx.set_block(*dimension, *pos, *block).map_err(|error| Error::of_chunk(at, error))?;
            }
            Self::Component(at, place, component, bytes) => {
                let set = tx.set_component(*at, *place, *component, bytes);
                set.map_err(|error| Error::of_chunk(*at, error))?;
            }
            Self::Side(at, kind, bytes) => {
                let set = tx.set_side(*at, *kind, bytes.clone());
                set.map_err(|error| Error::of_chunk(*at, error))?;
            }
            Self::Entity(id, entity) => {
                let mut new = Entity::clone(entity);
                if let Some(stored) = tx.entity(*id)? {
                    for (component, bytes) in stored.components() {
                        if new.component(component).is_none() {
                            new.set_component(component, bytes.to_vec()).map_err(cg_store::Error::from)?;
                        }
                    }
                }
                tx.put_entity(*id, new);
            }
            Self::EntityComponent(id, component, bytes) => {
                let mut entity = tx.entity(*id)?.ok_or(Error::EntityAbsent { id: *id })?;
                match bytes {
                    Some(bytes) => {
                        entity.set_component(*component, bytes.clone()).map_err(cg_store::Error::from)?;
                    }
                    None => drop(entity.remove_component(*component)),
                }
                tx.put_entity(*id, entity);
            }
            Self::DeleteEntity(id) => tx.delete_entity(*id),
            Self::Property(property, bytes) => tx.set_property(property.clone(), bytes.clone()),
            Self::Settings(settings) => tx.set_settings(settings)?,
            Self::Object(key, Some(bytes)) => tx.put_object(key.clone(), Arc::clone(bytes))?,
            Self::Object(key, None) => tx.delete_object(key.clone())?,
            Self::Record(id, Some(record)) => tx.put_record(*id, Record::clone(record)),
            Self::Record(id, None) => tx.delete_record(*id),
        }
        Ok(())
    }
}

/// Checks what of a column needs no stored state, so that a column that is accepted can be committed.
fn check(binding: &Binding, column: &Column) -> Result<(), Error> {
    column.check()?;
    let (at, known) = (&column.at, binding.known());
    for section in &column.sections {
        let y = section.y;
        if section.layers.len() > usize::from(known.layer_count) {
            let (found, most) = (section.layers.len(), known.layer_count);
            return Err(at.refuse(ColumnProblem::Layers { y, found, most }));
        }
        for cells in &section.layers {
            let part = "blocks";
            let problem = |problem| at.refuse(ColumnProblem::Cells { y, part, problem });
            if cells.side_log2 != 4 {
                return Err(problem(CellsProblem::Side { found: cells.side_log2 }));
            }
            for number in cells.unpack().map_err(problem)?.numbers {
                binding.block_in(at, number)?;
            }
        }
        if let Some(cells) = &section.biomes {
            let part = "biomes";
            let problem = |problem| at.refuse(ColumnProblem::Cells { y, part, problem });
            if cells.side_log2 != known.biome_side_log2 {
                return Err(problem(CellsProblem::Side { found: cells.side_log2 }));
            }
            for number in cells.unpack().map_err(problem)?.numbers {
                let (part, count) = ("biome", binding.biome_count());
                let name = binding.biome_name(number);
                name.ok_or_else(|| at.refuse(ColumnProblem::Number { part, number, count }))?;
            }
        }
    }
    for entity in &column.entities {
        binding.kind_in(at, entity.kind)?;
    }
    for scheduled in &column.scheduled {
        binding.block_in(at, scheduled.block)?;
    }
    Ok(())
}
