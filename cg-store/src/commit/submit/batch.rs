//! A batch of writes that is submitted as one: new values, and changes of what is stored when the batch is accepted.

mod places;

use std::fmt;
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, Owner};
use cg_format::record::Record;
use cg_format::{BlockId, BlockPos, ChunkAt, ComponentId, Dimension, EntityId, RecordId, SideKind};

use crate::commit::transaction::{Tx, TxStore, ValueStore, Writes};
use crate::kinds::property::Property;
use crate::read::cache::Column;
use crate::rt::pool::caught;
use crate::storage::error::Error;

/// Writes that belong to the host until they are [submitted](crate::World::submit), and then are seen together, or none.
///
/// The world knows nothing of a batch that was not submitted, or that [`Busy`](Error::Busy) put off: a load shows what
/// was stored before. So submit before you unload a chunk. [`touches`](Self::touches) says whether a batch has a write
/// to it.
///
/// The host reads nothing for it, so no other transaction conflicts with it: its values replace whatever is stored when it
/// is accepted. Writes to one place apply in the order of the calls. Use a [transaction](crate::World::transaction) for
/// writes that depend on what the host reads first.
///
/// Two writers may change different parts of one thing. [`move_entity`](Self::move_entity),
/// [`edit_entity`](Self::edit_entity), [`set_block`](Self::set_block), [`set_component`](Self::set_component),
/// [`set_side`](Self::set_side) and [`edit`](Self::edit) change what is stored when the batch is accepted, and keep the
/// rest of it.
#[derive(Debug, Default)]
pub struct WriteBatch {
    /// In the order of the calls. A column is at the place of its lowest height.
    chunks: Vec<(ChunkAt, Write<Saved, ChunkChange>)>,
    /// In the order of the calls.
    entities: Vec<(EntityId, Write<Entity, EntityChange>)>,
    /// Everything but chunks and entities.
    others: Writes,
}

/// One write to a chunk or an entity.
#[derive(Debug)]
enum Write<T, C> {
    Put(T),
    Delete,
    Change(Change<C>),
}

/// Chunks that replace what is stored.
#[derive(Debug)]
enum Saved {
    Chunk(Arc<Chunk>),
    Column(Column),
}

impl Saved {
    /// Whether a chunk of it is at a place, if it is saved at another.
    fn has(&self, saved_at: ChunkAt, at: ChunkAt) -> bool {
        match self {
            Self::Chunk(_) => saved_at == at,
            Self::Column(column) => {
                column_of(saved_at) == column_of(at) && column.chunk(at.pos.y()).is_some()
            }
        }
    }
}

/// A change of what is stored when the batch is accepted.
#[derive(Debug)]
struct Change<C> {
    what: C,
    /// About the memory that it takes, in the batch and after it is accepted.
    memory_bytes: usize,
}

/// A change of a chunk.
enum ChunkChange {
    SaveBlocks(Arc<Chunk>),
    Block(BlockPos, BlockId),
    Component(CellLayer, ComponentId, Vec<u8>),
    Side(SideKind, Option<Vec<u8>>),
    Edit(Box<Edit<Chunk>>),
}

/// A change of an entity.
enum EntityChange {
    Move(Owner),
    Edit(Box<Edit<Entity>>),
}

/// A function of the host.
type Edit<T> = dyn Fn(&mut T) -> Result<(), Error> + Send + Sync;

impl ChunkChange {
    fn write_to<S: TxStore>(&self, at: ChunkAt, tx: &mut Tx<S>) -> Result<(), Error> {
        match self {
            Self::SaveBlocks(chunk) => tx.save_blocks(at, Arc::clone(chunk)),
            Self::Block(pos, block) => tx.set_block(at.dimension, *pos, *block).map(drop),
            Self::Component(place, component, bytes) => tx.set_component(at, *place, *component, bytes),
            Self::Side(kind, bytes) => tx.set_side(at, *kind, bytes.clone()),
            Self::Edit(change) => tx.edit(at, change)?,
        }
    }
}

impl EntityChange {
    fn write_to<S: TxStore>(&self, id: EntityId, tx: &mut Tx<S>) -> Result<(), Error> {
        match self {
            Self::Move(owner) => drop(tx.move_entity(id, owner.clone())?),
            Self::Edit(change) => {
                if let Some(mut entity) = tx.entity(id)? {
                    change(&mut entity)?;
                    tx.put_entity(id, entity);
                }
            }
        }
        Ok(())
    }
}

/// Runs a change, which may be a function of the host.
fn changed(change: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    caught(change).unwrap_or_else(|message| Err(Error::EditPanicked { message }))
}

impl fmt::Debug for ChunkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChunkChange")
    }
}

impl fmt::Debug for EntityChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EntityChange")
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with room for this many chunks.
    pub fn with_capacity(chunks: usize) -> Self {
        Self { chunks: Vec::with_capacity(chunks), ..Self::default() }
    }

    /// Stores a chunk in place of what is there, **its entity references too**, as
    /// [`Transaction::save`](crate::Transaction::save).
    pub fn save(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        self.chunks.push((at, Write::Put(Saved::Chunk(chunk.into()))));
    }

    /// Stores each chunk of a column as [`save`](Self::save) does. Heights of it without a chunk stay as they are.
    ///
    /// Costs the same for any number of chunks: the batch holds the column, and looks at no chunk of it.
    ///
    /// # Errors
    /// [`Error::Position`] if it ends outside the world; then the batch is as it was.
    pub fn save_column(&mut self, dimension: Dimension, x: i64, z: i64, column: Column) -> Result<(), Error> {
        if let Some(at) = column.place(dimension, x, z)? {
            self.chunks.push((at, Write::Put(Saved::Column(column))));
        }
        Ok(())
    }

    /// Stores a chunk and keeps the entity references that are stored there when the batch is accepted, as
    /// [`Transaction::save_blocks`](crate::Transaction::save_blocks).
    pub fn save_blocks(&mut self, at: ChunkAt, chunk: impl Into<Arc<Chunk>>) {
        let chunk = chunk.into();
        let memory_bytes = chunk.memory_bytes();
        self.chunks.push((at, Write::Change(Change { what: ChunkChange::SaveBlocks(chunk), memory_bytes })));
    }

    /// Deletes a chunk and its entities, unless the batch moves them. A later save of the chunk takes the place of the
    /// deletion, as in [`Transaction::delete`](crate::Transaction::delete).
    pub fn delete(&mut self, at: ChunkAt) {
        self.chunks.push((at, Write::Delete));
    }

    /// Replaces the block in layer 0 of a cell; its new components hold their defaults. Nothing else of the chunk is replaced,
    /// whatever it is by then.
    ///
    /// The batch is refused as a whole with [`Error::ChunkAbsent`] if the chunk is not stored, and with [`Error::Edit`] if
    /// the chunk refuses the edit.
    pub fn set_block(&mut self, dimension: Dimension, pos: BlockPos, block: BlockId) {
        let at = ChunkAt::new(dimension, pos.chunk());
        self.change_chunk(at, 0, ChunkChange::Block(pos, block));
    }

    /// Replaces one component of one block. Refused as [`set_block`](Self::set_block), and with [`Error::Edit`] if the block has
    /// no such component by then or the length does not fit.
    pub fn set_component(
        &mut self,
        at: ChunkAt,
        place: CellLayer,
        component: ComponentId,
        bytes: impl Into<Vec<u8>>,
    ) {
        let bytes = bytes.into();
        self.change_chunk(at, bytes.len(), ChunkChange::Component(place, component, bytes));
    }

    /// Replaces a chunk's data of one side kind; `None` removes it. Refused as [`set_block`](Self::set_block).
    pub fn set_side(&mut self, at: ChunkAt, kind: SideKind, bytes: Option<Vec<u8>>) {
        let len_bytes = bytes.as_ref().map_or(0, Vec::len);
        self.change_chunk(at, len_bytes, ChunkChange::Side(kind, bytes));
    }

    /// Changes a chunk as it is when the batch is accepted. Refused as [`set_block`](Self::set_block), with the error of
    /// `change`, and with [`Error::EditPanicked`] if it panics.
    ///
    /// `change` runs on the thread that accepts the batch, while readers may wait for it. It runs again on the newer chunk
    /// if another commit is faster. So it must be quick, depend on the chunk alone, and take no lock that a caller of the
    /// world may hold. It must not hold a [`World`](crate::World): a batch that waits would keep the world open.
    pub fn edit(
        &mut self,
        at: ChunkAt,
        change: impl Fn(&mut Chunk) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        self.change_chunk(at, 0, ChunkChange::Edit(Box::new(change)));
    }

    fn change_chunk(&mut self, at: ChunkAt, extra_bytes: usize, what: ChunkChange) {
        /// The memory of a usual chunk, which is copied when it is changed.
        const COPY_BYTES: usize = 2048;
        let change = Change { what, memory_bytes: COPY_BYTES + extra_bytes };
        self.chunks.push((at, Write::Change(change)));
    }

    /// Stores an entity, as [`Transaction::put_entity`](crate::Transaction::put_entity). It replaces all that others have stored
    /// of the entity; [`edit_entity`](Self::edit_entity) changes a part.
    pub fn put_entity(&mut self, id: EntityId, entity: Entity) {
        self.entities.push((id, Write::Put(entity)));
    }

    /// Deletes an entity and the reference to it.
    pub fn delete_entity(&mut self, id: EntityId) {
        self.entities.push((id, Write::Delete));
    }

    /// Gives an entity to a chunk or detaches it, and keeps the rest of it, as
    /// [`Transaction::move_entity`](crate::Transaction::move_entity). Does nothing if the world does not have the entity by
    /// then.
    pub fn move_entity(&mut self, id: EntityId, owner: Owner) {
        self.change_entity(id, EntityChange::Move(owner));
    }

    /// Changes an entity as it is when the batch is accepted: its position, its owner or some components. Does nothing if
    /// the world does not have the entity by then.
    ///
    /// What [`edit`](Self::edit) says of `change` holds here too.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # fn step(id: EntityId, to: EntityPos, purse: ComponentId, coins: Vec<u8>) {
    /// let (mut steps, mut trade) = (WriteBatch::new(), WriteBatch::new());
    /// steps.edit_entity(id, move |player| {
    ///     player.position = to;
    ///     Ok(())
    /// });
    /// // Another thread's, which knows nothing of the step.
    /// trade.edit_entity(id, move |player| {
    ///     player.set_component(purse, coins.clone())?;
    ///     Ok(())
    /// });
    /// # }
    /// ```
    pub fn edit_entity(
        &mut self,
        id: EntityId,
        change: impl Fn(&mut Entity) -> Result<(), Error> + Send + Sync + 'static,
    ) {
        self.change_entity(id, EntityChange::Edit(Box::new(change)));
    }

    fn change_entity(&mut self, id: EntityId, what: EntityChange) {
        /// The memory of a usual entity's components.
        const COPY_BYTES: usize = 256;
        self.entities.push((id, Write::Change(Change { what, memory_bytes: COPY_BYTES })));
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

    /// Whether it has a write to a chunk, or puts an entity that belongs to it. A host that forgets such a chunk before
    /// the batch is submitted would load it without the write.
    ///
    /// Of an entity that is only changed or deleted, the batch does not know to which chunk it belongs. Looks at each
    /// write.
    pub fn touches(&self, at: ChunkAt) -> bool {
        let belongs = |write: &Write<Entity, EntityChange>| matches!(write, Write::Put(entity) if entity.owner == Owner::Chunk(at));
        let saves = |(saved_at, write): &(ChunkAt, Write<Saved, ChunkChange>)| match write {
            Write::Put(saved) => saved.has(*saved_at, at),
            Write::Delete | Write::Change(_) => *saved_at == at,
        };
        self.chunks.iter().any(saves) || self.entities.iter().any(|(_, write)| belongs(write))
    }

    /// Whether it has no write.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.entities.is_empty() && self.others.is_empty()
    }

    /// About the memory that it holds until it is written.
    pub(crate) fn memory_bytes(&self) -> u64 {
        /// Memory of an entry here and later in the queue.
        const ENTRY_BYTES: usize = 256;
        let entity_bytes = |entity: &Entity| entity.components().map(|(_, bytes)| bytes.len()).sum();
        let saved_bytes = |saved: &Saved| match saved {
            Saved::Chunk(chunk) => chunk.memory_bytes(),
            Saved::Column(column) => column.height_count() * ENTRY_BYTES + column.memory_bytes() as usize,
        };
        let chunks = self.chunks.iter().map(|(_, write)| write.memory_bytes(saved_bytes));
        let entities = self.entities.iter().map(|(_, write)| write.memory_bytes(entity_bytes));
        let writes: usize = chunks.chain(entities).map(|bytes| ENTRY_BYTES + bytes).sum();
        (ENTRY_BYTES + writes + self.others.memory_bytes(ENTRY_BYTES)) as u64
    }

    /// Whether it stores anything.
    pub(super) fn puts_anything(&self) -> bool {
        self.chunks.iter().any(|(_, write)| !matches!(write, Write::Delete))
            || self.entities.iter().any(|(_, write)| !matches!(write, Write::Delete))
            || self.others.puts_anything()
    }

    /// Repeats all writes in a transaction that has none yet.
    ///
    /// # Errors
    /// As [`Transaction::set_block`], and those of the host's functions.
    pub(crate) fn write_to<S: ValueStore>(&self, tx: &mut Tx<S>) -> Result<(), Error> {
        tx.write_all(self.others.clone());
        for (at, write) in &self.chunks {
            match write {
                Write::Put(Saved::Chunk(chunk)) => tx.save(*at, Arc::clone(chunk)),
                Write::Put(Saved::Column(column)) => {
                    tx.save_column(at.dimension, at.pos.x(), at.pos.z(), column)?;
                }
                Write::Delete => tx.delete(*at),
                Write::Change(change) => changed(|| change.what.write_to(*at, tx))?,
            }
        }
        for (id, write) in &self.entities {
            match write {
                Write::Put(entity) => tx.put_entity(*id, entity.clone()),
                Write::Delete => tx.delete_entity(*id),
                Write::Change(change) => changed(|| change.what.write_to(*id, tx))?,
            }
        }
        Ok(())
    }

    /// Whether it puts or deletes entities, which changes the chunks that refer to them.
    pub(crate) fn touches_entities(&self) -> bool {
        !self.entities.is_empty()
    }

    /// The columns of the chunks, each at least once.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnOf> {
        self.chunks.iter().map(|(at, _)| column_of(*at))
    }
}

impl<T, C> Write<T, C> {
    /// About the memory that it takes, in the batch and after it is accepted.
    fn memory_bytes(&self, of_value: impl Fn(&T) -> usize) -> usize {
        match self {
            Self::Put(value) => of_value(value),
            Self::Delete => 0,
            Self::Change(change) => change.memory_bytes,
        }
    }
}

/// A column: dimension, x and z of its chunks.
pub(crate) type ColumnOf = (Dimension, i64, i64);

pub(crate) fn column_of(at: ChunkAt) -> ColumnOf {
    (at.dimension, at.pos.x(), at.pos.z())
}
