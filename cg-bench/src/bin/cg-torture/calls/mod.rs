//! Calls of the file system that fail once: afterwards the world opens with every acknowledged commit.
//!
//! A deed is done on a file system that lets its call number n fail. What is left is judged twice: as the next process finds it,
//! and as a power cut leaves it if nothing reached the disk but what was synced. A failed sync writes nothing, and no later one
//! makes up for it.

mod case;
mod deed;
pub(crate) mod importer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum as _;

use case::{Base, ERRORS};

pub(crate) use case::Case;
pub(crate) use deed::Deed;

use crate::disk::{Call, Fault, Tree};
use crate::failure::Failure;
use crate::image::scratch;
use crate::keeper;
use crate::power::WORLD;
use crate::report::plural;
use crate::rng::Rng;
use crate::step::Step;
use crate::subject;

/// Steps that are in the world before a deed.
const STEPS: u64 = 24;
/// Cases at once.
const THREADS: u64 = 2;

/// The size of a run.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    /// The number of cases, chosen by the seed; every call of every deed with every error when left out.
    pub(crate) cases: Option<u64>,
    /// Only this deed.
    pub(crate) deed: Option<Deed>,
    /// Only calls of this kind.
    pub(crate) call: Option<Call>,
    /// Only this case.
    pub(crate) again: Option<Case>,
    /// Where failing worlds are kept.
    pub(crate) keep: Option<PathBuf>,
}

/// Lets calls fail and judges what is left.
pub(crate) fn run(seed: u64, size: &Size) -> Result<(), Failure> {
    let base = base(seed)?;
    let mut counts = BTreeMap::new();
    // The control needs the first two.
    let is_counted = |deed: &&Deed| {
        size.again.is_none() && size.deed.is_none_or(|only| [only, Deed::Open, Deed::Safe].contains(*deed))
    };
    for deed in Deed::value_variants().iter().filter(is_counted) {
        let ended = Case { deed: *deed, fault: None, is_wrong: false }.run(&base, size.keep.as_deref())?;
        if let Some(wrong) = ended.error.or(ended.wrong) {
            return Err(format!("{} without a fault: {wrong}", deed.word()).into());
        }
        let calls = &ended.recording.calls;
        let words = calls.iter().map(|(call, count)| format!("{count} {call:?}").to_lowercase());
        println!("calls: {}: {}", deed.word(), words.collect::<Vec<_>>().join(", "));
        counts.extend(calls.iter().map(|(call, count)| ((deed.word(), *call), *count)));
    }
    if size.again.is_none() {
        control(&base, &counts)?;
        for (deed, word) in Deed::value_variants().iter().map(|deed| (*deed, deed.word())) {
            if deed.work().is_some() && counts.keys().any(|(counted, _)| *counted == word) {
                control_of_keeper(&base, deed)?;
            }
        }
    }
    counts.retain(|(deed, call), _| {
        size.deed.is_none_or(|only| only.word() == *deed) && size.call.is_none_or(|only| only == *call)
    });
    let cases = match (size.again, size.cases) {
        (Some(case), _) => vec![case],
        (None, Some(cases)) => (0..cases).map(|number| chosen(seed, number, &counts)).collect(),
        (None, None) => all(&counts),
    };
    let (tally, failed) = cases_run(&base, &cases, size)?;
    println!(
        "calls: seed {seed}, {}: {}; {} failed",
        plural(cases.len() as u64, "call"),
        tally.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", "),
        failed.len()
    );
    let Some(first) = failed.first() else { return Ok(()) };
    Err(format!("{} of {}; {first}", failed.len(), plural(cases.len() as u64, "call")).into())
}

/// The world that deeds are done to: closed, with tables, blobs and a log.
fn base(seed: u64) -> Result<Base, Failure> {
    let dir = scratch()?;
    let path = dir.path().join(WORLD);
    subject::create(&path, seed)?;
    let world = cg_store::World::builder().options(&subject::options()).open(&path)?;
    for index in 0..STEPS {
        subject::take(&world, &Step::new(seed, index), None)?;
    }
    world.close()?;
    drop(world);
    let save = scratch()?;
    importer::save(save.path())?;
    let imported = case::import(&save.path().join("not there yet"), save.path())?;
    let hash = imported.hash().ok_or("the import does not end")?;
    let kept = scratch()?;
    let kept_hash = keeper::make_world(kept.path(), seed)?.hash;
    let (tree, kept) = (Tree::read(dir.path())?, Tree::read(kept.path())?);
    Ok(Base { tree, seed, steps: STEPS, save, hash, kept, kept_hash })
}

type Counts = BTreeMap<(String, Call), u64>;

/// A world that does not look at the result of a sync must be caught at one of those of commits at `Safe`, after the opening.
fn control(base: &Base, counts: &Counts) -> Result<(), Failure> {
    let syncs = counts.get(&(Deed::Safe.word(), Call::Sync)).copied().unwrap_or_default();
    let opening = counts.get(&(Deed::Open.word(), Call::Sync)).copied().unwrap_or_default();
    for number in opening + 1..=syncs {
        let fault = Fault { call: Call::Sync, number, errno: 5, is_kept_secret: true };
        if let Some(wrong) =
            (Case { deed: Deed::Safe, fault: Some(fault), is_wrong: false }).run(base, None)?.wrong
        {
            println!("calls: control without a look at syncs caught at sync {number} of {syncs}: {wrong}");
            return Ok(());
        }
    }
    Err(format!("control without a look at syncs was not caught at {syncs} syncs").into())
}

/// A keeper that works wrongly must be caught without a fault, or at a write that fails in the second half of its work.
fn control_of_keeper(base: &Base, deed: Deed) -> Result<(), Failure> {
    let name = deed.word();
    let whole = Case { deed, fault: None, is_wrong: true }.run(base, None)?;
    let mut caught = whole.wrong.map(|wrong| format!("without a fault: {wrong}"));
    let writes = whole.recording.calls.get(&Call::Write).copied().unwrap_or_default();
    for number in writes / 2..=writes {
        if caught.is_some() {
            break;
        }
        let fault = Fault { call: Call::Write, number, errno: 5, is_kept_secret: false };
        let ended = Case { deed, fault: Some(fault), is_wrong: true }.run(base, None)?;
        caught = ended.wrong.map(|wrong| format!("at write {number} of {writes}: {wrong}"));
    }
    let caught = caught.ok_or_else(|| format!("the control of {name} was not caught at {writes} writes"))?;
    println!("calls: control of {name} caught {caught}");
    Ok(())
}

/// The case of a number.
fn chosen(seed: u64, number: u64, counts: &Counts) -> Case {
    let mut rng = Rng::stream(seed, number);
    let is_chosen = |deed: &&Deed| counts.keys().any(|(word, _)| *word == deed.word());
    let deeds: Vec<_> = Deed::value_variants().iter().filter(is_chosen).collect();
    let deed = *deeds[rng.below(deeds.len() as u64) as usize];
    let of_deed: Vec<_> = counts.iter().filter(|((word, _), _)| *word == deed.word()).collect();
    let ((_, call), count) = of_deed[rng.below(of_deed.len() as u64) as usize];
    let errno = ERRORS[rng.below(ERRORS.len() as u64) as usize].1;
    let fault = Fault { call: *call, number: 1 + rng.below(*count), errno, is_kept_secret: false };
    Case { deed, fault: Some(fault), is_wrong: false }
}

/// Every call of every deed, with every error. A read does not fail for want of room; and the reads of the opening, the same in
/// each deed, fail in that of the opening alone.
fn all(counts: &Counts) -> Vec<Case> {
    let mut cases = Vec::new();
    for deed in Deed::value_variants() {
        for ((_, call), count) in counts.iter().filter(|((word, _), _)| *word == deed.word()) {
            let opens = !matches!(deed, Deed::Create | Deed::Open | Deed::Import) && deed.work().is_none();
            let opening = counts.get(&(Deed::Open.word(), *call)).copied().unwrap_or_default();
            let first = if opens && *call == Call::Read { opening + 1 } else { 1 };
            let errors = if *call == Call::Read { &ERRORS[..1] } else { &ERRORS };
            for number in first..=*count {
                cases.extend(errors.iter().map(|(_, errno)| {
                    let fault = Fault { call: *call, number, errno: *errno, is_kept_secret: false };
                    Case { deed: *deed, fault: Some(fault), is_wrong: false }
                }));
            }
        }
    }
    cases
}

type Tally = BTreeMap<&'static str, u64>;

fn cases_run(base: &Base, cases: &[Case], size: &Size) -> Result<(Tally, Vec<String>), Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Tally::new(), Vec::new()));
    let one = || -> Result<(), Failure> {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ended = case.run(base, size.keep.as_deref())?;
            let reached = case.fault.is_some_and(|fault| {
                ended.recording.calls.get(&fault.call).is_some_and(|count| *count >= fault.number)
            });
            let mut results = results.lock().map_err(|_| "a thread panicked")?;
            let what = match (reached, &ended.error) {
                (false, _) => "not reached",
                (true, None) => "not noticed or made up for",
                (true, Some(_)) => "reported",
            };
            *results.0.entry(what).or_default() += 1;
            if let Some(wrong) = ended.wrong {
                let told =
                    ended.error.map_or_else(|| "no error".to_owned(), |error| format!("error `{error}`"));
                let line = format!("{case}: {wrong} (the deed: {told})");
                println!("calls: {line}");
                results.1.push(line);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok(results.into_inner().map_err(|_| "a thread panicked")?)
}
