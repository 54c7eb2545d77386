//! Killing a process that merges a large overlay into a segmented world: each segment has all or nothing of its chunks, objects,
//! records and properties, and merged again, everything is there exactly once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::child::{self, copy_dir};
use crate::failure::Failure;
use crate::merger::{self, Look, Size};
use crate::report::plural;
use crate::rng::Rng;

/// An overlay that forgets too much must be caught within this many kills.
const CONTROL_KILLS: u64 = 20;
/// The process goes on for so long at most after the batch at which it is to be killed.
const MAX_DELAY_US: u64 = 1000;

/// The step to which a batch of a merge into segments belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The root notes where entities are, or that they are transferred.
    Root,
    /// A segment stages its part, if that is more than one batch.
    SegmentParts,
    /// A segment commits its part, or what is transferred.
    SegmentCommits,
    /// A segment writes what it has staged.
    SegmentRows,
    /// The overlay forgets a part, or is emptied.
    Overlay,
}

impl Step {
    const ALL: [Self; 5] =
        [Self::Root, Self::SegmentParts, Self::SegmentCommits, Self::SegmentRows, Self::Overlay];

    const fn words(self) -> &'static str {
        match self {
            Self::Root => "the root notes entities",
            Self::SegmentParts => "a segment stages its part",
            Self::SegmentCommits => "a segment commits",
            Self::SegmentRows => "a segment writes its part",
            Self::Overlay => "the overlay forgets",
        }
    }

    fn of(word: &str) -> Result<Self, Failure> {
        Ok(match word {
            "root intent" => Self::Root,
            "segment parts" => Self::SegmentParts,
            "segment intent" => Self::SegmentCommits,
            "segment carrying-out" => Self::SegmentRows,
            "overlay intent" => Self::Overlay,
            word => return Err(format!("`{word}` is no step").into()),
        })
    }
}

/// Merges once to the end, then kills so often and merges again, then kills and has the overlay forget.
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
    let steps = told.words.iter().map(|word| Step::of(word)).collect::<Result<_, _>>()?;
    let torture = Torture { made: &made, copy: &copy, chunks: size.chunks, steps, looks: [before, after] };

    let mut rng = Rng::stream(seed, 2);
    let mut tally: BTreeMap<Step, [u64; 3]> = BTreeMap::new();
    let mut longest_open = Duration::ZERO;
    for kill in 0..kills {
        let wanted = Step::ALL[(kill % Step::ALL.len() as u64) as usize];
        // The first of each step is killed at its beginning, so that none is passed by a machine in a hurry.
        let when = if kill < Step::ALL.len() as u64 { When::AtOnce } else { When::Later };
        let killed = torture.kill(&mut rng, wanted, when, Control::None)?;
        tally.entry(killed.last).or_default()[killed.left as usize] += 1;
        longest_open = longest_open.max(killed.open);
    }
    for step in Step::ALL {
        let [before, between, after] = tally.get(&step).copied().unwrap_or_default();
        let words = step.words();
        println!(
            "segments: killed as {words}: {before} times as before, {between} times in between, {after} times as after"
        );
    }
    if tally.values().all(|[_, between, _]| *between == 0) {
        return Err("no kill came in between".into());
    }
    println!(
        "segments: {}, all whole when merged again, opened again within {longest_open:.1?}",
        plural(kills, "kill")
    );
    for (control, name, wanted) in [
        (Control::Splits, "that commits values apart", Step::Root),
        (Control::Forgets, "whose overlay forgets", Step::SegmentCommits),
    ] {
        let mut caught =
            (1..=CONTROL_KILLS).map(|kill| (kill, torture.kill(&mut rng, wanted, When::Later, control)));
        let Some((kill, caught)) = caught.find_map(|(kill, killed)| Some((kill, killed.err()?))) else {
            return Err(format!("the control {name} was not caught in {CONTROL_KILLS} kills").into());
        };
        println!("segments: control {name} caught after {}: {caught}", plural(kill, "kill"));
    }
    Ok(())
}

/// What is wrong with the process that is killed, or with the one that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    None,
    /// Values are committed before the chunks beside them.
    Splits,
    /// The overlay is emptied before it is merged again.
    Forgets,
}

struct Torture<'p> {
    made: &'p Path,
    copy: &'p Path,
    chunks: u64,
    /// The steps of the batches of a merge, in order.
    steps: Vec<Step>,
    /// Before and after.
    looks: [Look; 2],
}

/// When a process is killed that has come to a step.
#[derive(Debug, Clone, Copy)]
enum When {
    /// At its first batch.
    AtOnce,
    /// After any of its batches, and a while.
    Later,
}

/// The state in which a kill left the base.
#[derive(Debug, Clone, Copy)]
enum Left {
    Before,
    Between,
    After,
}

struct Killed {
    /// The step that was told last.
    last: Step,
    left: Left,
    /// How long it took to open.
    open: Duration,
}

impl Torture<'_> {
    /// Kills a merge after a batch of a step, opens what it left, and merges again.
    fn kill(&self, rng: &mut Rng, wanted: Step, when: When, control: Control) -> Result<Killed, Failure> {
        copy_dir(self.made, self.copy)?;
        let of_step: Vec<_> = (0..self.steps.len()).filter(|batch| self.steps[*batch] == wanted).collect();
        if of_step.is_empty() {
            return Err(format!("{}: there is no such batch", wanted.words()).into());
        }
        let (batch, delay) = match when {
            When::AtOnce => (of_step[0], Duration::ZERO),
            When::Later => {
                let batch = of_step[rng.below(of_step.len() as u64) as usize];
                (batch, Duration::from_micros(rng.below(MAX_DELAY_US)))
            }
        };
        let orders: &[&str] = if control == Control::Splits { &["--splits"] } else { &[] };
        let told = child::run("merger", self.copy, Some((batch, delay)), orders)?;
        let last = Step::of(told.words.last().ok_or("it was killed before it began")?)?;
        let begun = Instant::now();
        let base = merger::open(self.copy)?;
        let open = begun.elapsed();
        let found = merger::look(&base, self.chunks)?;
        drop(base);
        let [before, after] = &self.looks;
        if let Some(segment) = found.torn(before, after) {
            return Err(
                format!("killed as {}, {segment} has a part of its chunks and values", last.words()).into()
            );
        }
        let left = if found == *before {
            Left::Before
        } else if found == *after {
            Left::After
        } else {
            Left::Between
        };
        merger::go_on(self.copy, control == Control::Forgets)?;
        if merger::look(&merger::open(self.copy)?, self.chunks)? != *after {
            return Err(format!("killed as {} and merged again, it is not whole", last.words()).into());
        }
        Ok(Killed { last, left, open })
    }
}
