//! A process that opens a world for writing as a power cut or a failed call left it, and says what is wrong with it.
//!
//! It is a process of its own so that a crash inside RocksDB and a hang are verdicts like others.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cg_store::{Error, OpenError, World};

use super::promise::Promise;
use crate::failure::Failure;
use crate::kill;
use crate::model::Model;
use crate::reading;
use crate::step::Step;
use crate::subject;
use crate::worker::copy_name;

/// Longer than this and it hangs.
const HANG: Duration = Duration::from_secs(60);
/// The beginning of the error of a process that ended without one of its own: by a signal, a panic, or not at all.
pub(crate) const CRASHED: &str = "CRASH: ";

/// What a judge is told.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Orders {
    /// The world.
    #[arg(long)]
    world: PathBuf,
    /// What its steps were made from.
    #[arg(long)]
    seed: u64,
    /// It was made: it must open.
    #[arg(long)]
    made: bool,
    /// The steps that must be there.
    #[arg(long)]
    least: u64,
    /// No more than these may be there.
    #[arg(long)]
    most: u64,
    /// No later commit may have a number up to this one.
    #[arg(long)]
    newest: u64,
    /// Each step from this one on deletes a chunk.
    #[arg(long)]
    prune_from: Option<u64>,
}

/// Judges, and prints what it found; the error is what is wrong.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let world = match World::builder().options(&subject::options()).open(&orders.world) {
        Ok(world) => world,
        Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotAWorld { .. })) if !orders.made => {
            println!("half made");
            return Ok(());
        }
        Err(error) => return Err(format!("the world does not open for writing: {error}").into()),
    };
    let counts = reading::verify(&world)?;
    let Some(found) = world.property(&subject::named(subject::STEPS)?)?.map(|bytes| subject::number(&bytes))
    else {
        if orders.made {
            return Err("the count of steps is gone".into());
        }
        println!("made in part");
        return Ok(world.close()?);
    };
    if found < orders.least || found > orders.most {
        let (least, most) = (orders.least, orders.most);
        return Err(format!("{least} steps were promised and {most} begun, {found} are there").into());
    }
    let mut expected = Model::new(orders.seed);
    while expected.steps < found {
        expected.take(&Step::pruning(orders.seed, expected.steps, orders.prune_from));
    }
    kill::compare(&world, &expected, orders.most, orders.seed)?;
    reading::compare_counts(&counts, &expected.picture())?;
    let before = world.last_commit().get();
    if before < orders.newest {
        return Err(format!("commit {} was promised, the newest is {before}", orders.newest).into());
    }
    let next = subject::take(&world, &Step::new(orders.seed, found), None)?;
    if next <= before {
        return Err(format!("the next commit has the number {next}, and {before} is there").into());
    }
    expected.take(&Step::new(orders.seed, found));
    kill::compare(&world, &expected, orders.most.max(found + 1), orders.seed)?;
    world.close()?;
    println!("{found} steps");
    Ok(())
}

/// The verdict on a world: what was found, or what is wrong.
pub(crate) fn judge(world: &Path, seed: u64, promise: &Promise) -> Result<Result<String, String>, Failure> {
    if !promise.is_made && !world.exists() {
        return Ok(Ok("absent".to_owned()));
    }
    let number = |number: u64| number.to_string();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("judge").arg("--world").arg(world).args(["--seed", &number(seed)]);
    command.args(["--least", &number(promise.least), "--most", &number(promise.most)]);
    command.args(["--newest", &number(promise.newest)]).args(promise.is_made.then_some("--made"));
    if let Some(from) = promise.pruned_from {
        command.args(["--prune-from", &number(from)]);
    }
    verdict(&mut command)
}

/// The verdict on the checkpoints that were promised: on the newest and on one before it.
pub(crate) fn judge_copies(
    dir: &Path,
    seed: u64,
    promise: &Promise,
) -> Result<Result<String, String>, Failure> {
    for (number, steps) in promise.copies.iter().rev().take(2) {
        let copy = Promise { is_made: true, least: *steps, most: *steps, ..Promise::default() };
        let name = copy_name(*number);
        if let Err(wrong) = judge(&dir.join(&name), seed, &copy)? {
            return Ok(Err(format!("{name}: {wrong}")));
        }
    }
    Ok(Ok(format!("{} checkpoints", promise.copies.len())))
}

pub(crate) fn verdict(command: &mut Command) -> Result<Result<String, String>, Failure> {
    let Ended { out, error } = ended(command)?;
    Ok(error.map_or_else(|| Ok(String::from_utf8_lossy(&out).trim().to_owned()), Err))
}

/// The end of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its standard output.
    pub(crate) out: Vec<u8>,
    /// What it said on standard error, if it did not succeed.
    pub(crate) error: Option<String>,
}

impl Ended {
    /// The hash that an importer told at its end.
    pub(crate) fn hash(&self) -> Option<String> {
        let out = String::from_utf8_lossy(&self.out);
        out.lines().find_map(|line| line.strip_prefix("ended ")).map(str::to_owned)
    }
}

/// Runs a program that ends by itself.
pub(crate) fn ended(command: &mut Command) -> Result<Ended, Failure> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let out = read(child.stdout.take().ok_or("it has no output")?);
    let error = read(child.stderr.take().ok_or("it has no output")?);
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if begun.elapsed() > HANG => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let bytes = |thread: JoinHandle<std::io::Result<Vec<u8>>>| {
        thread.join().map_err(|_| Failure::from("a thread panicked"))?.map_err(Failure::from)
    };
    let (out, error) = (bytes(out)?, bytes(error)?);
    let error = String::from_utf8_lossy(&error);
    let error = error.trim().trim_start_matches("error: ");
    let error = match status {
        Some(status) if status.success() => None,
        // Errors of its own.
        Some(status) if status.code() == Some(1) => Some(error.to_owned()),
        Some(status) => Some(format!("{CRASHED}{status}: {error}")),
        None => Some(format!("{CRASHED}no end in {HANG:?}: {error}")),
    };
    Ok(Ended { out, error })
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<std::io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map(|_| bytes)
    })
}
