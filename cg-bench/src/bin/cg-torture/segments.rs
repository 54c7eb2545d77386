//! Killing a process that merges a large overlay into a segmented world: every segment that is opened again is as before, or
//! every one is as after.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::child::{self, copy_dir};
use crate::failure::Failure;
use crate::merger::{self, Look, Size};
use crate::report::plural;
use crate::rng::Rng;

/// A root that forgets must be caught within so many kills.
const CONTROL_KILLS: u64 = 20;
/// The process goes on for so long at most behind the batch at which it is to be killed.
const MAX_DELAY_US: u64 = 1000;

/// How far a promotion into segments has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The root puts it by in pieces.
    PutBy,
    /// The root's commit that makes it count.
    Counts,
    /// A segment puts its part by, if that is more than one batch.
    SegmentParts,
    /// A segment commits its part.
    SegmentCommits,
    /// A segment carries its part out.
    SegmentRows,
    /// The root forgets it.
    Forgets,
    /// The overlay is emptied.
    Overlay,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::PutBy,
        Self::Counts,
        Self::SegmentParts,
        Self::SegmentCommits,
        Self::SegmentRows,
        Self::Forgets,
        Self::Overlay,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::PutBy => "the root puts it by",
            Self::Counts => "the root counts it",
            Self::SegmentParts => "a segment puts its part by",
            Self::SegmentCommits => "a segment commits its part",
            Self::SegmentRows => "a segment carries its part out",
            Self::Forgets => "the root forgets it",
            Self::Overlay => "the overlay is emptied",
        }
    }

    /// Of all batches of a promotion as they were told.
    fn of(words: &[String]) -> Result<Vec<Self>, Failure> {
        let is_segments = |word: &&String| word.starts_with("segment ");
        let first = words.iter().position(|word| is_segments(&word)).ok_or("no segment got anything")?;
        let step = |(batch, word): (usize, &String)| {
            Ok(match word.as_str() {
                "root intent" if batch + 1 < first => Self::PutBy,
                "root intent" if batch < first => Self::Counts,
                "root intent" => Self::Forgets,
                "segment parts" => Self::SegmentParts,
                "segment intent" => Self::SegmentCommits,
                "segment carrying-out" => Self::SegmentRows,
                "overlay intent" => Self::Overlay,
                word => return Err(format!("`{word}` is no step").into()),
            })
        };
        words.iter().enumerate().map(step).collect()
    }
}

/// Merges once to the end, then kills so often, then kills and has the root forget.
pub(crate) fn run(seed: u64, kills: u64, size: &Size) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let (made, copy) = (dir.path().join("made"), dir.path().join("copy"));
    merger::make(&made, seed, size)?;
    copy_dir(&made, &copy)?;
    let before = merger::look(&merger::open(&copy)?, size.chunks)?;

    copy_dir(&made, &copy)?;
    let told = child::run("merger", &copy, None, &[])?;
    let end = told.end.ok_or("it was not told to the end")?;
    let after = merger::look(&merger::open(&copy)?, size.chunks)?;
    let changed = before.changed(&after);
    println!(
        "segments: seed {seed}, {} into {changed} segments in {} batches, {end}",
        plural(size.chunks, "chunk"),
        told.words.len()
    );
    if changed < before.segment_count() || changed < 2 {
        return Err("a segment is as it was".into());
    }
    let (steps, looks) = (Step::of(&told.words)?, [before, after]);
    let torture = Torture { made: &made, copy: &copy, chunks: size.chunks, steps, looks };

    let mut rng = Rng::stream(seed, 2);
    let mut tally: BTreeMap<Step, [u64; 2]> = BTreeMap::new();
    let mut longest_open = Duration::ZERO;
    for kill in 0..kills {
        let wanted = Step::ALL[(kill % Step::ALL.len() as u64) as usize];
        // The first of each step is killed at its beginning, so that none is passed by a machine in a hurry.
        let when = if kill < Step::ALL.len() as u64 { When::AtOnce } else { When::Later };
        let killed = torture.kill(&mut rng, wanted, when, false)?;
        tally.entry(killed.last).or_default()[usize::from(killed.is_after)] += 1;
        longest_open = longest_open.max(killed.open);
    }
    for step in Step::ALL {
        let [before, after] = tally.get(&step).copied().unwrap_or_default();
        let words = step.words();
        println!("segments: killed as {words}: {before} times as before, {after} times as after");
    }
    let segments = Step::SegmentParts..=Step::SegmentRows;
    if tally.range(segments).next().is_none() || tally.range(..Step::SegmentParts).next().is_none() {
        return Err("no kill came on one side of the commit that counts".into());
    }
    println!("segments: {}, 0 in between, opened again within {longest_open:.1?}", plural(kills, "kill"));
    for kill in 0..CONTROL_KILLS {
        if let Err(caught) = torture.kill(&mut rng, Step::SegmentCommits, When::Later, true) {
            println!(
                "segments: control without a record caught after {}: {caught}",
                plural(kill + 1, "kill")
            );
            return Ok(());
        }
    }
    Err(format!("the control was not caught in {CONTROL_KILLS} kills").into())
}

struct Torture<'p> {
    made: &'p Path,
    copy: &'p Path,
    chunks: u64,
    /// What the batches of a promotion are, in order.
    steps: Vec<Step>,
    /// Before and after.
    looks: [Look; 2],
}

/// When a process is killed that has come to a step.
#[derive(Debug, Clone, Copy)]
enum When {
    /// At its first batch.
    AtOnce,
    /// Behind any of its batches, and after a while.
    Later,
}

/// What a kill left.
struct Killed {
    /// What was told last.
    last: Step,
    is_after: bool,
    /// How long it took to open.
    open: Duration,
}

impl Torture<'_> {
    /// Kills a promotion behind a batch of a step, and opens what it left; `forgets` has the root lose its record first.
    fn kill(&self, rng: &mut Rng, wanted: Step, when: When, forgets: bool) -> Result<Killed, Failure> {
        copy_dir(self.made, self.copy)?;
        let of_step: Vec<_> = (0..self.steps.len()).filter(|batch| self.steps[*batch] == wanted).collect();
        if of_step.is_empty() {
            return Err(format!("{}: there is no such batch", wanted.words()).into());
        }
        let (batch, delay) = match when {
            When::AtOnce => (of_step[0], Duration::ZERO),
            When::Later => {
                let batch = of_step[rng.below(of_step.len() as u64) as usize];
                let delay_us = if wanted == Step::Counts { 0 } else { rng.below(MAX_DELAY_US) };
                (batch, Duration::from_micros(delay_us))
            }
        };
        let told = child::run("merger", self.copy, Some((batch, delay)), &[])?;
        let last = told.words.len().checked_sub(1).ok_or("it was killed before it began")?;
        let last = *self.steps.get(last).ok_or("it has more batches than before")?;
        if forgets {
            merger::forget(self.copy)?;
        }
        let begun = Instant::now();
        let base = merger::open(self.copy)?;
        let open = begun.elapsed();
        let look = merger::look(&base, self.chunks)?;
        let [before, after] = &self.looks;
        if look != *before && look != *after {
            return Err(format!("killed as {}, it is neither as before nor as after", last.words()).into());
        }
        if look == *before && last > Step::Counts {
            return Err("what counted is gone".into());
        }
        Ok(Killed { last, is_after: look == *after, open })
    }
}
