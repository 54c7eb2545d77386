//! Ticks, tiers and what moves between them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_format::{ChunkAt, ChunkBox, Dimension};
use cg_tiering::{GameClock, GameTick, HoldError, PlayerAt};

use crate::admin::census::Census;
use crate::api::guards::{KeepLoaded, TierPin};
use crate::api::world::World;
use crate::maintain::tick::TickReport;
use crate::maintain::tiering::{MoveCounts, TierReport, Tiering, TracePart};
use crate::maintain::tombstones;
use crate::read::chunk::StoredChunk;
use crate::storage::error::Error;

impl World {
    /// Tells the world the time and where all players are, and lets it work for about as long as the budget says.
    ///
    /// A time before the one that was told last counts as that one: [`set_clock`](Tiers::set_clock) sets it back.
    ///
    /// Moves chunks between the tiers as [`WorldOptions::tiers`](crate::WorldOptions::tiers) says, folds deltas into their
    /// chunks and opacity patches into their tiles, and keeps when places were last accessed. Where the budget is too small
    /// for all, each of these gets a part of it. With [`WorldOptions::prefetch`](crate::WorldOptions::prefetch)
    /// it foresees what players will want, and one of the store's own threads loads it for as long as the budget says, too.
    /// Blocks for as long as it works. With 20 ms and more to spend, the store's own threads do what is compressed, if they are
    /// not busy with what was asked of them before, and the tick waits for them; with less it waits for no other thread. Exceeds the
    /// budget by the work of one 4³ cube or one chunk at most,
    /// see [`Metrics::tick_excess`](crate::metrics::Metrics::tick_excess); promotions, a cold cluster or a tile of the opacity map that
    /// are not done by then are done in the background. A tick that comes while another one runs waits for it. Never called, a world
    /// stays right: only its chunks stay hot and its opacity map grows longer to read. While a commit is written that is
    /// too large for one batch, a tick notes time and players, and leaves the rest to a later one. While the disk has
    /// [too little room](TickReport::skipped_low_disk), nothing is done but what only deletes.
    ///
    /// Damage is no error: what lies in it is left as it is and [told](TickReport::damaged) once, everything else goes on.
    ///
    /// # Errors
    /// If the engine fails otherwise.
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

impl Tiers<'_> {
    /// Folds all deltas, moves every chunk to where it would lie after so many more ticks in which nobody comes, and returns when that is
    /// done, and what was moved away is compacted. The world's clock does not move. For archiving a world, and for trying a policy out.
    ///
    /// `progress` is told the counts so far after each round over the world; it may take hours in a large one. Ticks
    /// wait meanwhile; loads and saves do not.
    ///
    /// Goes on where commits are refused for want of room, down to a quarter of what is to
    /// [stay free](crate::WorldOptions::min_free_bytes): what was moved away is then compacted before more is moved, and at the
    /// end only those kinds of row are that fit into what is free twice.
    ///
    /// # Errors
    /// If the engine fails; [`Error::LowDiskSpace`] if the disk has less room than that: what was moved by then is moved.
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

    /// Begins to record what is held and pinned, and from now on loads that memory cannot answer, saves, ticks, players,
    /// holds and pins; a recording under way is dropped.
    ///
    /// Eight or nine bytes for most events, kept in memory until [`take_trace`](Self::take_trace) hands them out. The
    /// event with which they would be more than `max_bytes` ends the recording: it and what comes later is counted in
    /// [`TracePart::lost_events`]. 64 MiB last for about seven million loads and saves. While it records, each of them
    /// also encodes its chunk once to know its length.
    pub fn record_trace(&self, max_bytes: usize) {
        self.tiering().record_trace(max_bytes);
    }

    /// What was recorded since the last call, to be appended to the same file. Recording goes on, unless the part says
    /// otherwise. Empty if nothing is recorded.
    pub fn take_trace(&self) -> TracePart {
        self.tiering().take_trace()
    }

    /// Stops recording and hands out the rest.
    pub fn end_trace(&self) -> TracePart {
        self.tiering().end_trace()
    }

    /// Allows maintenance to forget which chunks commits before this one deleted, for good; returns the first commit
    /// whose deletions are kept. It never goes back, nor beyond the newest commit's next.
    ///
    /// What was deleted stays deleted. Marks that hide an older copy in a cluster are kept until the cluster is written
    /// without it. Call it with the oldest state that somebody may still ask changes from; with
    /// [`last_commit`](World::last_commit) if nobody does. Never called, a world keeps a row of some fifty bytes for each
    /// chunk that was deleted and not saved again.
    ///
    /// Objects that were deleted before that commit lose their versions at once, which costs a scan of all objects and a
    /// commit for every few thousand: one that is written anew begins with 0.
    ///
    /// # Errors
    /// What the engine says. Objects that were not forgotten then are by the next call.
    pub fn purge_tombstones_before(&self, commit: u64) -> Result<u64, Error> {
        self.world.applied()?.maintain.purge_tombstones_before(commit)
    }

    /// How many marks are left of chunks that commits before this one deleted: what [`purge_tombstones_before`](Self::purge_tombstones_before)
    /// would allow to forget, what hides a copy in a cluster among it. Reads every hot row.
    ///
    /// # Errors
    /// What the engine says.
    pub fn count_tombstones_before(&self, commit: u64) -> Result<u64, Error> {
        tombstones::count_tombstones_before(
            &self.world.applied()?.commit.drained_engine()?.snapshot()?,
            commit,
        )
    }

    /// The first commit whose deletions are certainly known: who has an older state must ask for all anew.
    pub fn tombstone_horizon(&self) -> u64 {
        self.world.rooms().shared.tombstone_horizon.load(Ordering::Relaxed)
    }

    fn tiering(&self) -> &Tiering {
        &self.world.rooms().maintain.activity.tiering
    }
}
