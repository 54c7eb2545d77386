//! Killing a process at each step of transactions in segments, which change an object, a record, a property and a chunk
//! together: after each kill all four are as before or as after.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::child::{self, Told};
use crate::failure::Failure;
use crate::report::plural;
use crate::rng::Rng;
use crate::transactor;

/// A process that commits the chunk apart must be caught within this many kills.
const CONTROL_KILLS: u64 = 20;
/// The process goes on for so long at most after the batch at which it is to be killed.
const MAX_DELAY_US: u64 = 500;

/// A part of a step, by a batch of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The root commits.
    Root,
    /// A segment stages rows, if they are more than one batch.
    Stages,
    /// A segment commits.
    Commits,
    /// A segment writes what it has staged.
    Writes,
}

impl Part {
    const ALL: [Self; 4] = [Self::Root, Self::Stages, Self::Commits, Self::Writes];

    const fn words(self) -> &'static str {
        match self {
            Self::Root => "the root notes where keys are, or a segment is made",
            Self::Stages => "a segment stages a transaction",
            Self::Commits => "a segment commits",
            Self::Writes => "a segment writes what it has staged",
        }
    }

    /// The part of each batch that a process told of in its steps; `None` for the end of a step.
    fn of_all(words: &[String]) -> Vec<Option<Self>> {
        let mut parts = Vec::new();
        for step in words.split_inclusive(|word| word == DONE) {
            let commit = step.iter().rposition(|word| word == "segment intent");
            parts.extend(step.iter().enumerate().map(|(index, word)| match word.as_str() {
                DONE => None,
                "root intent" => Some(Self::Root),
                "segment intent" => Some(Self::Commits),
                _ if commit.is_some_and(|commit| index < commit) => Some(Self::Stages),
                _ => Some(Self::Writes),
            }));
        }
        parts
    }
}

/// Runs once to the end, then kills so often, then kills a process that commits in two parts.
pub(crate) fn run(seed: u64, kills: u64, steps: u64) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let torture = Torture { dir: &dir.path().join("world"), seed, steps };
    let whole = torture.run(None, false)?;
    whole.end.as_ref().ok_or("it was not told to the end")?;
    if transactor::steps_of(torture.dir, seed, steps)? != steps {
        return Err("it took too many steps".into());
    }
    let parts = Part::of_all(&whole.words);
    let batches = parts.iter().flatten().count();
    println!("transactions: seed {seed}, {} in {batches} batches", plural(steps, "step"));

    let mut rng = Rng::stream(seed, 3);
    let mut tally: BTreeMap<Part, [u64; 2]> = BTreeMap::new();
    for kill in 0..kills {
        let wanted = Part::ALL[(kill % Part::ALL.len() as u64) as usize];
        let (last, is_after) = torture.kill(&mut rng, &parts, wanted, false)?;
        tally.entry(last).or_default()[usize::from(is_after)] += 1;
    }
    for part in Part::ALL {
        let [before, after] = tally.get(&part).copied().unwrap_or_default();
        let words = part.words();
        println!("transactions: killed as {words}: {before} times as before, {after} times as after");
    }
    println!("transactions: {}, 0 in part, none lost", plural(kills, "kill"));
    for kill in 0..CONTROL_KILLS {
        if let Err(caught) = torture.kill(&mut rng, &parts, Part::Commits, true) {
            println!(
                "transactions: control in two commits caught after {}: {caught}",
                plural(kill + 1, "kill")
            );
            return Ok(());
        }
    }
    Err(format!("the control was not caught in {CONTROL_KILLS} kills").into())
}

struct Torture<'p> {
    dir: &'p Path,
    seed: u64,
    steps: u64,
}

impl Torture<'_> {
    /// Lets a process begin anew, and kills it so long after it has told of a batch.
    fn run(&self, kill: Option<(usize, Duration)>, splits: bool) -> Result<Told, Failure> {
        if self.dir.exists() {
            fs::remove_dir_all(self.dir)?;
        }
        let [seed, steps] = [self.seed, self.steps].map(|number| number.to_string());
        let mut orders = vec!["--seed", &seed, "--steps", &steps];
        orders.extend(splits.then_some("--splits"));
        child::run("transactor", self.dir, kill, &orders)
    }

    /// Kills a process after a batch of a part. Returns the part of the batch that was told last, and whether its step is
    /// there.
    fn kill(
        &self,
        rng: &mut Rng,
        parts: &[Option<Part>],
        wanted: Part,
        splits: bool,
    ) -> Result<(Part, bool), Failure> {
        let of_part: Vec<_> = (0..parts.len()).filter(|batch| parts[*batch] == Some(wanted)).collect();
        if of_part.is_empty() {
            return Err(format!("{}: there is no such batch", wanted.words()).into());
        }
        let batch = of_part[rng.below(of_part.len() as u64) as usize];
        let delay = Duration::from_micros(rng.below(MAX_DELAY_US));
        let told = self.run(Some((batch, delay)), splits)?;
        let done = told.words.iter().filter(|word| *word == DONE).count() as u64;
        let last = told.words.iter().rposition(|word| word != DONE).ok_or("it was killed before it began")?;
        let part = parts.get(last).copied().flatten().unwrap_or(wanted);
        let steps = transactor::steps_of(self.dir, self.seed, done)
            .map_err(|failure| format!("killed as {}: {failure}", part.words()))?;
        // The process may have ended the step, or all of them, before it was killed.
        let before = told.words[..last].iter().filter(|word| *word == DONE).count() as u64;
        Ok((part, steps > before.min(self.steps - 1)))
    }
}

/// The word of a step that is done.
const DONE: &str = "done";
