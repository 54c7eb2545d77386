//! Killing a process that merges a large overlay into its base, in one transaction of many batches: the base that is
//! opened again is as before or as after.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cg_store::verify::{ContentHash, VerifyDepth};

use crate::child::{self, copy_dir};
use crate::failure::Failure;
use crate::promoter;
use crate::report::plural;
use crate::rng::Rng;
use crate::telling::Stage;

/// A broken promotion must be caught within this many kills.
const CONTROL_KILLS: u64 = 20;
/// The process goes on for so long at most behind the batch at which it is to be killed.
const MAX_DELAY_MS: u64 = 3;

/// Where a base was when its process was killed, and what it was found to be.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    before: u64,
    after: u64,
}

/// How many chunks the overlay changes, and how large a batch of the base may be.
pub(crate) struct Size {
    pub(crate) chunks: u64,
    pub(crate) batch_bytes: u64,
}

impl Size {
    pub(crate) const CI: Self = Self { chunks: 600, batch_bytes: 32 << 10 };
    pub(crate) const WHOLE: Self = Self { chunks: 100_000, batch_bytes: 4 << 20 };
}

/// Merges once to the end, then kills so often, then kills one that is broken.
pub(crate) fn run(seed: u64, kills: u64, size: &Size) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let (made, copy) = (dir.path().join("made"), dir.path().join("copy"));
    promoter::make(&made, seed, size.chunks, size.batch_bytes)?;
    let before = look(&made)?;

    copy_dir(&made, &copy)?;
    let told = promote(&copy, None, &[])?;
    let end = told.end.ok_or("it was not told to the end")?;
    let after = look(&copy)?;
    if after == before {
        return Err("merging changed nothing".into());
    }
    println!(
        "promote: seed {seed}, {} in {} batches, {end}",
        plural(size.chunks, "chunk"),
        told.stages.len()
    );
    let torture = Torture { made: &made, copy: &copy, stages: &told.stages, hashes: [before, after] };

    let mut rng = Rng::stream(seed, 1);
    let mut tally: BTreeMap<Stage, Tally> = BTreeMap::new();
    let mut longest_open = Duration::ZERO;
    for kill in 0..kills {
        let (stage, is_after, open) = torture.kill(&mut rng, kill, &[])?;
        let tally = tally.entry(stage).or_default();
        *(if is_after { &mut tally.after } else { &mut tally.before }) += 1;
        longest_open = longest_open.max(open);
    }
    for stage in Stage::ALL {
        let Tally { before, after } = tally.get(&stage).copied().unwrap_or_default();
        let word = stage.word();
        println!("promote: killed at the {word}: {before} times as before, {after} times as after");
    }
    // The intent is one batch, which is over when it is told of.
    if !tally.contains_key(&Stage::Parts) || tally.range(Stage::CarryingOut..).next().is_none() {
        return Err("no kill came on one side of the intent".into());
    }
    println!("promote: {}, 0 in between, opened again within {longest_open:.1?}", plural(kills, "kill"));
    for kill in 0..CONTROL_KILLS {
        if let Err(caught) = torture.kill(&mut rng, 2 + Stage::ALL.len() as u64 * kill, &["--loses-intents"])
        {
            println!(
                "promote: control without an intent caught after {}: {caught}",
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
    /// The stages of the batches of a promotion, in order.
    stages: &'p [Stage],
    /// Before and after.
    hashes: [ContentHash; 2],
}

impl Torture<'_> {
    /// Kills a promotion in one of its stages, in turn; says in which it was, whether the base is as after it, and how
    /// long it took to open.
    fn kill(&self, rng: &mut Rng, number: u64, orders: &[&str]) -> Result<(Stage, bool, Duration), Failure> {
        copy_dir(self.made, self.copy)?;
        let wanted = Stage::ALL[(number % Stage::ALL.len() as u64) as usize];
        let of_stage: Vec<_> = (0..self.stages.len()).filter(|batch| self.stages[*batch] == wanted).collect();
        // The first of each stage is killed at its beginning, so that none is passed by a machine in a hurry.
        let is_first = number < Stage::ALL.len() as u64;
        let batch = if is_first { of_stage[0] } else { of_stage[rng.below(of_stage.len() as u64) as usize] };
        let delay = match wanted {
            Stage::Parts | Stage::CarryingOut if !is_first => {
                Duration::from_micros(rng.below(1000 * MAX_DELAY_MS))
            }
            _ => Duration::ZERO,
        };
        let told = promote(self.copy, Some((batch, delay)), orders)?;
        let last = *told.stages.last().ok_or("it was killed before it began")?;
        let begun = Instant::now();
        let world = promoter::open(self.copy)?;
        let open = begun.elapsed();
        let hash = world.content_hash(cg_store::view::Area::World)?;
        let [before, after] = self.hashes;
        if hash != before && hash != after {
            return Err(
                format!("killed at the {}, the base is neither as before nor as after", last.word()).into()
            );
        }
        let report = world.verify(VerifyDepth::Full, |_| {})?;
        if let Some(finding) = report.findings.first() {
            return Err(
                format!("killed at the {}, the base is not sound: {}", last.word(), finding.what).into()
            );
        }
        world.close()?;
        if hash == before && last > Stage::Intent {
            return Err("what was committed is gone".into());
        }
        Ok((last, hash == after, open))
    }
}

/// Messages of a promotion.
#[derive(Debug, Default)]
struct Told {
    stages: Vec<Stage>,
    end: Option<String>,
}

/// Runs a promotion, and kills it so long after it has told of a batch.
fn promote(dir: &Path, kill: Option<(usize, Duration)>, orders: &[&str]) -> Result<Told, Failure> {
    let told = child::run("promoter", dir, kill, orders)?;
    let stage = |word: &String| {
        let stage = Stage::ALL.into_iter().find(|stage| stage.word() == word);
        stage.ok_or_else(|| Failure::from(format!("`{word}` is no stage")))
    };
    let mut stages = told.words.iter().map(stage).collect::<Result<Vec<_>, _>>()?;
    // Before all else the overlay notes that it is merged. Nothing of the base is committed then.
    for stage in stages.iter_mut().take_while(|stage| **stage != Stage::Intent) {
        *stage = Stage::Parts;
    }
    Ok(Told { stages, end: told.end })
}

/// Everything that a base holds.
fn look(dir: &Path) -> Result<ContentHash, Failure> {
    let world = promoter::open(dir)?;
    let hash = world.content_hash(cg_store::view::Area::World)?;
    world.close()?;
    Ok(hash)
}
