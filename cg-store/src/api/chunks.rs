//! Reading chunks, entities and properties: one, many, in columns, in the background.

use std::ops::RangeInclusive;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkPos, Dimension, EntityId, Lookup};

use crate::api::world::World;
use crate::commit::state::CommitState;
use crate::engine::CommitSeq;
use crate::kinds::property::Property;
use crate::read::cache::{Column, Stored};
use crate::read::chunk::{LoadResult, LoadTicket, Peek, panicked};
use crate::rt::answer::answer;
use crate::rt::pool::caught;
use crate::storage::error::Error;
use crate::storage::options;

impl World {
    /// A chunk, or `None` if it is not stored: generate it then.
    ///
    /// Costs a look into memory; else one key read when hot, up to three when cold, and decoding. May block on disk.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged. That is not absence: do not generate over it.
    pub fn load(&self, at: ChunkAt) -> LoadResult {
        Ok(self.applied_for(&[at])?.read.stored(at)?.here().map(|stored| stored.chunk))
    }

    /// Shows a chunk to a closure, if it is stored. For readers who do not need to hold it: nothing is counted up and
    /// down, so threads that look at the same chunks do not wait for each other.
    ///
    /// Costs what [`load`](Self::load) costs; a second look by the same thread, while nothing was committed into the
    /// column, costs no shared write. For that each thread holds up to 8,192 chunks that it was shown last, in all at most
    /// a 64th of [`cache_bytes`](crate::WorldOptions::cache_bytes), until it is shown others or ends. They are not in
    /// [`WorldCache::stats`](crate::cache::WorldCache::stats).
    ///
    /// No lock is held while the closure runs, so it may use the world.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn with_chunk<T>(&self, at: ChunkAt, show: impl FnOnce(&Chunk) -> T) -> Result<Option<T>, Error> {
        let rooms = self.applied_for(&[at])?;
        rooms.read.with_chunk(at, show)
    }

    /// A chunk and its version: the commit that last changed its content.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_versioned(&self, at: ChunkAt) -> Result<Option<(Arc<Chunk>, CommitSeq)>, Error> {
        let stored = self.applied_for(&[at])?.read.stored(at)?;
        Ok(stored.here().map(|stored| (stored.chunk, CommitSeq::new(stored.version))))
    }

    /// Many chunks, one result per position in the order asked. A damaged row fails the chunks in it and no others.
    ///
    /// Costs one engine call for all that are hot, then one for the clusters of each tier that may hold the rest: more for
    /// more than 4,096 chunks, 256 warm clusters or 16 cold ones. Each group of a cluster with a chunk that is asked for is
    /// decompressed once.
    ///
    /// If memory lacks 256 chunks and more, in several 16³ cubes, idle threads of the world's
    /// [`Resources`](crate::Resources) help to read them. Then each cube costs these calls. They do not help within a
    /// transaction, nor over a network. If a function that upgrades chunks panics on one of them, this call panics.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<LoadResult> {
        self.rooms().commit.load_many(at)
    }

    /// A chunk if memory has it. Never reads from disk and never waits for it. Of a column into which something was
    /// [submitted](Self::submit) that is not accepted yet, memory does not say anything.
    pub fn peek(&self, at: ChunkAt) -> Peek {
        match self.peek_stored(at) {
            Some(found) => found.here().map_or(Peek::Absent, |stored| Peek::Here(stored.chunk)),
            None => Peek::NotLoaded,
        }
    }

    /// As [`peek`](Self::peek), with the version.
    pub(crate) fn peek_stored(&self, at: ChunkAt) -> Option<Lookup<Stored>> {
        let rooms = self.rooms();
        if rooms.commit.queue.last_concerning(&[at]).is_some() { None } else { rooms.read.peek(at) }
    }

    /// Starts to load chunks in the background; they are in memory when the answer is ready. Keeps no world open.
    ///
    /// Should loading panic, in a function of the host for example, each of the chunks answers
    /// [`Error::LoadPanicked`].
    pub fn load_in_background(&self, at: &[ChunkAt]) -> LoadTicket {
        let (giver, answer) = answer();
        let (world, at, count) = (self.rooms().commit.weak_world.clone(), at.to_vec(), at.len());
        self.rooms().shared.pool.spawn(move || {
            // A world that is gone gives no answer. The host may have lost interest; the chunks are in memory all the same.
            let load = |world: &CommitState| {
                world.await_acceptance(&at);
                world.load_many(&at)
            };
            if let Ok(found) = world.with_world(|world| caught(|| load(world))) {
                giver.give(found.unwrap_or_else(|message| panicked(&at, &message)));
            }
        });
        LoadTicket::new(answer, count)
    }

    /// The most chunks that [`column`](Self::column) gives at once: a column of 65,536 blocks.
    pub const MAX_COLUMN_CHUNKS: u64 = options::MAX_COLUMN_CHUNKS;

    /// The chunks of a column between two heights, both included, by one look into memory.
    ///
    /// All of it is of one moment if memory has it, or else if nothing is committed into the column while it is put
    /// together; else each chunk is as [`load`](Self::load) has it. Absent chunks are part of it.
    ///
    /// Costs one look if the same heights were asked for before and nothing was committed into the column since; else
    /// a look for each chunk and [`load_many`](Self::load_many) for those that memory does not have. Columns
    /// hold their chunks themselves, whether or not these are in memory one by one. From the first call on a
    /// quarter of [`cache_bytes`](crate::WorldOptions::cache_bytes) is theirs, so that both together stay under the
    /// bound; what both hold is counted twice. Ask for the same heights each time: other heights are another column.
    ///
    /// # Errors
    /// [`Error::Position`] outside the world; [`Error::ColumnTooHigh`] for more chunks than
    /// [`MAX_COLUMN_CHUNKS`](Self::MAX_COLUMN_CHUNKS); [`Error::Corrupt`] if a chunk of it is damaged, and then ask for its chunks one by one.
    #[inline]
    pub fn column(
        &self,
        dimension: Dimension,
        x: i64,
        z: i64,
        ys: RangeInclusive<i64>,
    ) -> Result<Column, Error> {
        let rooms = self.rooms();
        rooms.shared.check_open()?;
        let (lowest, highest) = ys.into_inner();
        if rooms.commit.queue.has_submitted() {
            rooms.commit.apply_submitted_for(&[ChunkAt::new(dimension, ChunkPos::new(x, lowest, z)?)])?;
        }
        rooms.read.column(dimension, x, z, (lowest, highest))
    }

    /// The last committed state of an entity, or `None` if the world does not have it. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; [`Error::EntityNotUpgraded`] if one of its components needs an
    /// upgrade function that the host did not provide.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.applied()?.read.entity(id)
    }

    /// The commit that last wrote an entity, or `None` if the world does not have it. One key read, nothing decoded.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let overworld = world.registry().register_dimension("game:overworld")?;
    /// # let cow = world.registry().register_entity("game:cow")?;
    /// # let id = EntityId::from_bytes([7; 16]);
    /// # let nowhere = Owner::Detached(cg_format::entity::Reason::new("cargo")?);
    /// # let place = EntityPos::new(overworld, BlockPos::new(0, 64, 0), [0.0; 3])?;
    /// assert_eq!(world.entity_version(id)?, None);
    /// let put = world.transaction(|tx| {
    ///     tx.put_entity(id, Entity::new(cow, nowhere, place));
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(world.entity_version(id)?, Some(put.seq));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the storage fails.
    pub fn entity_version(&self, id: EntityId) -> Result<Option<CommitSeq>, Error> {
        Ok(self.applied()?.read.entity_version(id)?.map(CommitSeq::new))
    }

    /// The last committed state of a property, or `None` if it was never set. One key read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.applied()?.read.property(property)
    }
}
