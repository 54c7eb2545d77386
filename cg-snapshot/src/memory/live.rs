//! A host in memory for a queue: it counts tickets and reports each access to an observer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSink, Editor, EntityId, SchemaView};

use super::Memory;
use crate::error::RestoreError;
use crate::restore::{BlockChange, Host, StepWork, Stepped};

/// An access of a queue to a chunk of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// The chunk is read.
    Load,
    /// The chunk is written.
    Save,
    /// The chunk is deleted.
    Delete,
    /// The chunk's light is computed again.
    Relight,
}

/// An observer of a queue that works on a [`Live`] host. Every method has a default.
pub trait Watch {
    /// A chunk with this many tickets is about to be accessed.
    fn touch(&mut self, _touch: Touch, _at: ChunkAt, _tickets: u32) {}

    /// Whether a chunk with a ticket is ready. Default: always.
    fn is_ready(&mut self, _at: ChunkAt) -> bool {
        true
    }

    /// A block was changed.
    fn changed(&mut self, _change: BlockChange) {}
}

/// A [`Memory`] as a [`Host`], with an observer. It has no light of its own; the observer handles that.
#[derive(Debug)]
pub struct Live<W> {
    /// Chunks and entities.
    pub memory: Memory,
    /// The observer.
    pub watch: W,
    tickets: HashMap<ChunkAt, u32>,
    most_chunks: usize,
}

impl<W> Live<W> {
    /// Creates a host without tickets.
    pub fn new(memory: Memory, watch: W) -> Self {
        Self { memory, watch, tickets: HashMap::new(), most_chunks: 0 }
    }

    /// The chunks that have tickets, and the number of each.
    pub const fn tickets(&self) -> &HashMap<ChunkAt, u32> {
        &self.tickets
    }

    /// The largest number of chunks that had tickets at one time.
    pub const fn most_chunks(&self) -> usize {
        self.most_chunks
    }
}

impl<W: Watch> Live<W> {
    fn touch(&mut self, touch: Touch, at: ChunkAt) {
        let tickets = self.tickets.get(&at).copied().unwrap_or_default();
        self.watch.touch(touch, at, tickets);
    }
}

impl<W: Watch> ChunkSink for Live<W> {
    type Error = Infallible;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Infallible> {
        self.touch(Touch::Save, at);
        self.memory.save(at, chunk)
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        self.touch(Touch::Delete, at);
        self.memory.delete(at)
    }
}

impl<W: Watch> Editor for Live<W> {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Infallible> {
        self.touch(Touch::Load, at);
        self.memory.load(at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Editor::schema(&self.memory)
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Infallible> {
        Editor::entity(&mut self.memory, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Infallible> {
        self.memory.put_entity(id, entity)
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Infallible> {
        self.memory.delete_entity(id)
    }
}

impl<W: Watch> Host for Live<W> {
    type Error = Infallible;

    fn step(
        &mut self,
        _: ChunkAt,
        work: &mut StepWork<'_, Infallible>,
    ) -> Result<Stepped, RestoreError<Infallible>> {
        work(self).map(|()| Stepped::Done)
    }

    fn take_ticket(&mut self, at: ChunkAt) {
        *self.tickets.entry(at).or_default() += 1;
        self.most_chunks = self.most_chunks.max(self.tickets.len());
    }

    /// # Panics
    /// If the chunk has no ticket.
    fn release_ticket(&mut self, at: ChunkAt) {
        let count = self.tickets.get_mut(&at).expect("a ticket was taken");
        *count -= 1;
        if *count == 0 {
            self.tickets.remove(&at);
        }
    }

    fn is_ready(&mut self, at: ChunkAt) -> bool {
        self.watch.is_ready(at)
    }

    fn changed(&mut self, change: BlockChange) {
        self.watch.changed(change);
    }

    fn relight(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        self.touch(Touch::Relight, at);
        Ok(())
    }
}
