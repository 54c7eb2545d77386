//! The calls for a tick thread, which wait for no disk: not even where a segment must be opened first.

use std::sync::Arc;

use cg_format::{ChunkAt, Lookup};
use cg_store::layer::{Base as _, batch};
use cg_store::{LoadTicket, Peek, Refused, World, WriteBatch, WriteTicket};

use super::home::SegmentHome;
use super::world::SegmentedWorld;

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Submits writes to the segment of a chunk, as [`World::submit`](cg_store::World::submit) does to a world. They are
    /// accepted after this call, those of one segment in the order of such calls, and at the latest when a thread reads.
    ///
    /// Never waits for the disk, for other commits, or for a segment. If the segment is closed, or not stored yet, a
    /// background thread opens or creates it and gives it what was submitted. Every call of this world that begins
    /// afterwards, on any thread, sees the batch whole. One that reads in the segment before that opens it itself.
    ///
    /// A batch with entities, properties, objects or records follows the rules of [`transaction`](Self::transaction): the root
    /// stores their places, in a commit of a background thread. A change of an entity that this segment does not contain does
    /// nothing. Inside a closure of `transaction` or [`Segments::with`](crate::Segments::with), such a batch that was
    /// submitted meanwhile is not seen before the closure has ended.
    ///
    /// The commit of such a batch is durable when its places are. Waiting for that syncs the root first, if it has places that
    /// are not synced.
    ///
    /// A segment is closed for lack of room only after all that it was given is accepted and synced. What still waits for
    /// it then opens it again. What waits takes at most [`queue_bytes`](cg_store::WorldOptions::queue_bytes) of memory for
    /// all segments that are not open; an open one has its own queue.
    ///
    /// Where the disk has no room, a batch is refused before it is taken, as in a world. What was taken may use the room that is
    /// to stay free, to create its segment too.
    ///
    /// If a segment cannot be opened because of its content, the [tickets](WriteTicket) of its batches report
    /// [`SegmentError::NotAccepted`](crate::SegmentError::NotAccepted), and nothing of them is stored. If its storage cannot be
    /// reached or written now, they wait: readers of the segment and calls for all that waits, as [`flush`](Self::flush), get the
    /// reason, and they and each [`tick`](Self::tick) try again. A refusal whose ticket is dropped is reported by the next `flush` or
    /// [`close`](Self::close).
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// let names = world.register(&Registration {
    ///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    ///     dimensions: vec![Name::new("game:overworld")?],
    ///     ..Registration::default()
    /// })?;
    /// let stone = names.block_id("game:stone").expect("just registered");
    /// let overworld = names.dimension("game:overworld").expect("just registered");
    /// let at = ChunkAt::new(overworld, ChunkPos::new(100, 0, -100)?);
    /// let mut batch = WriteBatch::new();
    /// batch.save(at, Chunk::filled(stone, &names.current_schema())?);
    /// let ticket = world.submit(at, batch)?;
    /// assert!(world.load(at)?.is_some());
    /// ticket.wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SegmentError::TwoSegments`](crate::SegmentError::TwoSegments) if the batch touches another segment, as far as that is
    /// known without reading; as `World::submit`. Nothing was taken then: [`Refused`] gives the batch back.
    pub fn submit(&self, at: ChunkAt, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
        self.parts.submissions.submit(self.segment_of(at), batch)
    }

    /// A chunk if memory has it, as [`World::peek`](cg_store::World::peek). Opens no segment and waits for none: of a closed
    /// one memory does not say anything, nor of one that is not stored before a call has looked for it.
    pub fn peek(&self, at: ChunkAt) -> Peek {
        match self.peek_chunk(at) {
            Some(found) => found.here().map_or(Peek::Absent, |(chunk, _)| Peek::Here(chunk)),
            None => Peek::NotLoaded,
        }
    }

    /// What memory has of a chunk; `None` if it does not say.
    pub(super) fn peek_in<T>(
        &self,
        at: ChunkAt,
        peek: impl FnOnce(&World) -> Option<Lookup<T>>,
    ) -> Option<Lookup<T>> {
        let (parts, segment) = (&*self.parts, self.segment_of(at));
        if parts.submissions.may_concern(segment, at) {
            return None;
        }
        match parts.open.use_if_open(segment, peek) {
            Some(found) => found,
            // One that is being created has nothing yet that is not submitted.
            None => parts.root.is_absent(segment).then_some(Lookup::NotFound),
        }
    }

    /// Starts to load chunks in the background, as
    /// [`World::load_in_background`](cg_store::World::load_in_background). Their segments are opened there too.
    pub fn load_in_background(&self, at: &[ChunkAt]) -> LoadTicket {
        let weak = Arc::downgrade(&self.parts);
        batch::load_in_background(self, at, move |at| {
            let world = Self { parts: weak.upgrade()? };
            Some(world.load_many(at))
        })
    }
}
