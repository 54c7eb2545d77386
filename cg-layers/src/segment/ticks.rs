//! Ticks of a segmented world: every open segment is told the time and the players, and segments work in turn.
//!
//! **Invariants**.
//! - A tick waits for no segment: one that is opened, closed or deleted meanwhile, and one in which another tick works,
//!   loses its turn.
//! - A segment gets no second turn of the first round before every other open one had its turn.
//! - No turn begins after the budget, except the first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_store::layer::{Mutex, empty_report, keep_clock, note_tick, rank, work_tick};
use cg_store::tiers::TickReport;
use cg_store::{Error, PrefetchOptions, World};
use cg_tiering::{GameTick, PlayerAt};

use super::ahead::SegmentsAhead;
use super::home::SegmentHome;
use super::open::OpenSegments;
use super::pos::SegmentPos;
use super::time::Told;

/// The root's clock is written once in this number of ticks, a minute.
const KEEP_CLOCK_EVERY_TICKS: u64 = 60 * GameTick::PER_SECOND;

/// A turn gets at least the budget divided by this: with less, it would end before it has moved anything.
const MAX_PARTS: u32 = 4;

/// The ticks of a segmented world.
pub(super) struct Ticks<H> {
    open: Arc<OpenSegments<H>>,
    /// Held while a tick works.
    turns: Mutex<Turns, rank::SegmentTicking>,
}

/// What a tick leaves for the next one.
#[derive(Debug, Default)]
struct Turns {
    /// The segment that had the last turn.
    last: Option<SegmentPos>,
    clock_kept_at: GameTick,
    /// The segments that players will reach, if they are opened ahead.
    ahead: Option<SegmentsAhead>,
    /// The report of a tick that returned an error.
    unreported: Option<TickReport>,
}

/// The time of a tick.
struct Budget {
    whole: Duration,
    /// `None` if it never ends.
    deadline: Option<Instant>,
}

/// What a turn came to.
enum Turn {
    /// The segment is not open, or used in a way that a tick does not wait for.
    Lost,
    /// The segment has done its work, or waits for something else than time.
    Ended,
    /// The time of the turn ended, and work is left.
    CutShort,
}

impl<H: SegmentHome> Ticks<H> {
    /// Segments are opened ahead of players if there are options of prefetch.
    pub(super) fn new(open: Arc<OpenSegments<H>>, prefetch: Option<&PrefetchOptions>) -> Self {
        let turns = Turns { ahead: prefetch.map(SegmentsAhead::new), ..Turns::default() };
        Self { open, turns: Mutex::new(turns) }
    }

    /// See [`SegmentedWorld::tick`](crate::SegmentedWorld::tick).
    pub(super) fn tick(
        &self,
        now: GameTick,
        players: &[PlayerAt],
        budget: Duration,
    ) -> Result<TickReport, Error> {
        self.open.check()?;
        let budget = Budget { whole: budget, deadline: Instant::now().checked_add(budget) };
        let turns = &mut *self.turns.lock();
        let now = note_tick(self.open.root().world(), now, &[]);
        let told = self.open.time().set(now, players);
        if let Some(ahead) = &mut turns.ahead {
            ahead.follow(self.open.root(), players, now);
            if !budget.whole.is_zero() {
                ahead.open(&self.open, players);
            }
        }
        let open = turns.in_turn(self.open.list());
        for segment in &open {
            self.open.if_open(*segment, |world| told.tell(*segment, world));
        }
        let mut sum = empty_report(now);
        if let Some(mut unreported) = turns.unreported.take() {
            unreported.work_left = false;
            sum += unreported;
        }
        let worked = self.rounds(turns, open, &told, &budget, &mut sum).and(self.keep_clock(turns, &sum));
        match worked {
            Ok(()) => Ok(sum),
            Err(error) => {
                turns.unreported = Some(sum);
                Err(error)
            }
        }
    }

    /// Gives every segment its turn, as far as the time goes. Then those whose turn was too short get another one.
    /// Returns the first error after that: a segment whose storage fails takes nothing from the others.
    fn rounds(
        &self,
        turns: &mut Turns,
        open: Vec<SegmentPos>,
        told: &Told,
        budget: &Budget,
        sum: &mut TickReport,
    ) -> Result<(), Error> {
        let (mut outcome, mut round, mut is_first) = (Ok(()), open, true);
        while !round.is_empty() {
            let mut cut_short = Vec::new();
            for (nth, segment) in round.iter().enumerate() {
                let Some(part) = budget.part(round.len() - nth, is_first && nth == 0) else {
                    sum.work_left = true;
                    return outcome;
                };
                if is_first {
                    turns.last = Some(*segment);
                }
                match self.turn(*segment, told, part, sum) {
                    Ok(Turn::Ended) => {}
                    Ok(Turn::CutShort) => cut_short.push(*segment),
                    Ok(Turn::Lost) => sum.work_left = true,
                    Err(error) => {
                        tracing::warn!(%error, %segment, "the tick of a segment failed");
                        outcome = outcome.and(Err(error));
                    }
                }
            }
            (round, is_first) = (cut_short, false);
        }
        outcome
    }

    /// Lets a segment work for a part of the budget.
    fn turn(
        &self,
        segment: SegmentPos,
        told: &Told,
        part: Duration,
        sum: &mut TickReport,
    ) -> Result<Turn, Error> {
        let begun = Instant::now();
        let work = |world: &World| work_tick(world, &told.players_for(segment), part);
        let Some(report) = self.open.if_open(segment, work).transpose()?.flatten() else {
            return Ok(Turn::Lost);
        };
        let is_cut_short = report.work_left && begun.elapsed() >= part;
        *sum += report;
        Ok(if is_cut_short { Turn::CutShort } else { Turn::Ended })
    }

    /// Writes the root's clock once in a while. No chunk is accessed there, so nothing else writes it.
    fn keep_clock(&self, turns: &mut Turns, sum: &TickReport) -> Result<(), Error> {
        if sum.now.get().abs_diff(turns.clock_kept_at.get()) < KEEP_CLOCK_EVERY_TICKS || sum.skipped_low_disk
        {
            return Ok(());
        }
        turns.clock_kept_at = sum.now;
        keep_clock(self.open.root().world())
    }
}

impl Turns {
    /// Puts segments, which are ascending, in the order of their turns: the one after the last comes first.
    fn in_turn(&self, mut open: Vec<SegmentPos>) -> Vec<SegmentPos> {
        if let Some(last) = self.last {
            let next = open.partition_point(|segment| *segment <= last);
            open.rotate_left(next);
        }
        open
    }
}

impl Budget {
    /// The time of a turn, which leaves some for the turns after it; `None` if there is none left. The first turn of a tick always has
    /// some, whatever it took to tell all segments the time.
    fn part(&self, turns_left: usize, is_first: bool) -> Option<Duration> {
        let least = self.whole / MAX_PARTS;
        let Some(deadline) = self.deadline else { return Some(self.whole) };
        let left = deadline.saturating_duration_since(Instant::now());
        if is_first && left < least {
            return Some(least);
        }
        if left.is_zero() && !is_first {
            return None;
        }
        Some((left / turns_left.try_into().unwrap_or(u32::MAX)).max(least).min(left))
    }
}
