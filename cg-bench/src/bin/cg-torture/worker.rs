//! The process that is killed: takes steps, and tells its parent before and after each.
//!
//! Every message is 17 bytes: a letter, a step and a commit. One that was cut off by the kill was not told.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_store::{CheckpointFiles, Durability, World};

use crate::failure::Failure;
use crate::mover::Mover;
use crate::step::Step;
use crate::subject::{self, Break};

const MESSAGE_BYTES: usize = 17;
const STEPS_PER_COPY: u64 = 8;
/// Longer than the time after which the floor is raised again.
const SETTLE: Duration = Duration::from_millis(1100);

/// What a worker is told.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Orders {
    /// The world.
    #[arg(long)]
    pub(crate) world: PathBuf,
    /// What the steps are made from.
    #[arg(long)]
    pub(crate) seed: u64,
    /// Make the world, and do nothing else.
    #[arg(long)]
    pub(crate) create: bool,
    /// Stop before this step.
    #[arg(long)]
    pub(crate) until: Option<u64>,
    /// Close the world at the end, instead of waiting to be killed.
    #[arg(long)]
    pub(crate) close: bool,
    /// Wait before the second last step, so that it raises the floor.
    #[arg(long)]
    pub(crate) settle: bool,
    /// Move chunks between tiers beside the steps.
    #[arg(long)]
    pub(crate) moves: bool,
    /// Commit every step at this level, instead of its own.
    #[arg(long = "as")]
    pub(crate) level: Option<Level>,
    /// Make a checkpoint in this directory after every eighth step.
    #[arg(long)]
    pub(crate) copies: Option<PathBuf>,
    /// Resume the world when a step fails, and go on.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Flush after the steps.
    #[arg(long)]
    pub(crate) flush: bool,
    /// Move every chunk to its coldest tier after the steps.
    #[arg(long)]
    pub(crate) demote: bool,
    /// Delete a chunk with each step from this one on.
    #[arg(long)]
    pub(crate) prune_from: Option<u64>,
    /// How it is broken.
    #[arg(long = "break")]
    pub(crate) broken: Option<Break>,
}

/// A level of durability, as it is written in orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Level {
    Safe,
    Process,
    Balanced,
    Fast,
}

impl Level {
    /// The level itself.
    pub(crate) const fn durability(self) -> Durability {
        match self {
            Self::Safe => Durability::Safe,
            Self::Process => Durability::Process,
            Self::Balanced => Durability::Balanced,
            Self::Fast => Durability::Fast,
        }
    }
}

/// A message of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// The world is open.
    Ready,
    /// A step begins.
    Intent { step: u64 },
    /// A step was committed.
    Done { step: u64, commit: u64 },
    /// All steps before this one survive a power cut.
    Kept { step: u64 },
    /// The checkpoint of this number holds the steps before this one.
    Copied { step: u64, number: u64 },
    /// All steps were taken, and the world is closed if it was to be.
    End,
}

/// Works until the orders end, the parent is gone, or it is killed.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    if orders.create {
        subject::create(&orders.world, orders.seed)?;
        return tell(Message::Ready);
    }
    let world = World::builder().options(&subject::options()).open(&orders.world)?;
    tell(Message::Ready)?;
    let mover = orders.moves.then(|| Mover::start(&world));
    let mut index = subject::steps_taken(&world)?;
    let until = orders.until.unwrap_or(u64::MAX);
    while index < until {
        if orders.settle && Some(index + 2) == orders.until {
            wait_for_idle_floor(&orders.world)?;
        }
        let step = orders.step(index);
        tell(Message::Intent { step: index })?;
        if orders.broken == Some(Break::Lie) {
            tell(Message::Done { step: index, commit: 0 })?;
        }
        match subject::take(&world, &step, orders.broken) {
            Ok(_) if orders.broken == Some(Break::Lie) => {}
            Ok(commit) => tell(Message::Done { step: index, commit })?,
            Err(failed) if orders.resume => {
                eprintln!("step {index}: {failed}; resumed");
                resume(&world)?;
                // It is stored or not.
                index = subject::steps_taken(&world)?;
                tell(Message::Kept { step: index })?;
                continue;
            }
            Err(failed) => return Err(failed),
        }
        index += 1;
        if let Some(copies) = orders.copies.as_ref().filter(|_| index.is_multiple_of(STEPS_PER_COPY)) {
            let number = index / STEPS_PER_COPY;
            match world.checkpoint(copies.join(copy_name(number)), CheckpointFiles::Linked) {
                Ok(()) => tell(Message::Copied { step: index, number })?,
                Err(failed) if orders.resume => {
                    eprintln!("checkpoint {number}: {failed}; resumed");
                    resume(&world)?;
                    tell(Message::Kept { step: index })?;
                }
                Err(failed) => return Err(failed.into()),
            }
        }
    }
    if orders.flush {
        world.flush()?;
        tell(Message::Kept { step: index })?;
    }
    if orders.demote {
        world.tiers().demote_all(1000, |_| {})?;
        tell(Message::Kept { step: index })?;
    }
    if orders.close {
        drop(mover);
        world.close()?;
        tell(Message::Kept { step: index })?;
        return tell(Message::End);
    }
    tell(Message::End)?;
    // The parent holds the other end as long as it lives.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Waits until the floor was not raised for so long that the next synced step raises it. Until then the world may raise it to
/// the steps before, at a moment of its own.
fn wait_for_idle_floor(world: &Path) -> Result<(), Failure> {
    let floor = world.join("db").join("DURABLE");
    loop {
        let idle = floor.metadata()?.modified()?.elapsed().unwrap_or_default();
        if idle >= SETTLE {
            return Ok(());
        }
        std::thread::sleep(SETTLE.saturating_sub(idle));
    }
}

/// Resumes a world. What failed once may fail again: one call fails, and it may be one of these.
fn resume(world: &World) -> Result<(), Failure> {
    Ok(world.resume().or_else(|_| world.resume())?)
}

/// The directory of a checkpoint.
pub(crate) fn copy_name(number: u64) -> String {
    format!("copy{number}")
}

impl Orders {
    fn step(&self, index: u64) -> Step {
        let step = Step::pruning(self.seed, index, self.prune_from);
        Step { durability: self.level.map_or(step.durability, Level::durability), ..step }
    }
}

impl Message {
    /// The next message; `None` at the end, also in the middle of one.
    pub(crate) fn receive(from: &mut impl Read) -> Option<Self> {
        let mut bytes = [0; MESSAGE_BYTES];
        from.read_exact(&mut bytes).ok()?;
        let [letter, numbers @ ..] = bytes;
        let (step, commit) = numbers.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        let (step, commit) = (number(step)?, number(commit)?);
        match letter {
            b'R' => Some(Self::Ready),
            b'I' => Some(Self::Intent { step }),
            b'D' => Some(Self::Done { step, commit }),
            b'K' => Some(Self::Kept { step }),
            b'C' => Some(Self::Copied { step, number: commit }),
            b'E' => Some(Self::End),
            _ => None,
        }
    }

    /// The last message of all that were told.
    pub(crate) fn last(told: &[u8]) -> Option<Self> {
        Self::receive(&mut told.get(told.len().checked_sub(MESSAGE_BYTES)?..)?)
    }

    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (letter, step, commit) = match self {
            Self::Ready => (b'R', 0, 0),
            Self::Intent { step } => (b'I', step, 0),
            Self::Done { step, commit } => (b'D', step, commit),
            Self::Kept { step } => (b'K', step, 0),
            Self::Copied { step, number } => (b'C', step, number),
            Self::End => (b'E', 0, 0),
        };
        let mut bytes = [letter; MESSAGE_BYTES];
        bytes[1..9].copy_from_slice(&step.to_le_bytes());
        bytes[9..].copy_from_slice(&commit.to_le_bytes());
        bytes
    }
}

fn tell(message: Message) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(&message.encode())?;
    // A line buffer would hold it back: what is not in the pipe when the process dies was never told.
    Ok(out.flush()?)
}
