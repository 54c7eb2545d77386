//! The promise that a worker's messages make about its world.

use crate::step::Step;
use crate::worker::{Level, Message};
use cg_store::Durability;

/// What must be there, and what may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The world was made.
    pub(crate) is_made: bool,
    /// The steps that must be there, from the first on.
    pub(crate) least: u64,
    /// The steps that may be there.
    pub(crate) most: u64,
    /// The newest commit that was promised.
    pub(crate) newest: u64,
    /// The step from which on each deletes a chunk.
    pub(crate) pruned_from: Option<u64>,
    /// Checkpoints by number, and the steps in them.
    pub(crate) copies: Vec<(u64, u64)>,
}

/// The event that a promise must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Against {
    /// The end of the process.
    Kill,
    /// A power cut.
    PowerCut,
    /// A power cut of a disk that ignores syncs: a control.
    PowerCutOfBadDisk,
    /// A power cut, with commits at `Process` taken for ones at `Safe`: a control.
    PowerCutMistaken,
}

impl Promise {
    /// The promise of all messages in the bytes. `level` is that of every step, if it is not each step's own.
    pub(crate) fn of(mut told: &[u8], seed: u64, level: Option<Level>, against: Against) -> Self {
        let mut promise = Self::default();
        let is_promised = |step| {
            let own = Step::new(seed, step).durability;
            match level.map_or(own, Level::durability) {
                Durability::Safe => true,
                Durability::Process => matches!(against, Against::Kill | Against::PowerCutMistaken),
                _ => false,
            }
        };
        while let Some(message) = Message::receive(&mut told) {
            match message {
                Message::Ready => promise.is_made = true,
                Message::Intent { step } => promise.most = promise.most.max(step + 1),
                Message::Done { step, commit } if is_promised(step) => promise.keeps(step + 1, commit),
                Message::Done { .. } | Message::End => {}
                Message::Kept { step } => promise.keeps(step, 0),
                Message::Copied { step, number } => promise.copies.push((number, step)),
            }
        }
        promise
    }

    fn keeps(&mut self, steps: u64, commit: u64) {
        self.least = self.least.max(steps);
        self.newest = self.newest.max(commit);
    }
}
