//! What is submitted together: writes that depend on nothing that is stored.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{BlockId, BlockPos, ChunkAt, Dimension, EntityId, LocalPos, RecordId};

use crate::commit::transaction::{Transaction, Writes};
use crate::kinds::property::Property;
use crate::storage::error::Error;

/// Writes that are [submitted](crate::World::submit) together: all are seen together, or none.
///
/// The host reads nothing for it, so no other transaction can be in its way: what it says replaces whatever is stored by
/// then. What is said of one place counts in the order in which it was said. What must read first is a
/// [transaction](crate::World::transaction).
#[derive(Debug, Default)]
pub struct WriteBatch {
    /// In the order in which they were said.
    chunks: Vec<(ChunkAt, ChunkWrite)>,
    /// Everything but chunks.
    others: Writes,
}

/// What is said of one chunk.
#[derive(Debug)]
enum ChunkWrite {
    Save(Arc<Chunk>),
    SaveBlocks(Arc<Chunk>),
    Delete,
    SetBlock(LocalPos, BlockId),
}

impl WriteBatch {
    /// A batch that says nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with room for so many chunks.
    pub fn with_capacity(chunks: usize) -> Self {
        Self { chunks: Vec::with_capacity(chunks), others: Writes::default() }
    }

    /// Stores a chunk in place of what is there, **its entity references too**, as
    /// [`Transaction::save`](crate::Transaction::save).
    pub fn save(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.chunks.push((at, ChunkWrite::Save(chunk.into())));
    }

    /// Stores a chunk and keeps the entity references that are stored there when the batch is accepted, as
    /// [`Transaction::save_blocks`](crate::Transaction::save_blocks).
    pub fn save_blocks(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.chunks.push((at, ChunkWrite::SaveBlocks(chunk.into())));
    }

    /// Deletes a chunk and its entities, unless the batch moves them.
    pub fn delete(&mut self, at: ChunkAt) {
        self.chunks.push((at, ChunkWrite::Delete));
    }

    /// Replaces the block in layer 0 of a cell; its new components hold their defaults. Nothing else of the chunk is replaced,
    /// whatever it is by then.
    ///
    /// The batch is refused as a whole with [`Error::ChunkAbsent`] if the chunk is not stored, and with [`Error::Edit`] if
    /// the chunk refuses the edit.
    pub fn set_block(&mut self, dimension: Dimension, pos: BlockPos, block: BlockId) {
        let at = ChunkAt::new(dimension, pos.chunk());
        self.chunks.push((at, ChunkWrite::SetBlock(pos.local(), block)));
    }

    /// Stores an entity, as [`Transaction::put_entity`](crate::Transaction::put_entity).
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.others.entities.insert(id, Some(entity));
    }

    /// Deletes an entity and the reference to it.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.others.entities.insert(id, None);
    }

    /// Sets a property; `None` removes it.
    pub fn set_property(&mut self, property: Property, bytes: Option<Vec<u8>>) {
        self.others.properties.insert(property, bytes);
    }

    /// Writes an object; its version becomes one more than it was.
    ///
    /// # Errors
    /// [`Error::ObjectKey`] if the key is empty or too long.
    pub fn put_object(&mut self, key: impl AsRef<[u8]>, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        self.others.put_object(key, bytes)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`put_object`](Self::put_object).
    pub fn delete_object(&mut self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.others.delete_object(key)
    }

    /// Stores a record, in place of the one that has its id.
    pub fn put_record(&mut self, id: RecordId, record: Record) {
        self.others.records.insert(id, Some(Arc::new(record)));
    }

    /// Deletes a record.
    pub fn delete_record(&mut self, id: RecordId) {
        self.others.records.insert(id, None);
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.others.is_empty()
    }

    /// About the memory that it holds until it is written.
    pub(super) fn memory_bytes(&self) -> u64 {
        /// What an entry takes here and later in the queue.
        const ENTRY_BYTES: usize = 256;
        let chunk = |write: &ChunkWrite| match write {
            ChunkWrite::Save(chunk) | ChunkWrite::SaveBlocks(chunk) => chunk.memory_bytes(),
            ChunkWrite::Delete => 0,
            // It is copied when it is changed. So much takes a usual chunk.
            ChunkWrite::SetBlock(..) => 2048,
        };
        let chunks: usize = self.chunks.iter().map(|(_, write)| ENTRY_BYTES + chunk(write)).sum();
        (ENTRY_BYTES + chunks + self.others.memory_bytes(ENTRY_BYTES)) as u64
    }

    /// Whether it stores anything.
    pub(super) fn puts_anything(&self) -> bool {
        self.chunks.iter().any(|(_, write)| !matches!(write, ChunkWrite::Delete))
            || self.others.puts_anything()
    }

    /// Says all of it in a transaction that says nothing yet.
    ///
    /// # Errors
    /// As [`Transaction::set_block`].
    pub(super) fn say(&self, tx: &mut Transaction<'_>) -> Result<(), Error> {
        tx.write_all(self.others.clone());
        let catalog = tx.current_catalog();
        let schema = catalog.current_schema();
        for (at, write) in &self.chunks {
            match write {
                ChunkWrite::Save(chunk) => tx.save(*at, Arc::clone(chunk)),
                ChunkWrite::SaveBlocks(chunk) => tx.save_blocks(*at, Arc::clone(chunk))?,
                ChunkWrite::Delete => tx.delete(*at),
                ChunkWrite::SetBlock(cell, block) => {
                    tx.edit(*at, |chunk| chunk.set_block(*cell, *block, &schema))??;
                }
            }
        }
        Ok(())
    }

    /// Whether it puts or deletes entities, which changes the chunks that refer to them.
    pub(super) fn touches_entities(&self) -> bool {
        !self.others.entities.is_empty()
    }

    /// The columns of the chunks, each at least once.
    pub(super) fn columns(&self) -> impl Iterator<Item = ColumnOf> {
        self.chunks.iter().map(|(at, _)| column_of(*at))
    }
}

/// Where a chunk lies from above.
pub(super) type ColumnOf = (Dimension, i64, i64);

pub(super) fn column_of(at: ChunkAt) -> ColumnOf {
    (at.dimension, at.pos.x(), at.pos.z())
}
