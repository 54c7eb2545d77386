//! The recordings: what workers did on a mounted file system, with their messages in between.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use super::disks::{System, with_disk};
use super::promise::{Against, Promise};
use crate::disk::{Call, Fault, Mounted, Node, Op, Recording, Tree};
use crate::failure::Failure;
use crate::image::scratch;
use crate::rng::Rng;
use crate::worker::Message;

/// The name of the file that gets the messages.
const TOLD: &str = "told";
/// The name of the file that is a disk.
pub(crate) const DISK: &str = "disk";
/// The name of the world.
pub(crate) const WORLD: &str = "world";
/// Longer than this and a worker hangs.
const HANG: Duration = Duration::from_secs(120);
const NO_SPACE: i32 = 28;

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scene {
    /// Commits of all kinds, by workers that close the world and by one that is killed.
    Commits,
    /// The same beside moves between the tiers.
    Moves,
    /// Checkpoints all the time, and a disk that is full once, after which the world is resumed.
    Copies,
}

/// A recording, and where its messages are.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) scene: Scene,
    pub(crate) seed: u64,
    pub(crate) recording: Recording,
    told: Node,
}

impl Recorded {
    /// Mounts a file system and lets workers work on it.
    pub(crate) fn make(scene: Scene, seed: u64) -> Result<Self, Failure> {
        let dir = scratch()?;
        // Behind the making of the world, which takes less.
        let number = 400 + Rng::new(seed).below(200);
        let fault = Fault { call: Call::Write, number, errno: NO_SPACE, is_kept_secret: false };
        let fault = (scene == Scene::Copies).then_some(fault);
        let mounted = Mounted::mount(Tree::default(), dir.path(), fault)?;
        let worked = scene.work(dir.path(), &dir.path().join(TOLD), seed);
        let recording = mounted.end()?;
        worked?;
        Self::of(scene, seed, recording)
    }

    /// Lets workers work on a real file system, whose disk is recorded.
    pub(crate) fn on_disk(system: System, seed: u64) -> Result<Self, Failure> {
        let dir = scratch()?;
        let scene = Scene::Commits;
        let recording = with_disk(system, dir.path(), |disk, fuse| scene.work(disk, &fuse.join(TOLD), seed))?;
        Self::of(scene, seed, recording)
    }

    fn of(scene: Scene, seed: u64, recording: Recording) -> Result<Self, Failure> {
        let told = recording.ops.iter().find_map(|op| op.made_in_root(OsStr::new(TOLD)));
        Ok(Self { scene, seed, told: told.ok_or("no message was recorded")?, recording })
    }

    /// The operations that told something.
    pub(crate) fn messages(&self) -> Vec<usize> {
        let is_message = |op: &Op| op.changed_file() == Some(self.told);
        let ops = self.recording.ops.iter().enumerate();
        ops.filter(|(_, op)| is_message(op)).map(|(index, _)| index).collect()
    }

    /// The operations of each close of the world, from the first up to the place after the last.
    pub(crate) fn closes(&self) -> Vec<Range<usize>> {
        let (mut told, mut messages) = (Vec::new(), Vec::new());
        for index in self.messages() {
            let Op::Write { bytes, .. } = &self.recording.ops[index] else { continue };
            told.extend(bytes);
            let mut rest = &told[..];
            let all: Vec<_> = std::iter::from_fn(|| Message::receive(&mut rest)).collect();
            messages.extend(all[messages.len()..].iter().map(|message| (index, *message)));
        }
        // A worker that closes says so, and then that it is at its end.
        let closes = messages.windows(3).filter_map(|messages| match messages {
            [(before, _), (closed, Message::Kept { .. }), (_, Message::End)] => Some(before + 1..*closed),
            _ => None,
        });
        closes.collect()
    }

    /// The promise that was made before an operation.
    pub(crate) fn promise(&self, before: usize, against: Against) -> Promise {
        let mut told = Vec::new();
        for op in &self.recording.ops[..before] {
            if let Op::Write { node, bytes, .. } = op
                && *node == self.told
            {
                told.extend(bytes);
            }
        }
        Promise::of(&told, self.seed, None, against)
    }
}

impl Scene {
    /// The word for it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn work(self, dir: &Path, messages: &Path, seed: u64) -> Result<(), Failure> {
        let told = OpenOptions::new().append(true).create(true).open(messages)?;
        let work = |orders: &[&str]| work(dir, messages, &told, seed, orders);
        work(&["--create"])?;
        match self {
            Self::Commits => {
                work(&["--until", "48", "--close"])?;
                work(&["--until", "64", "--flush", "--close"])?;
                work(&["--until", "120", "--settle"])
            }
            Self::Moves => {
                work(&["--until", "64", "--moves", "--demote", "--close"])?;
                work(&["--until", "120", "--moves"])
            }
            Self::Copies => {
                let dir = dir.to_str().ok_or("the directory's name is no text")?;
                work(&["--until", "40", "--copies", dir, "--resume", "--close"])?;
                work(&["--until", "80", "--copies", dir, "--resume"])
            }
        }
    }
}

/// Lets a worker work until it is at its end, and kills it there if it was not told to end by itself.
fn work(dir: &Path, messages: &Path, told: &File, seed: u64, orders: &[&str]) -> Result<(), Failure> {
    let ends = orders.contains(&"--close") || orders.contains(&"--create");
    let mut worker = start(dir, Stdio::from(told.try_clone()?), seed, orders)?;
    let begun = Instant::now();
    loop {
        match worker.try_wait()? {
            Some(status) if status.success() && ends => return Ok(()),
            // The call that fails came while the world was opened or closed: the next worker goes on.
            Some(status) if status.code() == Some(1) && orders.contains(&"--resume") => return Ok(()),
            Some(status) => return Err(format!("worker {}: {status}", orders.join(" ")).into()),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
        let is_over = begun.elapsed() > HANG;
        if is_over || !ends && Message::last(&fs::read(messages)?) == Some(Message::End) {
            worker.kill()?;
            worker.wait()?;
            return if is_over { Err(format!("worker {} hangs", orders.join(" ")).into()) } else { Ok(()) };
        }
    }
}

/// Starts this program again, as a worker on the world of a directory.
pub(crate) fn start(dir: &Path, told: Stdio, seed: u64, orders: &[&str]) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("worker").arg("--world").arg(dir.join(WORLD)).args(["--seed", &seed.to_string()]);
    Ok(command.args(orders).stdin(Stdio::piped()).stdout(told).spawn()?)
}
