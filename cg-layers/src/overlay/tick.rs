//! Arenas clean up by themselves, within the budget of a tick.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cg_format::overlay::ArenaRow;
use cg_store::layer::Base;
use cg_store::{Error, ErrorKind};
use cg_tiering::GameTick;

use super::arena::Arena;
use super::arena_policy::{ArenaPolicy, ArenaReport};
use super::arenas::Arenas;
use super::background::{start_job, try_again};
use super::pool::Pool;
use super::writing::Brief;

/// What is due for an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// The end of its lease.
    End,
    /// Reclaiming: it has no handle.
    Reclaim,
    /// Removing: it is free.
    Removal,
}

/// What became of an arena that was due.
enum Done {
    Freed(Due),
    /// A merge of it began and did not end.
    KeptForMerge,
    /// It is in use now.
    InUse,
    /// It is not due any more.
    NotDue,
}

/// A running tick.
struct Tick<'p> {
    now: GameTick,
    policy: &'p ArenaPolicy,
    begun: Instant,
    budget: Duration,
    report: ArenaReport,
    has_begun: bool,
}

impl<S: Base> Arenas<S> {
    /// Cleans up, for about the budget: ends the leases that are due by a policy, reclaims and removes arenas, and deletes
    /// the rows of expired leases. Call it in each tick; one that has nothing to do looks at each arena in memory.
    ///
    /// An end does what [`Overlay::release`](crate::Overlay::release) does: later calls of its handles are
    /// [`OverlayError::Released`](crate::OverlayError::Released). It waits for no transaction: an arena that is in use is
    /// left for a later tick. So is one whose [merge](crate::Overlay::merge_into) has begun and not ended, until that is
    /// continued or given up: see [`ArenaReport::kept_for_merge`]. [Damaged](Self::damaged) arenas stay too.
    ///
    /// Works in steps: one put for each lease, one commit for all removals, one for each 256 rows. It begins one step at
    /// least, and none when the budget is over; an arena that is left for later is no step, and costs a read at most. A tick
    /// waits for another one that runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cg_layers::{ArenaPolicy, Arenas};
    /// use cg_store::prelude::*;
    /// use cg_tiering::GameTick;
    /// let template = World::builder().in_memory()?;
    /// let arenas = Arenas::in_memory(template, &WorldOptions::ephemeral())?;
    /// let policy = ArenaPolicy { end_after_ticks: Some(1200), ..ArenaPolicy::default() };
    /// let duel = arenas.lease("ada against grace", GameTick::new(100))?;
    /// duel.renew(GameTick::new(1000))?;
    /// let tick = |now| arenas.tick(GameTick::new(now), &policy, Duration::from_millis(1));
    /// assert_eq!(tick(2199)?.ended, 0);
    /// assert_eq!(tick(2200)?.ended, 1);
    /// assert!(duel.reset().is_err(), "the arena is free");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the engine and of a base that is not the arenas' any more. What was done before stays done, and a
    /// later tick continues.
    pub fn tick(&self, now: GameTick, policy: &ArenaPolicy, budget: Duration) -> Result<ArenaReport, Error> {
        let pool = self.pool();
        pool.store.check_base()?;
        try_again(pool);
        let mut sweeping = pool.ticking.lock();
        let report = ArenaReport::default();
        let mut tick = Tick { now, policy, begun: Instant::now(), budget, report, has_begun: false };
        pool.end_due(&mut tick)?;
        pool.remove_due(&mut tick)?;
        while pool.is_sweep_due(&sweeping) {
            if !tick.begins_step() {
                break;
            }
            tick.report.rows_swept += pool.sweep_step(&mut sweeping)? as u64;
        }
        Ok(tick.report)
    }
}

impl Tick<'_> {
    /// Whether there is time for another step. There is for the first.
    fn has_time(&mut self) -> bool {
        let has_time = !self.has_begun || self.begun.elapsed() < self.budget;
        self.report.work_left |= !has_time;
        has_time
    }

    /// Begins a step, if there is time for it.
    fn begins_step(&mut self) -> bool {
        let has_time = self.has_time();
        self.has_begun |= has_time;
        has_time
    }

    /// What is due for an arena. The caller holds the lock of all arenas, under which handles are made.
    fn due(&self, arena: &Arc<Arena>, row: &ArenaRow) -> Option<Due> {
        let is_held = Arc::strong_count(arena) > 1;
        let is_over = |since: u64, ticks: Option<u64>| {
            ticks.is_some_and(|ticks| self.now.since(GameTick::new(since)) >= ticks)
        };
        if row.holder.is_none() {
            // What a former holder submitted is refused first.
            let is_idle = !is_held && arena.submitted.is_empty();
            return (is_idle && is_over(row.since, self.policy.remove_after_ticks)).then_some(Due::Removal);
        }
        if is_over(row.since, self.policy.end_after_ticks) {
            return Some(Due::End);
        }
        if is_held {
            arena.unheld_since.store(Arena::HELD, Ordering::Release);
            return None;
        }
        let mut since = arena.unheld_since.load(Ordering::Acquire);
        if since == Arena::HELD {
            since = self.now.get();
            arena.unheld_since.store(since, Ordering::Release);
        }
        is_over(since, self.policy.reclaim_after_ticks).then_some(Due::Reclaim)
    }

    /// The arenas for which something is due now.
    fn all_due(&self, arenas: &BTreeMap<u32, Arc<Arena>>, wanted: impl Fn(Due) -> bool) -> Vec<u32> {
        let is_due = |arena: &Arc<Arena>| self.due(arena, &arena.row.lock()).is_some_and(&wanted);
        arenas.values().filter(|arena| is_due(arena)).map(|arena| arena.number).collect()
    }
}

impl<S: Base> Pool<S> {
    /// Ends the leases that are due, one put each.
    fn end_due(self: &Arc<Self>, tick: &mut Tick<'_>) -> Result<(), Error> {
        let due = tick.all_due(&self.arenas.all.lock(), |due| due != Due::Removal);
        for number in due {
            if !tick.has_time() {
                return Ok(());
            }
            let done = self.end_if_due(number, tick)?;
            tick.has_begun |= matches!(done, Done::Freed(_));
            match done {
                Done::Freed(Due::End) => tick.report.ended += 1,
                Done::Freed(_) => tick.report.reclaimed += 1,
                Done::KeptForMerge => tick.report.kept_for_merge += 1,
                Done::InUse => tick.report.work_left = true,
                Done::NotDue => {}
            }
        }
        Ok(())
    }

    /// Frees an arena, unless it was renewed, resumed or released meanwhile, or is in use.
    fn end_if_due(self: &Arc<Self>, number: u32, tick: &Tick<'_>) -> Result<Done, Error> {
        // Handles are made under this lock, so none is made between the look and the end.
        let arenas = self.arenas.all.lock();
        let Some(arena) = arenas.get(&number) else { return Ok(Done::NotDue) };
        let Some(_alone) = Brief::try_take(self, arena) else { return Ok(Done::InUse) };
        let mut row = arena.row.lock();
        let due = match tick.due(arena, &row) {
            Some(due) if due != Due::Removal => due,
            _ => return Ok(Done::NotDue),
        };
        // What the holder submits until its lease is over is refused with the lease, or it would never end.
        if due == Due::Reclaim && !arena.submitted.is_empty() {
            return Ok(Done::InUse);
        }
        match self.store.rows.is_merge_open(row.lease) {
            Ok(false) => {}
            Err(error) if error.kind() != ErrorKind::Damaged => return Err(error),
            // One whose note cannot be read may be merged in part. It stops no other arena.
            Ok(true) | Err(_) => return Ok(Done::KeptForMerge),
        }
        let lease = self.arenas.give_lease_among(&arenas, arena);
        self.free(arena, &mut row, lease, tick.now)?;
        if !arena.submitted.is_empty() {
            start_job(self, arena);
        }
        Ok(Done::Freed(due))
    }

    /// Removes the free arenas that are due, in one commit.
    fn remove_due(&self, tick: &mut Tick<'_>) -> Result<(), Error> {
        let mut arenas = self.arenas.all.lock();
        let due = tick.all_due(&arenas, |due| due == Due::Removal);
        if due.is_empty() || !tick.begins_step() {
            return Ok(());
        }
        tick.report.removed += self.remove(&mut arenas, &due)?;
        Ok(())
    }
}
