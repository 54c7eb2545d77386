//! A process that damages copies of a world, reads them, and says what a reader noticed.
//!
//! It is a process of its own so that a panic, a crash inside RocksDB and a hang are verdicts like others.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cg_store::World;

use tempfile::TempDir;

use crate::damage::Damage;
use crate::failure::Failure;
use crate::image::{self, Image};
use crate::model::{Picture, Thing};
use crate::reading::{self, Counts, Reading};
use crate::subject;
use crate::verdict::Verdict;

/// Longer than this and it hangs.
const HANG: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(60);
/// How a process ends that panicked.
const PANICKED: i32 = 101;

/// What a probe is told.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Orders {
    /// The world to copy.
    #[arg(long)]
    image: PathBuf,
    /// Where the copies go.
    #[arg(long)]
    scratch: PathBuf,
    /// What its steps were made from.
    #[arg(long)]
    seed: u64,
    /// How many of them were reported as synced.
    #[arg(long)]
    synced: u64,
}

/// Answers one line with one line until there are no more.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let history = image::history(orders.seed, Image::steps());
    let copy = orders.scratch.join("copy");
    image::copy(&orders.image, &copy)?;
    let world = World::builder().options(&subject::options()).open(&copy)?;
    let looked =
        Expected { seed: orders.seed, synced: orders.synced, counts: reading::verify(&world)?, history };
    drop(world);
    println!("ready");
    for line in io::stdin().lock().lines() {
        image::copy(&orders.image, &copy)?;
        line?.parse::<Damage>()?.apply(&copy)?;
        let (verdict, why) = looked.look(&copy);
        println!("{verdict:?} {}", why.replace('\n', " "));
        io::stdout().flush()?;
    }
    Ok(())
}

/// The state that an undamaged copy would show.
struct Expected {
    seed: u64,
    synced: u64,
    counts: Counts,
    /// After each step.
    history: Vec<Picture>,
}

impl Expected {
    /// Opens a world and reads all of it.
    fn look(&self, dir: &Path) -> (Verdict, String) {
        let world = match World::builder().options(&subject::options()).open(dir) {
            Ok(world) => world,
            Err(error) => return (Verdict::OpenError, error.to_string()),
        };
        let reading = match Reading::of(&world, Image::steps(), self.seed) {
            Ok(reading) => reading,
            Err(failure) => return (Verdict::Lost, failure.to_string()),
        };
        let verified = reading::verify(&world).map_err(|error| error.to_string());
        self.judge(&reading, verified)
    }

    fn judge(&self, reading: &Reading, verified: Result<Counts, String>) -> (Verdict, String) {
        let sound = reading.unreadable.is_empty() && verified.is_ok();
        let then = reading.steps.and_then(|steps| self.history.get(steps as usize));
        if let (Some(steps), Some(then)) = (reading.steps, then) {
            // A name is committed before the step that needs it.
            let mut picture = reading.picture.clone();
            picture.remove(&Thing::Name(steps));
            if sound && steps < Image::steps() && *then == picture {
                let verdict = if steps < self.synced { Verdict::Lost } else { Verdict::Tail };
                return (verdict, format!("{steps} of {} steps, {} synced", Image::steps(), self.synced));
            }
        }
        let differences: BTreeMap<Verdict, Thing> = self.differences(reading).collect();
        if let Some((verdict, thing)) = differences.last_key_value() {
            return (*verdict, format!("{thing:?}"));
        }
        if let Some((thing, error)) = reading.unreadable.first_key_value() {
            return (Verdict::ReadError, format!("{thing:?}: {error}"));
        }
        match verified {
            Err(finding) => (Verdict::ReadError, finding),
            Ok(counts) if counts == self.counts => (Verdict::Harmless, String::new()),
            Ok(counts) => (Verdict::Lost, format!("rows: {counts:?} instead of {:?}", self.counts)),
        }
    }

    /// Every thing that was read without an error and is not what the last step left.
    fn differences<'a>(&'a self, reading: &'a Reading) -> impl Iterator<Item = (Verdict, Thing)> + 'a {
        let now = self.history.last().expect("there is a picture before the first step");
        let things = now.keys().chain(reading.picture.keys().filter(|thing| !now.contains_key(thing)));
        things.filter(|thing| !reading.unreadable.contains_key(thing)).filter_map(|thing| {
            let found = reading.picture.get(thing);
            if found == now.get(thing) {
                return None;
            }
            let was_so = self.history.iter().any(|picture| picture.get(thing) == found);
            let verdict = if found.is_none() || was_so { Verdict::Lost } else { Verdict::Wrong };
            Some((verdict, *thing))
        })
    }
}

/// A probe, started again whenever one has died.
pub(crate) struct Prober<'i> {
    image: &'i Image,
    scratch: TempDir,
    process: Option<Process>,
}

struct Process {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

impl<'i> Prober<'i> {
    /// A prober of copies of a world.
    pub(crate) fn new(image: &'i Image) -> Result<Self, Failure> {
        Ok(Self { image, scratch: image::scratch()?, process: None })
    }

    /// Damages a copy and reads it.
    pub(crate) fn ask(&mut self, damage: &Damage) -> Result<(Verdict, String), Failure> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        writeln!(process.questions, "{damage}")?;
        let answer = match process.answers.recv_timeout(HANG) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return Ok((Verdict::Hang, format!("no answer in {HANG:?}"))),
            Err(RecvTimeoutError::Disconnected) => {
                let status = process.child.wait()?;
                if status.code() == Some(1) {
                    return Err(format!("the probe cannot work: {damage}").into());
                }
                let panicked = status.code() == Some(PANICKED);
                return Ok((if panicked { Verdict::Panic } else { Verdict::Crash }, status.to_string()));
            }
        };
        self.process = Some(process);
        let (verdict, why) = answer.split_once(' ').ok_or("the probe's answer makes no sense")?;
        let all = [
            Verdict::OpenError,
            Verdict::ReadError,
            Verdict::Harmless,
            Verdict::Tail,
            Verdict::Lost,
            Verdict::Wrong,
        ];
        let verdict = all.into_iter().find(|known| format!("{known:?}") == verdict);
        Ok((verdict.ok_or("the probe's verdict makes no sense")?, why.to_owned()))
    }

    fn start(&self) -> Result<Process, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("probe")
            .arg("--image")
            .arg(self.image.world())
            .arg("--scratch")
            .arg(self.scratch.path())
            .args(["--seed", &self.image.seed.to_string()])
            .args(["--synced", &self.image.synced_steps().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("the probe has no input")?;
        let lines = BufReader::new(child.stdout.take().ok_or("the probe has no output")?).lines();
        let (sender, answers) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let process = Process { child, questions, answers };
        match process.answers.recv_timeout(START) {
            Ok(ready) if ready == "ready" => Ok(process),
            _ => Err("the probe does not start".into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
