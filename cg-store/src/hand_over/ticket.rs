//! What became of a batch.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Engine;
use crate::error::Error;
use crate::handle::Visitor;
use crate::transaction::Committed;

/// What became of a batch, as far as it is known.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Its place in the order of hand-overs.
    number: u64,
    /// Absent while it waits.
    settled: Mutex<Option<Settled>>,
}

#[derive(Debug)]
enum Settled {
    /// As this commit.
    Accepted(u64),
    /// Why it was refused; gone when somebody was told.
    Refused(Option<Error>),
}

impl Outcome {
    pub(super) fn of(number: u64) -> Self {
        Self { number, settled: Mutex::default() }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn settle(&self, accepted: Result<u64, Error>) {
        *self.settled.lock() = Some(match accepted {
            Ok(seq) => Settled::Accepted(seq),
            Err(error) => Settled::Refused(Some(error)),
        });
    }

    pub(super) fn take_refusal(&self) -> Option<Error> {
        match &mut *self.settled.lock() {
            Some(Settled::Refused(error)) => error.take(),
            Some(Settled::Accepted(_)) | None => None,
        }
    }

    fn accepted(&self) -> Option<u64> {
        match &*self.settled.lock() {
            Some(Settled::Accepted(seq)) => Some(*seq),
            Some(Settled::Refused(_)) | None => None,
        }
    }

    fn is_settled(&self) -> bool {
        self.settled.lock().is_some()
    }
}

/// A batch that was handed over: tells what became of it. Keeps no world open, and may be dropped.
pub struct HandedOver<E: Engine> {
    world: Visitor<E>,
    outcome: Arc<Outcome>,
}

impl<E: Engine> HandedOver<E> {
    pub(super) fn waiting(world: Visitor<E>, outcome: Arc<Outcome>) -> Self {
        Self { world, outcome }
    }

    pub(super) fn accepted(world: Visitor<E>, seq: u64) -> Self {
        let outcome = Outcome::of(0);
        outcome.settle(Ok(seq));
        Self { world, outcome: Arc::new(outcome) }
    }

    /// Whether it was accepted or refused, so that [`wait`](Self::wait) would not wait. Never blocks.
    pub fn is_settled(&self) -> bool {
        self.outcome.is_settled()
    }

    /// Waits until it is accepted, as everything is that was handed over before, and gives the commit that it became; its
    /// ticket tells when it is durable.
    ///
    /// # Errors
    /// What a [transaction](crate::World::transaction) of these writes would be refused for: nothing of it was written.
    /// [`Error::Closed`] if the world was closed before it could be accepted. Why the world takes no commits, if it does
    /// not: the batch waits, and is accepted when the world is [resumed](crate::World::resume).
    pub fn wait(self) -> Result<Committed<(), E>, Error> {
        if !self.outcome.is_settled() {
            match self.world.visit(|world| world.settle_up_to(self.outcome.number)) {
                Ok(settled) => settled?,
                // It may have been settled since the first look.
                Err(_) if self.outcome.is_settled() => {}
                Err(_) => return Err(Error::Closed),
            }
        }
        match self.outcome.accepted() {
            Some(seq) => Ok(Committed::new(self.world, (), seq)),
            None => Err(self.outcome.take_refusal().unwrap_or(Error::Closed)),
        }
    }
}

impl<E: Engine> fmt::Debug for HandedOver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedOver").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
