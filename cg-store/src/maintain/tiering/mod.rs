//! Tiering of a world: records players and accesses, finds what is due, and moves it in slices of ticks.
//!
//! Policy, observers and plan are in `cg-tiering`; the moves are in [`move_tier`](crate::maintain::move_tier). This module
//! connects both: it finds the cubes that could move, offers them to the plan, and takes the steps of the plan.

mod cleanup;
mod clock;
mod cold;
mod counts;
mod cube_index;
mod damage_log;
mod due;
mod explain;
mod heat;
mod jobs;
mod read_cube;
mod recorder;
mod search;
mod select;
mod unscanned;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::{ChunkAt, ChunkBox, Dimension};
use cg_tiering::trace::Event;
use cg_tiering::{CubeAt, GameTick, HoldError, HoldId, Observers, PinId, PlayerAt};

use crate::rt::lock_order::{Mutex, rank};
use crate::storage::recent_puts::{Puts, RecentPuts};

use cleanup::Cleanup;
pub(crate) use clock::CLOCK;
pub use counts::MoveCounts;
use cube_index::CubeIndex;
pub(crate) use damage_log::DamageLog;
pub use damage_log::DamageReport;
pub(crate) use due::Due;
pub use explain::TierReport;
use heat::heat_after_move;
pub(crate) use heat::{delete_cold_heat, delete_heat, put_cold_heat, put_heat, read_cold_heat};
use recorder::Recorder;
pub use recorder::TracePart;
pub(crate) use search::{NextCubes, STEPS_AHEAD};
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
}

impl Tiering {
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
