//! The process that is killed: takes steps, and tells its parent before and after each.
//!
//! Every message is 17 bytes: a letter, a step and a commit. One that was cut off by the kill was not told.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use cg_store::World;

use crate::failure::Failure;
use crate::mover::Mover;
use crate::step::Step;
use crate::subject::{self, Break};

const MESSAGE_BYTES: usize = 17;
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
    /// How it is broken.
    #[arg(long = "break")]
    pub(crate) broken: Option<Break>,
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
    /// All steps were taken, and the world is closed if it was to be.
    End,
}

/// Works until the orders end, the parent is gone, or it is killed.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    if orders.create {
        return subject::create(&orders.world, orders.seed);
    }
    let world = World::builder().options(&subject::options()).open(&orders.world)?;
    tell(Message::Ready)?;
    let mover = orders.moves.then(|| Mover::start(&world));
    let from = subject::steps_taken(&world)?;
    for index in from..orders.until.unwrap_or(u64::MAX) {
        if orders.settle && Some(index + 2) == orders.until {
            std::thread::sleep(SETTLE);
        }
        let step = Step::new(orders.seed, index);
        tell(Message::Intent { step: index })?;
        if orders.broken == Some(Break::Lie) {
            tell(Message::Done { step: index, commit: 0 })?;
            subject::take(&world, &step, orders.broken)?;
        } else {
            let commit = subject::take(&world, &step, orders.broken)?;
            tell(Message::Done { step: index, commit })?;
        }
    }
    if orders.close {
        drop(mover);
        world.close()?;
        return tell(Message::End);
    }
    tell(Message::End)?;
    // The parent holds the other end as long as it lives.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
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
            b'E' => Some(Self::End),
            _ => None,
        }
    }

    fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (letter, step, commit) = match self {
            Self::Ready => (b'R', 0, 0),
            Self::Intent { step } => (b'I', step, 0),
            Self::Done { step, commit } => (b'D', step, commit),
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
