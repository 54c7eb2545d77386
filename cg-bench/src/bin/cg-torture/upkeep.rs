//! Killing a process at each step of compactions, archives and restores: a world holds what it held, a file or a world that is
//! not whole has no name or does not open, and the same work goes on after the kill.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum as _;

use crate::child;
use crate::failure::Failure;
use crate::keeper::{self, Content, Left, Work};
use crate::report::plural;
use crate::rng::Rng;

/// A process that works wrongly must be caught within this many kills.
const CONTROL_KILLS: u64 = 20;
/// The process goes on for so long at most after the step at which it is to be killed.
const MAX_DELAY_US: u64 = 500;

struct Torture<'p> {
    base: &'p Path,
    dir: &'p Path,
    content: &'p Content,
}

/// Does each work once to the end, kills it so often, and then a process that does it wrongly.
pub(crate) fn run(seed: u64, kills: u64) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let base = home.path().join("base");
    std::fs::create_dir(&base)?;
    let content = keeper::make(&base, seed)?;
    let torture = Torture { base: &base, dir: &home.path().join("state"), content: &content };
    let mut rng = Rng::stream(seed, 4);
    for work in Work::value_variants() {
        torture.torment(*work, &mut rng, kills)?;
    }
    Ok(())
}

impl Torture<'_> {
    fn torment(&self, work: Work, rng: &mut Rng, kills: u64) -> Result<(), Failure> {
        let name = work.word();
        child::copy_dir(self.base, self.dir)?;
        let whole = child::run("keeper", self.dir, None, &["--work", &name])?;
        whole.end.as_ref().ok_or_else(|| format!("{name} is not done to the end"))?;
        let steps = whole.words.len() as u64;
        if keeper::judge(self.dir, work, self.content, whole.words.len(), true)? != Left::Whole {
            return Err(format!("{name} left no whole, without a kill").into());
        }
        let mut tally = BTreeMap::new();
        for _ in 0..kills {
            let left = self.kill(work, rng, steps, false).map_err(|wrong| format!("{name}: {wrong}"))?;
            *tally.entry(left).or_insert(0_u64) += 1;
        }
        let count = |left| tally.get(&left).copied().unwrap_or_default();
        println!(
            "upkeep: {name} in {}: {}, {} left nothing, {} a part, {} the whole; none lost",
            plural(steps, "step"),
            plural(kills, "kill"),
            count(Left::Nothing),
            count(Left::Part),
            count(Left::Whole)
        );
        if count(Left::Part) == 0 {
            return Err(format!("{name}: no kill came in between").into());
        }
        for kill in 1..=CONTROL_KILLS {
            if let Err(caught) = self.kill(work, rng, steps, true) {
                println!("upkeep: control of {name} caught after {}: {caught}", plural(kill, "kill"));
                return Ok(());
            }
        }
        Err(format!("the control of {name} was not caught in {CONTROL_KILLS} kills").into())
    }

    /// Kills a process after one of its steps. Returns what it left.
    fn kill(&self, work: Work, rng: &mut Rng, steps: u64, wrongly: bool) -> Result<Left, Failure> {
        child::copy_dir(self.base, self.dir)?;
        let step = rng.below(steps) as usize;
        let delay = Duration::from_micros(rng.below(MAX_DELAY_US));
        let name = work.word();
        let mut orders = vec!["--work", &*name];
        orders.extend(wrongly.then_some("--wrongly"));
        let mut told = child::run("keeper", self.dir, Some((step, delay)), &orders)?;
        if work == Work::Restore && !wrongly && told.end.is_none() && rng.one_in(2) {
            // The same call resumes it, and is killed too.
            let step = rng.below(steps) as usize;
            told = child::run("keeper", self.dir, Some((step, delay)), &orders)?;
        }
        let killed = format!("killed at step {} of {steps}", told.words.len());
        keeper::judge(self.dir, work, self.content, told.words.len(), told.end.is_some())
            .map_err(|wrong| format!("{killed}: {wrong}").into())
    }
}
