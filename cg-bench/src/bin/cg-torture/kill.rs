//! Killing a world's process at random moments: what was reported as committed is there, and nothing in part.
//!
//! The parent is the expected state. It learns from the worker which steps began and which were committed; after the
//! kill it opens the world and demands every step up to the last that was reported as written, none that had not begun,
//! and of each step all or nothing. A step that was only accepted counts as written once a later one is.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cg_format::Tier;
use cg_store::{Durability, Error, OpenError, World};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::model::{Model, Thing};
use crate::reading::{self, Reading};
use crate::report::plural;
use crate::rng::Rng;
use crate::step::Step;
use crate::subject::{self, Break};
use crate::worker::Message;

/// After this many kills a new world is begun, so that old steps need not be replayed for ever.
const KILLS_PER_WORLD: u64 = 25;
/// The whole world is verified at intervals of this many kills.
const KILLS_PER_VERIFY: u64 = 5;
/// A broken worker must be caught within this many kills.
const CONTROL_KILLS: u64 = 200;
/// The latest moment of a kill, after the worker opened the world or, once in eight times, after it was started.
const MAX_DELAY_MS: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(60);

/// Results of a number of kills.
#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    /// Kills before the worker had opened the world.
    while_opening: u64,
    /// Kills in the middle of making a world, which was then refused as half made.
    half_made: u64,
    committed: u64,
    /// Steps that were reported when they were accepted, of which a kill may take the last.
    accepted: u64,
    /// Those of the committed that were to survive a power cut too.
    at_power: u64,
    /// Steps that had begun or were only accepted and were found whole, and those that were found absent.
    unreported_whole: u64,
    unreported_absent: u64,
    verified: u64,
    /// Kills after which chunks lay in warm clusters, and in cold ones.
    found_warm: u64,
    found_cold: u64,
}

/// Kills workers, then broken ones.
pub(crate) fn run(seed: u64, kills: u64, broken: Option<Break>) -> Result<(), Failure> {
    let tally = torture(seed, kills, broken)
        .map_err(|(tally, caught)| format!("after {}: {caught}", plural(tally.kills, "kill")))?;
    println!(
        "kill: seed {seed}, {} ({} while opening; {} more found half made), {} reported ({} at Power; {} more when they were \
         accepted), of those not written when they were reported {} whole and {} absent, {} verified, chunks in warm clusters after {} and in cold ones after {}; \
         0 lost, 0 torn, coins and items exact",
        plural(tally.kills, "kill"),
        tally.while_opening,
        plural(tally.half_made, "world"),
        plural(tally.committed, "commit"),
        tally.at_power,
        tally.accepted,
        tally.unreported_whole,
        tally.unreported_absent,
        plural(tally.verified, "time"),
        plural(tally.found_warm, "kill"),
        plural(tally.found_cold, "kill"),
    );
    if broken.is_none() && kills >= KILLS_PER_WORLD && (tally.found_warm == 0 || tally.found_cold == 0) {
        return Err("no kill came near a move, so moves were not tested".into());
    }
    if broken.is_some() {
        return Ok(());
    }
    for (control, name) in [(Break::Split, "split"), (Break::Lie, "lie")] {
        match torture(seed, CONTROL_KILLS, Some(control)) {
            Err((tally, caught)) => {
                println!("kill: control {name} caught after {}: {caught}", plural(tally.kills, "kill"));
            }
            Ok(_) => {
                return Err(format!("control {name} was not caught in {CONTROL_KILLS} kills").into());
            }
        }
    }
    Ok(())
}

fn torture(seed: u64, kills: u64, broken: Option<Break>) -> Result<Tally, (Tally, Failure)> {
    let mut tally = Tally::default();
    for first in (0..kills).step_by(KILLS_PER_WORLD as usize) {
        let rounds = first..kills.min(first + KILLS_PER_WORLD);
        let mut life = match Life::begin(seed.wrapping_add(first), broken, &mut tally) {
            Ok(life) => life,
            Err(failure) => return Err((tally, failure)),
        };
        for round in rounds {
            if let Err(failure) = life.round(round, &mut tally) {
                if broken.is_some() {
                    return Err((tally, failure));
                }
                // Kept for an investigation.
                let dir = life.dir.keep();
                return Err((tally, format!("{failure} (the world is kept in {})", dir.display()).into()));
            }
        }
    }
    Ok(tally)
}

/// One world, from its making to its last kill.
struct Life {
    dir: TempDir,
    seed: u64,
    rng: Rng,
    broken: Option<Break>,
    expected: Model,
}

impl Life {
    fn begin(seed: u64, broken: Option<Break>, tally: &mut Tally) -> Result<Self, Failure> {
        let dir = tempfile::tempdir()?;
        let mut rng = Rng::stream(seed, 1 << 63);
        let half = dir.path().join("half");
        let maker = Worker::start(&half, seed, &["--create"])?;
        std::thread::sleep(Duration::from_millis(rng.below(MAX_DELAY_MS + 1)));
        maker.stop()?;
        match World::builder().options(&subject::options()).open(&half) {
            // It holds some of what it was to begin with, and all of it is sound.
            Ok(world) => drop(reading::verify(&world)?),
            Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotAWorld { .. })) => {
                tally.half_made += 1;
            }
            Err(error) => return Err(format!("killed while the world was made: {error}").into()),
        }
        subject::create(&dir.path().join("world"), seed)?;
        Ok(Self { dir, seed, rng, broken, expected: Model::new(seed) })
    }

    /// Lets a worker run, kills it, and compares.
    fn round(&mut self, round: u64, tally: &mut Tally) -> Result<(), Failure> {
        let path = self.dir.path().join("world");
        let mut worker = Worker::start(&path, self.seed, &self.orders())?;
        let delay = Duration::from_millis(self.rng.below(MAX_DELAY_MS + 1));
        let while_opening = self.rng.one_in(8);
        if !while_opening {
            worker.wait_for(Message::Ready)?;
        }
        std::thread::sleep(delay);
        let told = worker.kill()?;
        tally.kills += 1;
        tally.while_opening += u64::from(!told.contains(&Message::Ready));
        let (mut committed, mut begun, mut newest) = (self.expected.steps, self.expected.steps, 0);
        let mut accepted = 0;
        let is_written =
            |step| !matches!(Step::new(self.seed, step).durability, Durability::Fast | Durability::Balanced);
        for message in told {
            match message {
                Message::Intent { step } => begun = step + 1,
                Message::Done { step, commit } if is_written(step) => {
                    (committed, newest) = (step + 1, commit);
                }
                Message::Done { .. } => accepted += 1,
                Message::Ready | Message::Kept { .. } | Message::Copied { .. } | Message::End => {}
            }
        }
        tally.committed += committed - self.expected.steps;
        let at_power = |index: &u64| Step::new(self.seed, *index).durability == Durability::Safe;
        tally.at_power += (self.expected.steps..committed).filter(at_power).count() as u64;

        // Every other time the log is left as it is, for the next worker to recover from.
        let read_only = round % 2 == 1;
        let open = if read_only {
            World::builder().options(&subject::options()).open_read_only(&path)
        } else {
            World::builder().options(&subject::options()).open(&path)
        };
        let world = open.map_err(|error| format!("the world does not open: {error}"))?;
        let found = subject::steps_taken(&world)?;
        if found < committed {
            return Err(format!("{committed} steps were reported as committed, {found} are there").into());
        }
        if found > begun {
            return Err(format!("{begun} steps were begun, {found} are there").into());
        }
        let last_commit = world.last_commit().get();
        if last_commit < newest {
            return Err(format!("commit {newest} was reported, the newest is {last_commit}").into());
        }
        tally.accepted += accepted;
        tally.unreported_whole += found - committed;
        tally.unreported_absent += begun - found;
        while self.expected.steps < found {
            self.expected.take(&Step::new(self.seed, self.expected.steps));
        }
        compare(&world, &self.expected, begun, self.seed)?;
        let census = world.tiers().census()?;
        tally.found_warm += u64::from(census.tier(Tier::L1).chunks > 0);
        tally.found_cold += u64::from(census.tier(Tier::L2).chunks > 0);
        if round.is_multiple_of(KILLS_PER_VERIFY) {
            reading::compare_counts(&reading::verify(&world)?, &self.expected.picture())?;
            tally.verified += 1;
        }
        Ok(world.close()?)
    }

    fn orders(&self) -> Vec<&'static str> {
        match self.broken {
            None => vec!["--moves"],
            Some(Break::Split) => vec!["--break", "split"],
            Some(Break::Lie) => vec!["--break", "lie"],
        }
    }
}

/// Reads all of a world, and compares it with what its steps made of it.
pub(crate) fn compare(world: &World, expected: &Model, begun: u64, seed: u64) -> Result<(), Failure> {
    let steps = expected.steps;
    let mut reading = Reading::of(world, begun, seed)?;
    if let Some((thing, error)) = reading.unreadable.first_key_value() {
        return Err(format!("after {steps} steps {thing:?} cannot be read: {error}").into());
    }
    reading.conserved().map_err(|what| format!("after {steps} steps {what}"))?;
    // A name is committed before the step that needs it, so the name of a step that is absent may be there.
    if begun > steps {
        reading.picture.remove(&Thing::Name(steps));
    }
    let expected = expected.picture();
    let differs = |thing: &&Thing| expected.get(thing) != reading.picture.get(thing);
    if let Some(thing) = expected.keys().chain(reading.picture.keys()).find(differs) {
        return Err(format!("after {steps} steps {thing:?} is not what they made it").into());
    }
    Ok(())
}

/// A worker process. Killed when the value is dropped.
pub(crate) struct Worker {
    child: Child,
    messages: Receiver<Message>,
    told: Vec<Message>,
}

impl Worker {
    /// Starts this program again, as a worker.
    pub(crate) fn start(world: &Path, seed: u64, orders: &[&str]) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("worker")
            .arg("--world")
            .arg(world)
            .args(["--seed", &seed.to_string()])
            .args(orders)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdout.take().ok_or("the worker has no output")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            // Ends when the last byte that the worker wrote was read.
            while let Some(message) = Message::receive(&mut pipe) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, messages, told: Vec::new() })
    }

    /// Waits until the worker says so.
    pub(crate) fn wait_for(&mut self, wanted: Message) -> Result<(), Failure> {
        loop {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(message) => {
                    self.told.push(message);
                    if message == wanted {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err("the worker hangs".into()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the worker ended by itself: {}", self.child.wait()?).into());
                }
            }
        }
    }

    /// Kills the worker with SIGKILL and returns everything that it had told.
    pub(crate) fn kill(mut self) -> Result<Vec<Message>, Failure> {
        if let Some(status) = self.child.try_wait()? {
            return Err(format!("the worker ended by itself: {status}").into());
        }
        self.child.kill()?;
        self.child.wait()?;
        let told = std::mem::take(&mut self.told);
        Ok(told.into_iter().chain(self.messages.iter()).collect())
    }

    /// Kills the worker, if it has not ended by itself.
    pub(crate) fn stop(mut self) -> Result<ExitStatus, Failure> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }

    /// Waits until the worker has ended by itself.
    pub(crate) fn wait(mut self) -> Result<ExitStatus, Failure> {
        Ok(self.child.wait()?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
