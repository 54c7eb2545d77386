//! A store as the host of a restore queue.

use std::sync::Arc;

use cg_format::ChunkAt;
use cg_registry::UpgradeFunctions;
use cg_snapshot::{BlockChange, Host, RestoreError, StepWork, Stepped};
use cg_store::Error;

use super::target::{Stopped, Target};
use super::tickets::Tickets;

/// The maximum number of attempts for a step in one tick. Another writer rarely changes the same chunk twice within a
/// step.
const ATTEMPTS: usize = 3;

/// A game that reacts to the changes of a restore. The defaults do nothing.
pub trait Observer {
    /// A restore changed a block and committed the change.
    fn changed(&mut self, _: BlockChange) {}

    /// A restore changed a chunk, and its operation requests new light. Compute the chunk's light again.
    fn relight(&mut self, _: ChunkAt) {}
}

/// For games that send the whole area again after a restore.
impl Observer for () {}

/// A [`World`](cg_store::World), [`Overlay`](crate::Overlay) or [`SegmentedWorld`](crate::SegmentedWorld) as the [`Host`]
/// of a [`RestoreQueue`](cg_snapshot::RestoreQueue).
///
/// Each step is one transaction. A step that conflicts with another commit runs again on the new state, at most three
/// times in a tick. After that, and while the store returns [`Error::Busy`], it waits for the next tick. Any other
/// error ends the operation. Its text is that of the operation's [`Outcome::Failed`](cg_snapshot::Outcome::Failed).
#[derive(Debug)]
pub struct StoreHost<'t, T, O = ()> {
    target: &'t T,
    /// The game.
    pub observer: O,
    tickets: Tickets,
}

impl<'t, T: Target, O: Observer> StoreHost<'t, T, O> {
    /// Creates a host without tickets.
    pub fn new(target: &'t T, observer: O) -> Self {
        Self { target, observer, tickets: Tickets::default() }
    }

    /// The number of chunks for which the queue holds tickets; 0 if no operation is running.
    pub fn ticket_count(&self) -> usize {
        self.tickets.len()
    }
}

impl<T: Target, O: Observer> Host for StoreHost<'_, T, O> {
    type Error = Error;

    fn step(&mut self, at: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<Stepped, RestoreError<Error>> {
        for _ in 0..ATTEMPTS {
            match self.target.transact(at, work) {
                Ok(()) => return Ok(Stepped::Done),
                Err(Stopped::Work(error)) => return Err(*error),
                Err(Stopped::Store(Error::Conflict { .. })) => {}
                Err(Stopped::Store(Error::Busy { .. })) => return Ok(Stepped::Later),
                Err(Stopped::Store(error)) => return Err(RestoreError::Target { at, error }),
            }
        }
        Ok(Stepped::Later)
    }

    fn take_ticket(&mut self, at: ChunkAt) {
        self.tickets.take(at);
    }

    fn release_ticket(&mut self, at: ChunkAt) {
        self.tickets.release(at);
    }

    fn is_ready(&mut self, at: ChunkAt) -> bool {
        self.tickets.is_ready(at, self.target)
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.target.upgrades()
    }

    fn changed(&mut self, change: BlockChange) {
        self.observer.changed(change);
    }

    fn relight(&mut self, at: ChunkAt) -> Result<(), Error> {
        self.observer.relight(at);
        Ok(())
    }
}
