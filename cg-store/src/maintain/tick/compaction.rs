//! Compaction of a running world: due work first, then the engine's files, slice by slice.

use std::ops::{AddAssign, Bound};
use std::time::{Duration, Instant};

use super::TickReport;
use super::cover::{FamilyKeys, families_of};
use crate::engine::{EngineError, Family, FamilyUsage, KeyRange};
use crate::maintain::state::MaintainState;
use crate::maintain::tiering::MoveCounts;
use crate::read::chunk::Area;
use crate::storage::error::Error;

/// A tick of the host waits at most about this long.
const WORK_AT_ONCE: Duration = Duration::from_millis(5);
/// How long to wait for moves in the background.
const WAIT: Duration = Duration::from_millis(1);

/// What a compaction has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactReport {
    /// The bytes of the world's files when the compaction began.
    pub before_bytes: u64,
    /// The bytes of the world's files now. Commits meanwhile made it larger.
    pub after_bytes: u64,
    /// What was due, and was moved or dropped first.
    pub moves: MoveCounts,
    /// Chunks whose deltas were due, and were folded into their rows first.
    pub deltas_folded: usize,
    /// The slices of files that were rewritten.
    pub slices: u64,
    /// The kinds of row whose files were left as they are, because the disk has too little room to rewrite them. If it has
    /// too little to move chunks, that counts as one more.
    pub skipped_low_disk: usize,
    /// The kinds of row whose files were left as they are, because one of them is damaged: see
    /// [`FamilyUsage::is_held`](crate::engine::FamilyUsage::is_held).
    pub skipped_damaged: usize,
}

impl CompactReport {
    /// The bytes that were given back. 0 if commits took more meanwhile.
    pub const fn freed_bytes(&self) -> u64 {
        self.before_bytes.saturating_sub(self.after_bytes)
    }
}

/// The sum over several worlds.
impl AddAssign for CompactReport {
    fn add_assign(&mut self, other: Self) {
        let Self { before_bytes, after_bytes, moves, deltas_folded, slices, .. } = other;
        self.before_bytes += before_bytes;
        self.after_bytes += after_bytes;
        self.moves += moves;
        self.deltas_folded += deltas_folded;
        self.slices += slices;
        self.skipped_low_disk += other.skipped_low_disk;
        self.skipped_damaged += other.skipped_damaged;
    }
}

/// A compaction in progress; see [`Tiers::compaction`](crate::tiers::Tiers::compaction).
#[derive(Debug)]
#[must_use = "nothing is compacted until it is run"]
pub struct Compaction<'w> {
    world: &'w MaintainState,
    steps: CompactionSteps,
}

/// How far a compaction has come. It keeps no world open.
#[derive(Debug)]
pub struct CompactionSteps {
    stage: Stage,
    /// The families that are left, the next one first.
    families: std::vec::IntoIter<FamilyKeys>,
    begun: Vec<Family>,
    report: CompactReport,
}

#[derive(Debug)]
enum Stage {
    /// Chunks are moved.
    DueWork,
    /// The engine's buffers are to be written.
    Flush,
    /// A family is compacted, up to a key.
    Family {
        keys: FamilyKeys,
        done_to: Option<Box<[u8]>>,
    },
    /// The next family is to be begun.
    NextFamily,
    Done,
}

impl Compaction<'_> {
    /// Compacts for about as long as the budget. Returns whether something is left.
    ///
    /// It always does one step. A step is a few milliseconds of moves, or a slice of files, which may take seconds: see
    /// [`Tiers::compaction`](crate::tiers::Tiers::compaction).
    ///
    /// # Errors
    /// Those of the engine. What was compacted by then is compacted, and another call goes on.
    pub fn run(&mut self, budget: Duration) -> Result<bool, Error> {
        self.steps.run(self.world, budget)
    }

    /// What was done so far.
    pub const fn report(&self) -> CompactReport {
        self.steps.report
    }
}

impl CompactionSteps {
    /// See [`Compaction::run`].
    pub(crate) fn run(&mut self, world: &MaintainState, budget: Duration) -> Result<bool, Error> {
        let deadline = Instant::now().checked_add(budget);
        let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        loop {
            world.shared.check_open()?;
            self.step(world)?;
            let is_done = matches!(self.stage, Stage::Done);
            if is_done || is_over() {
                self.report.after_bytes = world.file_bytes()?;
                return Ok(!is_done);
            }
        }
    }

    /// What was done so far.
    pub const fn report(&self) -> CompactReport {
        self.report
    }

    fn step(&mut self, world: &MaintainState) -> Result<(), Error> {
        match &mut self.stage {
            Stage::DueWork => {
                let ticked = world.work_due(Instant::now() + WORK_AT_ONCE)?;
                self.report.moves += ticked.moves;
                self.report.deltas_folded += ticked.deltas_folded;
                self.report.skipped_low_disk += usize::from(ticked.skipped_low_disk);
                if !ticked.work_left || ticked.skipped_low_disk {
                    self.stage = Stage::Flush;
                } else if ticked.moves == MoveCounts::default() && ticked.deltas_folded == 0 {
                    std::thread::sleep(WAIT);
                }
            }
            Stage::Flush => {
                // What a buffer holds is in no file, and the log still has what was deleted.
                world.shared.engine()?.flush()?;
                self.stage = Stage::NextFamily;
            }
            Stage::NextFamily => {
                self.stage = if let Some(keys) = self.families.next() {
                    self.begun.push(keys.family);
                    Stage::Family { keys, done_to: None }
                } else {
                    let families = world.shared.engine()?.usage()?.families;
                    let is_left = |held: &&FamilyUsage| held.is_held && self.begun.contains(&held.family);
                    self.report.skipped_damaged = families.iter().filter(is_left).count();
                    Stage::Done
                };
            }
            Stage::Family { keys, done_to } => {
                let compacted = if world.has_room_to_compact(keys.family)? {
                    world.compact_slice(keys, done_to.as_deref())?
                } else {
                    self.report.skipped_low_disk += 1;
                    None
                };
                self.report.slices += u64::from(compacted.is_some());
                match compacted {
                    Some(end) => *done_to = Some(end),
                    None => self.stage = Stage::NextFamily,
                }
            }
            Stage::Done => {}
        }
        Ok(())
    }
}

impl MaintainState {
    /// See [`Tiers::compaction`](crate::tiers::Tiers::compaction).
    pub(crate) fn compaction(&self, area: Area<'_>) -> Result<Compaction<'_>, Error> {
        Ok(Compaction { world: self, steps: self.compaction_steps(area)? })
    }

    /// As [`compaction`](Self::compaction), without the world.
    pub(crate) fn compaction_steps(&self, area: Area<'_>) -> Result<CompactionSteps, Error> {
        self.shared.check_open()?;
        if self.shared.engine()?.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        // Its ticks are jobs, and its server compacts by itself.
        let stage = if self.is_over_network { Stage::Done } else { Stage::DueWork };
        let bytes = self.file_bytes()?;
        let report = CompactReport { before_bytes: bytes, after_bytes: bytes, ..CompactReport::default() };
        Ok(CompactionSteps { stage, families: families_of(area).into_iter(), begun: Vec::new(), report })
    }

    /// Does a part of what a tick would do now.
    fn work_due(&self, deadline: Instant) -> Result<TickReport, Error> {
        let mut progress = self.maintenance.state.lock();
        let mut report = TickReport::at(self.activity.tiering.now());
        self.work_until(&mut progress, Some(deadline), &mut report)?;
        report.skipped_low_disk = progress.work.skipped_low_disk.take().is_some();
        Ok(report)
    }

    /// Compacts the next slice of a family after a key. Returns the last key of the slice; `None` if there is none.
    fn compact_slice(&self, keys: &FamilyKeys, done_to: Option<&[u8]>) -> Result<Option<Box<[u8]>>, Error> {
        let engine = self.shared.engine()?;
        let behind = done_to.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(ranges) = &keys.ranges else {
            return Ok(engine.compact_next(keys.family, (behind, Bound::Unbounded))?);
        };
        for range in ranges {
            let first = match done_to {
                Some(done_to) if done_to >= range.end() => continue,
                Some(done_to) if done_to >= range.start() => behind,
                _ => Bound::Included(&range.start()[..]),
            };
            let keys_left: KeyRange<'_> = (first, Bound::Included(range.end()));
            if let Some(end) = engine.compact_next(keys.family, keys_left)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// The bytes of the engine's files.
    fn file_bytes(&self) -> Result<u64, Error> {
        let usage = self.shared.engine()?.usage()?;
        let of_families = usage.families.iter().map(|held| held.table_bytes + held.blob_bytes);
        Ok(of_families.sum::<u64>() + usage.log_bytes)
    }
}
