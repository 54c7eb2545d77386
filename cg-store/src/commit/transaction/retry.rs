//! Transactions that run again after a conflict.

use std::thread;
use std::time::Duration;

use super::commit::conflict_now;
use super::{Committed, Transaction};
use crate::commit::state::CommitState;
use crate::storage::durability::Durability;
use crate::storage::error::Error;

/// How often [`CommitState::transact`] runs its closure at most.
const MAX_RUNS: u32 = 100;

/// How long a transaction waits after each of its first conflicts. A writer that commits one transaction after another would
/// overtake it each time if it began again at once: it learns of a conflict when the other has begun again already.
const FIRST_WAIT: Duration = Duration::from_micros(10);

/// How often the wait doubles: to 5 ms.
const DOUBLINGS: u32 = 9;

/// Why a run did not commit.
enum Failed<X> {
    /// The closure returned an error, and what it had read is still current.
    Refused(X),
    /// The world refused it.
    Store(Error),
}

impl<X> From<Error> for Failed<X> {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl CommitState {
    /// See [`World::transact`](crate::World::transact).
    pub(crate) fn transact<T, X: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        let durability = self.shared.options.durability;
        let mut runs = 0;
        loop {
            runs += 1;
            match self.run_once(durability, &mut body) {
                Ok(committed) => return Ok(committed),
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Store(error)) if runs < MAX_RUNS => self.wait_after(error, runs)?,
                Err(Failed::Store(error)) => return Err(error.into()),
            }
        }
    }

    fn run_once<T, X: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, Failed<X>> {
        self.transaction(durability, |tx| {
            body(tx).map_err(|error| match conflict_now(tx) {
                Some(conflict) => Failed::Store(conflict),
                None => Failed::Refused(error),
            })
        })
    }

    /// Waits until a transaction that was refused may run again.
    ///
    /// # Errors
    /// The refusal, if another run does not help; what a queued write failed with.
    fn wait_after(&self, refusal: Error, runs: u32) -> Result<(), Error> {
        match refusal {
            Error::Conflict { .. } => {
                thread::sleep(FIRST_WAIT * 2_u32.pow(runs.min(DOUBLINGS)));
                Ok(())
            }
            Error::Busy { .. } => self.wait_for_room(),
            refusal => Err(refusal),
        }
    }

    /// See [`World::wait_for_room`](crate::World::wait_for_room).
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        self.shared.check_open()?;
        self.apply_submitted()?;
        self.queue.wait_for_room()
    }
}
