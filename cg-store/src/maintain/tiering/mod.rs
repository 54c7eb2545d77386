//! Tiering of a world: records players and accesses, finds what is due, and moves it in slices of ticks.
//!
//! Policy, observers and plan are in `cg-tiering`; the moves are in [`move_tier`](crate::maintain::move_tier). This module
//! connects both: it finds the cubes that could move, offers them to the plan, and takes the steps of the plan.

mod cleanup;
mod cold;
mod cube_index;
mod damage_log;
mod gathered;
mod heat;
mod jobs;
mod recorder;
mod search;
mod select;
mod together;
mod unscanned;
mod work;

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cg_format::wire::Writer;
use cg_format::{ChunkAt, ChunkBox, ClusterTier, Dimension, Tier};
use cg_tiering::trace::Event;
use cg_tiering::{CubeAt, Decision, GameTick, HoldError, HoldId, NextMove, Observers, PinId, PlayerAt};
use cleanup::Cleanup;
use cube_index::CubeIndex;
use heat::heat_after_move;
use recorder::Recorder;

use crate::engine::{Batch, CommitSeq, Level};
use crate::maintain::move_tier::Moved;
use crate::maintain::state::MaintainState;
use crate::read::chunk::{Rows, find};
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;
use crate::storage::meta::{MetaRow, decode_u64};
use crate::storage::recent_puts::{Puts, RecentPuts};
pub(crate) use damage_log::DamageLog;
pub use damage_log::DamageReport;
pub(crate) use gathered::Gathered;
pub(crate) use heat::{delete_cold_heat, delete_heat, put_cold_heat, put_heat, read_cold_heat};
pub use recorder::TracePart;
pub(crate) use search::{NextCubes, STEPS_AHEAD};
pub(crate) use select::Due;
pub(crate) use work::Work;

/// The known players and accesses. Every load that reads the engine and every commit reports to it.
#[derive(Debug)]
pub(crate) struct Tiering {
    observers: Mutex<Observers, rank::Observers>,
    /// The tick that the host reported last.
    now: AtomicU64,
    /// The last access of everything without a recorded one.
    opened_at: AtomicU64,
    pub(crate) recorder: Recorder,
    /// Rows that the cube index does not know yet.
    written: Mutex<RecentPuts, rank::RecentPuts>,
}

impl Tiering {
    pub(crate) fn new(observers: Observers, now: GameTick) -> Self {
        Self {
            observers: Mutex::new(observers),
            now: AtomicU64::new(now.get()),
            opened_at: AtomicU64::new(now.get()),
            recorder: Recorder::default(),
            written: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> GameTick {
        GameTick::new(self.now.load(Ordering::Relaxed))
    }

    /// The tick at which the world was opened, or its clock set. It counts as the last access of everything without a
    /// recorded one.
    fn opened_at(&self) -> GameTick {
        GameTick::new(self.opened_at.load(Ordering::Relaxed))
    }

    /// Starts again at a time that may be before earlier reports.
    fn restart(&self, now: GameTick) {
        self.observers(|seen| {
            seen.restart(now);
            self.now.store(now.get(), Ordering::Relaxed);
            self.opened_at.store(now.get(), Ordering::Relaxed);
            self.recorder.ends();
        });
    }

    /// Takes the time and the places of all players.
    pub(crate) fn ticked(&self, now: GameTick, players: &[PlayerAt]) {
        self.now.store(now.get(), Ordering::Relaxed);
        self.recorder.ticked(now, players);
        self.observers(|seen| seen.check_players(players, now));
    }

    /// Records that chunks were requested or saved.
    pub(crate) fn touch(&self, chunks: impl IntoIterator<Item = ChunkAt>) {
        let mut observers = self.observers.lock();
        let now = self.now();
        // Neighbouring chunks are in one cube, and usually come together.
        let mut last = None;
        for chunk in chunks {
            let cube = CubeAt::of(chunk);
            if last.replace(cube) != Some(cube) {
                observers.touch(chunk, now);
            }
        }
    }

    /// Records which chunks got rows of their own by a written batch. One map lookup for each cube.
    pub(crate) fn wrote(&self, put: Vec<(CubeAt, Puts)>) {
        if !put.is_empty() {
            self.written.lock().add(put);
        }
    }

    /// Makes ticks search all rows again, because some may have been written without a report.
    pub(crate) fn lose_track_of_writes(&self) {
        self.written.lock().lose_track();
    }

    /// Calls a function with the observers. It must be short, because loads wait meanwhile.
    pub(crate) fn observers<T>(&self, ask: impl FnOnce(&mut Observers) -> T) -> T {
        ask(&mut self.observers.lock())
    }

    /// See [`Tiers::keep_loaded`](crate::tiers::Tiers::keep_loaded).
    pub(crate) fn hold(&self, dimension: Dimension, place: &ChunkBox) -> Result<HoldId, HoldError> {
        self.observers(|seen| {
            let id = seen.hold(dimension, place, self.now())?;
            self.recorder.note_event(&Event::Hold { hold: id.get(), dimension, place: *place });
            Ok(id)
        })
    }

    /// Ends what [`hold`](Self::hold) began. Returns whether it was held.
    pub(crate) fn release(&self, id: HoldId) -> bool {
        self.observers(|seen| {
            self.recorder.note_event(&Event::Release(id.get()));
            seen.release(id, self.now())
        })
    }

    /// See [`Tiers::pin`](crate::tiers::Tiers::pin).
    pub(crate) fn pin(&self, dimension: Dimension, place: ChunkBox) -> PinId {
        self.observers(|seen| {
            let id = seen.pin(dimension, place);
            self.recorder.note_event(&Event::Pin { pin: id.get(), dimension, place });
            id
        })
    }

    /// Ends what [`pin`](Self::pin) began. Returns whether it was pinned.
    pub(crate) fn unpin(&self, id: PinId) -> bool {
        self.observers(|seen| {
            self.recorder.note_event(&Event::Unpin(id.get()));
            seen.unpin(id)
        })
    }
}

/// The work of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MoveCounts {
    /// Chunks that got rows of their own.
    pub promoted: u64,
    /// Chunks that were moved into warm clusters.
    pub warmed: u64,
    /// Chunks that were moved into cold clusters.
    pub cooled: u64,
    /// Slots dropped from clusters because a hotter tier shadowed them.
    pub shadows_dropped: u64,
    /// Tombstones that were purged.
    pub tombstones_purged: u64,
    /// Bytes of the rows that these moves read.
    pub bytes_read: u64,
    /// Bytes of the rows that these moves wrote.
    pub bytes_written: u64,
    /// Moves that failed because of a commit in between; they are tried again.
    pub conflicts: u64,
    /// Moves that left chunks where they are because a row is damaged, or a cluster would be too large.
    pub refused: u64,
}

impl MoveCounts {
    /// Chunks, slots and tombstones that were moved or dropped in any way.
    pub const fn moved(&self) -> u64 {
        self.promoted + self.warmed + self.cooled + self.shadows_dropped + self.tombstones_purged
    }

    /// Adds the bytes of a move and returns its chunks.
    pub(super) fn add(&mut self, moved: Moved) -> u64 {
        self.bytes_read += moved.bytes_read;
        self.bytes_written += moved.bytes_written;
        moved.chunks
    }
}

impl AddAssign for MoveCounts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            promoted,
            warmed,
            cooled,
            shadows_dropped,
            tombstones_purged,
            bytes_read,
            bytes_written,
            conflicts,
            refused,
        } = other;
        self.promoted += promoted;
        self.warmed += warmed;
        self.cooled += cooled;
        self.shadows_dropped += shadows_dropped;
        self.tombstones_purged += tombstones_purged;
        self.bytes_read += bytes_read;
        self.bytes_written += bytes_written;
        self.conflicts += conflicts;
        self.refused += refused;
    }
}

/// The world's clock, a `u64`, as maintenance last wrote it.
pub(crate) const CLOCK: MetaRow<GameTick> = MetaRow {
    key: "gameClock",
    what: "the world's clock",
    encode: |now, out| Writer::new(out).u64(now.get()),
    decode: |payload| decode_u64(payload, "game clock", "bytes after the clock").map(GameTick::new),
};

impl MaintainState {
    /// See [`Tiers::set_clock`](crate::tiers::Tiers::set_clock).
    pub(crate) fn set_clock(&self, to: GameTick) -> Result<(), Error> {
        self.shared.check_open()?;
        let begin_anew = |work: &mut Work| {
            self.end_moves(work)?;
            let mut batch = Batch::new();
            CLOCK.put(&mut batch, &to);
            self.shared.engine()?.commit(batch.maintenance(), &[], Level::Power)?;
            work.know_nothing();
            Ok(())
        };
        self.maintenance.set_clock(to, begin_anew, || self.activity.tiering.restart(to))?;
        // Prefetch follows no player from here on.
        self.prefetch(&[], to, Duration::ZERO);
        Ok(())
    }

    /// Drops the plan, and waits for the moves in progress.
    fn end_moves(&self, work: &mut Work) -> Result<(), Error> {
        let due = Due::until(self.activity.tiering.now(), None);
        // A job that writes must end before the clock changes, by which it decided.
        self.collect_jobs(work, 0, due, &mut MoveCounts::default())?;
        work.know_nothing();
        self.work(work, due, &mut MoveCounts::default())?;
        work.skipped_low_disk = None;
        Ok(())
    }
}

/// The result of [`Tiers::explain`](crate::tiers::Tiers::explain) for a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierReport {
    /// The tier with its live copy.
    pub tier: Tier,
    /// The commit that last changed its content.
    pub version: CommitSeq,
    /// When a chunk of its 4³ cube was last accessed; for a cold chunk, any chunk of its cold cluster. `None` if that
    /// is not recorded: then it counts as accessed when the world was opened.
    pub last_access: Option<GameTick>,
    /// When chunks of its cube last changed their tier, if that is recorded.
    pub moved_at: Option<GameTick>,
    /// The tier in which it should be, and why.
    pub decision: Decision,
    /// When it will move if players do not move and do not access it; `None` if it stays where it is.
    pub next_move: Option<NextMove>,
}

impl MaintainState {
    /// See [`Tiers::explain`](crate::tiers::Tiers::explain).
    pub(crate) fn explain_tier(&self, at: ChunkAt) -> Result<Option<TierReport>, Error> {
        self.shared.check_open()?;
        let found = find(Rows::Now(&*self.shared.engine()?), &self.shared.counters, at, |stored| {
            Ok((stored.tier, stored.version))
        })?;
        let Some((tier, version)) = found.here() else { return Ok(None) };
        let version = CommitSeq::new(self.read.deltas.version(at, version.get()));
        let cube = CubeAt::of(at);
        let cold = match tier {
            Tier::L2 => read_cold_heat(&*self.shared.engine()?, cube.cluster(ClusterTier::L2))?.0,
            Tier::L0 | Tier::L1 => None,
        };
        self.load_heat(&*self.shared.engine()?, cube)?;
        let now = self.activity.tiering.now();
        Ok(Some(self.activity.tiering.observers(|seen| {
            let heat = seen.heat().get(cube);
            TierReport {
                tier,
                version,
                last_access: heat.or(cold).map(|heat| heat.last_access),
                moved_at: heat.and_then(|heat| heat.moved_at),
                decision: seen.decide(cube, tier, now),
                next_move: seen.next_move(cube, tier, now),
            }
        })))
    }
}
