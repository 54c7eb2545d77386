//! Background work of a world, done in time slices of the host's ticks.

mod compaction;
mod cover;
mod demote_all;
mod report;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_tiering::{GameClock, GameTick, PlayerAt};

use crate::engine::ErrorKind;
use crate::maintain::delta::{FoldSchedule, Which};
use crate::maintain::opacity::TileFold;
use crate::maintain::state::{Awaited, Background, MaintainState};
use crate::maintain::tiering::{Due, Gathered, Work};
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::stats::Counters;
use crate::storage::error::Error;
pub use compaction::{CompactReport, Compaction, CompactionSteps};
pub use report::TickReport;

/// Heat is written once in this number of ticks.
const KEEP_HEAT_EVERY_TICKS: u64 = 20;

/// The progress of maintenance between two ticks.
#[derive(Debug)]
pub(crate) struct Maintenance {
    state: Mutex<Progress, rank::Tick>,
    pace: Mutex<Pace, rank::TickPace>,
    /// The steps that the last tick left in the plan, readable without the lock.
    moves_waiting: AtomicU64,
}

/// What a tick needs while another one works.
#[derive(Debug, Default)]
struct Pace {
    clock: GameClock,
    /// The job that does the work of a tick over a network, until a tick collects it.
    job: Option<Background<Worked>>,
}

/// The report of a job, and whether it came to its end.
type Worked = (TickReport, Result<(), Error>);

#[derive(Debug)]
struct Progress {
    work: Work,
    heat_kept_at: GameTick,
    folding: FoldSchedule,
    tile: TileFold,
    /// Whether moves took the whole last tick. Then the next one folds before it moves.
    is_owed: bool,
}

impl Maintenance {
    /// Creates a state in which nothing has begun. The clock continues at `clock`.
    pub(crate) fn at(clock: GameTick) -> Self {
        let state = Progress {
            work: Work::default(),
            heat_kept_at: clock,
            folding: FoldSchedule::default(),
            tile: TileFold::default(),
            is_owed: false,
        };
        let mut pace = Pace::default();
        pace.clock.advance(clock);
        Self { state: Mutex::new(state), pace: Mutex::new(pace), moves_waiting: AtomicU64::new(0) }
    }

    /// The steps of moves that the last tick left undone. Never waits.
    pub(crate) fn moves_waiting(&self) -> u64 {
        self.moves_waiting.load(Ordering::Relaxed)
    }

    /// The clock.
    pub(crate) fn clock(&self) -> GameClock {
        self.pace.lock().clock
    }

    /// Waits for a running tick, or for the job that does its work.
    pub(crate) fn wait(&self) {
        drop(self.state.lock());
    }

    /// Sets the clock and calls `restart`, after `begin_anew` has succeeded on the work in progress. Waits for a running
    /// tick.
    pub(crate) fn set_clock(
        &self,
        to: GameTick,
        begin_anew: impl FnOnce(&mut Work) -> Result<(), Error>,
        restart: impl FnOnce(),
    ) -> Result<(), Error> {
        let state = &mut *self.state.lock();
        begin_anew(&mut state.work)?;
        // A tick over a network comes before both or after both.
        let mut pace = self.pace.lock();
        pace.clock.set(to);
        restart();
        drop(pace);
        state.heat_kept_at = to;
        Ok(())
    }

    /// Calls a function with the work in progress. Waits for a running tick.
    pub(crate) fn work<T>(&self, ask: impl FnOnce(&mut Work) -> T) -> T {
        ask(&mut self.state.lock().work)
    }
}

impl MaintainState {
    /// See [`World::tick`](crate::World::tick).
    pub(crate) fn tick(
        &self,
        now: GameTick,
        players: &[PlayerAt],
        budget: Duration,
    ) -> Result<TickReport, Error> {
        let _running = self.ticks.start("a tick");
        self.shared.check_open()?;
        if self.is_over_network {
            self.note_tick(now, players);
            return self.tick_over_network(players, budget);
        }
        // A budget that overflows the clock means no deadline.
        let deadline = Instant::now().checked_add(budget);
        let mut progress = self.maintenance.state.lock();
        // The time that another tick took is not counted for this one.
        let begun = Instant::now();
        let now = self.note_tick(now, players);
        self.prefetch(players, now, budget);
        self.work_noted(&mut progress, now, begun, deadline)
    }

    /// See [`layer::note_tick`](crate::layer::note_tick).
    pub(crate) fn note_tick(&self, now: GameTick, players: &[PlayerAt]) -> GameTick {
        // Held until the observers know the time, which must not go back.
        let mut pace = self.maintenance.pace.lock();
        let now = pace.clock.advance(now);
        self.activity.tiering.ticked(now, players);
        now
    }

    /// See [`layer::work_tick`](crate::layer::work_tick).
    pub(crate) fn work_tick(
        &self,
        players: &[PlayerAt],
        budget: Duration,
    ) -> Result<Option<TickReport>, Error> {
        self.shared.check_open()?;
        if self.is_over_network {
            let _running = self.ticks.start("a tick");
            return self.tick_over_network(players, budget).map(Some);
        }
        let begun = Instant::now();
        let Some(mut progress) = self.maintenance.state.try_lock() else { return Ok(None) };
        let _running = self.ticks.start("a tick");
        let now = self.activity.tiering.now();
        self.prefetch(players, now, budget);
        self.work_noted(&mut progress, now, begun, begun.checked_add(budget)).map(Some)
    }

    /// Does the work of a tick whose time and players were noted.
    fn work_noted(
        &self,
        progress: &mut Progress,
        now: GameTick,
        begun: Instant,
        deadline: Option<Instant>,
    ) -> Result<TickReport, Error> {
        let mut report = TickReport::at(now);
        let worked = self.work_until(progress, deadline, &mut report);
        let over = deadline.map(|deadline| Instant::now().saturating_duration_since(deadline.max(begun)));
        self.tick_excess.note(over.unwrap_or_default());
        self.complete(progress, worked, &mut report)?;
        Ok(report)
    }

    /// Starts a job that does the work of a tick, or collects the last one. Calls no engine.
    ///
    /// One job runs at a time. If work is left at its end, the tick that collects it starts the next one. Otherwise the
    /// tick after that does, so a host that ticks until no work is left also waits for the job.
    fn tick_over_network(&self, players: &[PlayerAt], budget: Duration) -> Result<TickReport, Error> {
        let mut pace = self.maintenance.pace.lock();
        let now = pace.clock.now();
        let mut report = TickReport::at(now);
        self.prefetch(players, now, budget);
        self.tick_excess.note(Duration::ZERO);
        if self.shared.followed.get().is_some() {
            // Its writer does the work.
            report.work_left = false;
            return Ok(report);
        }
        if let Some(job) = pace.job.take() {
            let ended = match job.wait(Some(Duration::ZERO)) {
                Awaited::Running(job) => {
                    pace.job = Some(job);
                    return Ok(report);
                }
                Awaited::Done(ended) => ended?,
            };
            report = TickReport { now, ..ended.0 };
            match ended.1 {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    tracing::debug!(%error, "the work of a tick is tried again later");
                    report.work_left = true;
                    return Ok(report);
                }
                worked => worked?,
            }
            if !report.work_left {
                return Ok(report);
            }
        }
        pace.job = Some(self.on_the_pool("a tick", move |world| Ok(world.work_as_job(budget))));
        Ok(report)
    }

    /// Does the work of a tick, for a budget from now on.
    fn work_as_job(&self, budget: Duration) -> Worked {
        let mut report = TickReport::at(self.activity.tiering.now());
        // While a whole world is demoted, no thread of the pool waits for that.
        let Some(mut progress) = self.maintenance.state.try_lock() else { return (report, Ok(())) };
        let deadline = Instant::now().checked_add(budget);
        // Closing waits for the lock, so nothing is written afterwards.
        let worked =
            self.shared.check_open().and_then(|()| self.work_until(&mut progress, deadline, &mut report));
        let worked = self.complete(&mut progress, worked, &mut report);
        progress.work.gathered = Gathered::default();
        (report, worked)
    }

    /// Completes the report of a tick.
    fn complete(
        &self,
        progress: &mut Progress,
        worked: Result<(), Error>,
        report: &mut TickReport,
    ) -> Result<(), Error> {
        self.maintenance.moves_waiting.store(progress.work.plan.left().steps, Ordering::Relaxed);
        report.skipped_low_disk = progress.work.skipped_low_disk.take().is_some();
        Counters::add(&self.shared.counters.ticks_low_disk, u64::from(report.skipped_low_disk));
        worked?;
        report.damaged = progress.work.damage_log.take();
        Ok(())
    }

    fn work_until(
        &self,
        progress: &mut Progress,
        deadline: Option<Instant>,
        report: &mut TickReport,
    ) -> Result<(), Error> {
        let now = report.now;
        if self.shared.slot.apply_latch().is_closed() {
            report.skipped_large_commit = true;
            return Ok(());
        }
        let due = Due::until(now, deadline);
        self.offer_settled(&mut progress.work, now);
        // Each kind of work gets its part of a small budget, so that none waits for the end of another.
        let knows_of_more = !self.select_due(&mut progress.work, due.for_part(2))?;
        if std::mem::take(&mut progress.is_owed) {
            self.fold(progress, due.for_part(4), report)?;
        }
        let has_moved_all = self.work(&mut progress.work, due, &mut report.moves)?;
        if due.is_over() {
            progress.is_owed = true;
            return Ok(());
        }
        let has_folded_all = self.fold(progress, due, report)?;
        report.work_left = knows_of_more || !has_moved_all || !has_folded_all;
        Ok(())
    }

    /// Writes heat, and folds deltas and tiles. Returns whether no tile is left that is known to have patches.
    fn fold(&self, progress: &mut Progress, due: Due, report: &mut TickReport) -> Result<bool, Error> {
        let Progress { work, folding, tile, heat_kept_at, .. } = progress;
        if due.is_over() {
            return Ok(false);
        }
        if !self.has_room(work, due)? {
            self.forget_heat(work, due)?;
            return Ok(true);
        }
        if report.now.since(*heat_kept_at) >= KEEP_HEAT_EVERY_TICKS {
            *heat_kept_at = report.now;
            self.update_heat(work, due)?;
        }
        report.deltas_folded +=
            self.fold_waiting(folding, Which::Due, due.for_part(2), &mut work.damage_log)?;
        self.fold_until(tile, due, &mut work.damage_log, &mut report.tiles_folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::tiering::MoveCounts;
    use crate::opacity::Keep;
    use crate::{World, WorldOptions};
    use cg_format::chunk::Chunk;
    use cg_format::{ChunkAt, ChunkPos};

    #[test]
    fn a_tick_without_budget_does_nothing_and_says_so() {
        let options = WorldOptions { opacity: Keep::On, ..WorldOptions::default() };
        let world = World::builder().options(&options).in_memory().unwrap();
        let flat = world.registry().register_dimension("game:flat").unwrap();
        let [stone] = world.registry().register_blocks(["game:stone"]).unwrap();
        world
            .transaction(|tx| {
                for x in 0..3 {
                    let chunk = Chunk::filled(stone, &tx.catalog().current_schema())?;
                    tx.save(ChunkAt::new(flat, ChunkPos::new(x * 4, 0, 0).unwrap()), chunk);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        let before = world.opacity().column(flat, 64, 3).unwrap();
        assert_eq!(before.runs(), [0..=15]);
        let idle = world.tick(GameTick::new(9), &[], Duration::ZERO).unwrap();
        assert_eq!(
            idle,
            TickReport {
                now: GameTick::new(9),
                moves: MoveCounts::default(),
                tiles_folded: 0,
                deltas_folded: 0,
                work_left: true,
                skipped_low_disk: false,
                skipped_large_commit: false,
                damaged: vec![],
            }
        );
        let busy = world.tick(GameTick::new(3), &[], Duration::from_secs(60)).unwrap();
        assert_eq!(
            busy,
            TickReport {
                now: GameTick::new(9),
                moves: MoveCounts::default(),
                tiles_folded: 3,
                deltas_folded: 0,
                work_left: false,
                skipped_low_disk: false,
                skipped_large_commit: false,
                damaged: vec![],
            }
        );
        assert_eq!(world.tick(GameTick::new(9), &[], Duration::MAX).unwrap().tiles_folded, 0);
        assert_eq!(world.opacity().column(flat, 64, 3).unwrap(), before, "folding changes no answer");
        assert_eq!(world.tiers().clock().clamped(), 1);
    }

    #[test]
    fn what_a_tick_waits_for_another_is_no_excess() {
        let world = World::builder().in_memory().unwrap();
        let (begun, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let rooms = world.rooms();
            scope.spawn(move || {
                rooms.maintain.maintenance.work(|_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(300));
                });
            });
            waits.recv().unwrap();
            world.tick(GameTick::new(1), &[], Duration::from_millis(1)).unwrap();
        });
        let metrics = world.metrics();
        assert_eq!((metrics.ticks.count(), metrics.tick_excess.count()), (1, 1));
        assert!(metrics.tick_excess.longest() < metrics.ticks.longest() / 2, "{metrics}");
    }
}
