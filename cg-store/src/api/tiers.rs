//! Ticks, tiers and what moves between them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_format::{ChunkAt, ChunkBox, Dimension};
use cg_tiering::{GameClock, GameTick, HoldError, PlayerAt};

use crate::admin::census::Census;
use crate::api::guards::{KeepLoaded, TierPin};
use crate::api::world::World;
use crate::engine::CommitSeq;
use crate::maintain::tick::{Compaction, TickReport};
use crate::maintain::tiering::{MoveCounts, TierReport, Tiering, TracePart};
use crate::maintain::tombstones;
use crate::read::chunk::{Area, StoredChunk};
use crate::storage::error::Error;

impl World {
    /// Tells the world the time and the positions of all players, and works for about as long as the budget.
    ///
    /// A time before that of the last tick counts as that one; [`set_clock`](Tiers::set_clock) sets the clock back.
    ///
    /// A tick moves chunks between tiers by [`WorldOptions::tiers`](crate::WorldOptions::tiers). It folds deltas into their chunks
    /// and opacity patches into their tiles, and stores when places were last accessed. If the budget is too small for all, each
    /// job gets a part of it. With [`WorldOptions::prefetch`](crate::WorldOptions::prefetch) a thread of the store also loads what
    /// players will want, for as long as the budget.
    ///
    /// Blocks while it works. With a budget of 20 ms and more the threads of the store compress, if they are idle, and the tick
    /// waits for them; with less it waits for no other thread. It exceeds the budget by the work of one 4³ cube or one chunk at
    /// most, see [`Metrics::tick_excess`](crate::metrics::Metrics::tick_excess). Promotions, cold clusters and opacity tiles that
    /// are not done by then continue in the background. A tick waits for another one that runs.
    ///
    /// A world that never ticks stays correct: its chunks stay hot, and its opacity map takes longer to read. While a staged
    /// commit is written, a tick only notes time and players. While the disk has
    /// [too little room](TickReport::skipped_low_disk), a tick only does what deletes.
    ///
    /// Over a network a tick calls no engine and waits for nothing. It starts a job on the threads of the store, which works
    /// for about the budget, or collects the last one and returns [its report](TickReport). One job runs at a time, and
    /// [`close`](World::close) waits for it. [`TierPolicy::network`](cg_tiering::TierPolicy::network) suits such a world. Only moves
    /// store accesses: after a restart a hot chunk counts as accessed when the world was opened.
    ///
    /// Damage is no error. What is damaged stays as it is and is [reported](TickReport::damaged) once; everything else goes on.
    ///
    /// # Errors
    /// If the engine fails otherwise. Over a network that is the error of the last job; if the storage could not be reached,
    /// the job is tried again later, and that is no error.
    pub fn tick(&self, now: GameTick, players: &[PlayerAt], budget: Duration) -> Result<TickReport, Error> {
        self.rooms().maintain.tick(now, players, budget)
    }
}

/// The tiers of a world: where chunks are stored, why, and what is left of deleted ones.
#[derive(Debug, Clone, Copy)]
pub struct Tiers<'w> {
    world: &'w World,
}

impl World {
    /// The tiers: what moves between them, what keeps it in place, and what is left of deleted chunks.
    pub fn tiers(&self) -> Tiers<'_> {
        Tiers { world: self }
    }
}

impl<'w> Tiers<'w> {
    /// Begins to give bytes back in a running world, without changing what it holds; [`Compaction::run`] does the work, within
    /// budgets, and says how many. Dropping the value stops between two steps. A crash leaves every row as it was.
    ///
    /// First everything that is due is moved and folded, wherever it is, and shadows and tombstones are dropped where that is
    /// allowed, as a [`tick`](World::tick) does. Then the engine's files are rewritten without overwritten and deleted rows,
    /// slice by slice, where there is something to gain: what was compacted already is passed over, so another compaction
    /// goes on where one was stopped. Of an area these are the files that have chunks of it. Entities, objects and other
    /// rows are compacted with [`Area::World`] alone.
    ///
    /// A slice is a file of about 64 MiB, or several small ones, with the files above it and large values of which a
    /// sixteenth is garbage: a second of work for chunks, longer for clusters, by the engine's own threads. A file above has rows of
    /// many places if these were changed, and RocksDB rewrites all files below it at once: of 1 GB in which every hundredth row was
    /// changed, slices were 84 to 385 MiB, and took up to four seconds. Reads
    /// and commits continue; a tick may wait five milliseconds. Where commits are refused for want of room, only kinds of row
    /// are rewritten that fit twice into what is free. Kinds of row with a damaged file are left as they are, and
    /// [counted](crate::tiers::CompactReport::skipped_damaged). Over a network it does nothing, as a server compacts by itself.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cg_store::prelude::*;
    /// use cg_store::view::Area;
    /// # let world = World::builder().in_memory()?;
    /// let mut compaction = world.tiers().compaction(Area::World)?;
    /// while compaction.run(Duration::from_millis(50))? {
    ///     println!("{} bytes given back so far", compaction.report().freed_bytes());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenedReadOnly`](crate::engine::EngineError::OpenedReadOnly) where the world may not be written; those of the engine.
    pub fn compaction(&self, area: Area<'_>) -> Result<Compaction<'w>, Error> {
        self.world.applied()?.maintain.compaction(area)
    }
}

impl Tiers<'_> {
    /// Folds all deltas, and moves every chunk to the tier that it would have after `after_ticks` more ticks without players.
    /// Returns when that is done and the rows that were moved away are compacted. Names, objects and other rows beside chunks
    /// are compacted too if some were written lately. For archives, and to try a policy.
    ///
    /// The world's clock does not move. `progress` gets the counts so far after each round over the world. It may take hours in a
    /// large world. Ticks wait meanwhile; loads and saves do not.
    ///
    /// It continues where commits are refused for want of room, down to a quarter of
    /// [`min_free_bytes`](crate::WorldOptions::min_free_bytes). Then it compacts what was moved away before it moves more. At the
    /// end it compacts only the kinds of row that fit twice into what is free.
    ///
    /// # Errors
    /// If the engine fails. [`Error::LowDiskSpace`] if the disk has less room than that; what was moved by then is moved.
    pub fn demote_all(
        &self,
        after_ticks: u64,
        progress: impl FnMut(&MoveCounts),
    ) -> Result<MoveCounts, Error> {
        self.world.applied()?.maintain.demote_all(after_ticks, progress)
    }

    /// Says in which tier a chunk lies, why, and when it will move; `None` if it is not stored. Counts as no access.
    ///
    /// Costs one key read when hot, up to three when cold, and one or two for what is stored of its heat.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn explain(&self, at: ChunkAt) -> Result<Option<TierReport>, Error> {
        self.world.applied()?.maintain.explain_tier(at)
    }

    /// Shows a chunk's stored bytes, checked against their sum, without decoding them or going through memory.
    ///
    /// Costs one key read when hot, up to three when cold.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged, and what `read` returns.
    pub fn with_stored_bytes<T>(
        &self,
        at: ChunkAt,
        read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let rooms = self.world.applied()?;
        if rooms.read.pending.chunk(at).is_some() {
            rooms.commit.drain()?;
        }
        Ok(rooms.read.find_folded(at, read)?.here())
    }

    /// Counts everything as it is now. Reads every row once except those of the opacity map, and decodes no chunk.
    ///
    /// # Errors
    /// If the engine fails for another reason than a damaged row.
    pub fn census(&self) -> Result<Census, Error> {
        self.world.applied()?.admin().census()
    }

    /// The time that the host last said, and how often it tried to set it back.
    pub fn clock(&self) -> GameClock {
        self.world.rooms().maintain.maintenance.clock()
    }

    /// Sets the world's clock to any moment, an earlier one too: for a clock that ran away, which no
    /// [`tick`](World::tick) can set back.
    ///
    /// Every chunk counts as accessed now, unless it is stored that it was accessed before; what is held and pinned stays
    /// so, and players are unknown until the next tick. A [recording](Self::record_trace) ends here. It is on the disk
    /// when this returns. Waits for a tick, and for moves of chunks under way.
    ///
    /// # Errors
    /// [`Error::Closed`], and what the engine says. The clock is as it was then.
    pub fn set_clock(&self, to: GameTick) -> Result<(), Error> {
        self.world.rooms().maintain.set_clock(to)
    }

    /// Keeps the chunks of a box loaded until the guard is dropped, for example around a chunk loader: they are not demoted, and
    /// chunks in clusters are promoted into the hottest tier after a while.
    ///
    /// What is around players is kept anyway: see [`tick`](World::tick).
    ///
    /// # Errors
    /// [`HoldError`] for a box that is too large.
    pub fn keep_loaded(&self, dimension: Dimension, place: &ChunkBox) -> Result<KeepLoaded, HoldError> {
        let id = self.tiering().hold(dimension, place)?;
        Ok(KeepLoaded::new(&self.world.rooms().maintain.weak_world, id))
    }

    /// Keeps the chunks of a box from being demoted until the guard is dropped, however long no player comes.
    pub fn pin(&self, dimension: Dimension, place: ChunkBox) -> TierPin {
        let id = self.tiering().pin(dimension, place);
        TierPin::new(&self.world.rooms().maintain.weak_world, id)
    }

    /// Begins to record: what is kept loaded and pinned now, and from now on loads that memory does not have, saves, ticks,
    /// players, and what is kept and pinned. A recording in progress is dropped.
    ///
    /// Most events take eight or nine bytes, in memory until [`take_trace`](Self::take_trace) returns them. The event that would
    /// exceed `max_bytes` ends the recording. That event and later ones are counted in
    /// [`TracePart::lost_events`]. 64 MiB are enough for about seven million loads and saves. During a recording each of them also
    /// encodes its chunk once, to know its length. `cg tiers simulate` tries policies on the file.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cg_store::prelude::*;
    /// # let world = World::builder().in_memory()?;
    /// # let mut file = Vec::new();
    /// world.tiers().record_trace(64 << 20);
    /// for tick in 0..1200 {
    ///     world.tick(GameTick::new(tick), &[], Duration::from_millis(5))?;
    ///     if tick % 600 == 0 {
    ///         file.extend(world.tiers().take_trace().bytes);
    ///     }
    /// }
    /// file.extend(world.tiers().end_trace().bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record_trace(&self, max_bytes: usize) {
        self.tiering().record_trace(max_bytes);
    }

    /// Returns what was recorded since the last call, to be appended to the same file. The recording continues, unless the part
    /// states that it ended. Empty if nothing is recorded.
    pub fn take_trace(&self) -> TracePart {
        self.tiering().take_trace()
    }

    /// Ends the recording, and returns the rest of it.
    pub fn end_trace(&self) -> TracePart {
        self.tiering().end_trace()
    }

    /// Allows maintenance to purge, for good, the tombstones of chunks that commits before `commit` deleted. Returns the
    /// tombstone horizon: the first commit whose deletions are remembered. It never goes back, and is at most the newest commit's
    /// next.
    ///
    /// What was deleted stays deleted. A tombstone that hides an older copy in a cluster is kept until the cluster is written
    /// without it. Call this with the oldest commit from which a client may still ask for changes, or with
    /// [`last_commit`](World::last_commit) if there is none. Without it a world keeps a row of about fifty bytes for each chunk
    /// that was deleted and not saved again.
    ///
    /// In a world that logs changes for its caches, a cache that knows less than that commit is listed everything.
    ///
    /// Objects that were deleted before that commit lose their versions at once: one that is written again begins with 0. That
    /// costs a scan of all objects, and a commit for every few thousand.
    ///
    /// # Errors
    /// Those of the engine. The next call purges the objects that this one did not.
    pub fn purge_tombstones_before(&self, commit: CommitSeq) -> Result<CommitSeq, Error> {
        self.world.applied()?.maintain.purge_tombstones_before(commit.get()).map(CommitSeq::new)
    }

    /// Counts the tombstones of chunks that commits before `commit` deleted: those that
    /// [`purge_tombstones_before`](Self::purge_tombstones_before) would allow to purge, and those that hide a copy in a cluster.
    /// Reads every hot row.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn count_tombstones_before(&self, commit: CommitSeq) -> Result<u64, Error> {
        tombstones::count_tombstones_before(
            &self.world.applied()?.commit.drained_engine()?.snapshot()?,
            commit.get(),
        )
    }

    /// The first commit whose deletions are all remembered. A client with an older state must ask for everything again.
    pub fn tombstone_horizon(&self) -> CommitSeq {
        CommitSeq::new(self.world.rooms().shared.tombstone_horizon.load(Ordering::Relaxed))
    }

    fn tiering(&self) -> &Tiering {
        &self.world.rooms().maintain.activity.tiering
    }
}
