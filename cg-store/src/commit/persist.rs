//! Persisting accepted commits: writing the queue, in order, and syncing.

use std::sync::Arc;

use crate::commit::commit_log::Committing;
use crate::commit::group_commit::GroupMember;
use crate::commit::state::CommitState;
use crate::engine::{EngineError, Level};
use crate::storage::durability::Durability;
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::Error;

impl CommitState {
    /// Waits until a commit survives the event of a level. Before a sync it waits a moment for the members of `group`.
    ///
    /// # Errors
    /// The error of a failed write or sync; the world is read-only from then on.
    pub(crate) fn persist(
        &self,
        seq: u64,
        level: Level,
        group: Option<GroupMember<'_>>,
    ) -> Result<(), Error> {
        // The engine reaches the number of a staged commit before all its rows are in place. So the queue is asked
        // instead.
        while self.queue.holds_up_to(seq) {
            self.write_next(seq)?;
        }
        if level == Level::Power && self.shared.slot.reached()[1].get() < seq {
            if let Some(group) = group {
                group.wait(Durability::GROUP_COMMIT_WAIT);
            }
            self.shared.engine()?.sync()?;
        }
        Ok(())
    }

    /// Encodes and writes the oldest queued commits up to a number, if there are any.
    ///
    /// # Errors
    /// The error of this write, or of an earlier one.
    pub(super) fn write_next(&self, up_to: u64) -> Result<(), Error> {
        let _in_order = self.queue.begin_writing();
        // The previous holder of the right to write may have written it.
        if !self.queue.holds_up_to(up_to) {
            return Ok(());
        }
        let mut run = self.queue.take_run(up_to)?;
        let ran = self.write_run(&mut run);
        self.queue.finish(run, ran)
    }

    /// Writes everything that was accepted before this call.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.persist(self.log.published(), Level::Process, None)
    }

    /// Returns the engine when it holds everything that was accepted.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn drained_engine(&self) -> Result<EngineGuard<'_>, Error> {
        self.drain()?;
        Ok(self.shared.engine()?)
    }

    /// Returns the right to commit past the queue. The queue is empty, and stays empty while the right is held.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn commit_alone(&self) -> Result<Committing<'_>, Error> {
        let committing = self.hold_commits()?;
        self.queue.check()?;
        Ok(committing)
    }

    /// Keeps other commits out while the queue is empty. A world that takes no commits any more can be read under it.
    ///
    /// # Errors
    /// As [`persist`](Self::persist).
    pub(crate) fn hold_commits(&self) -> Result<Committing<'_>, Error> {
        // Writes most of the queue before other commits have to wait for it.
        self.drain()?;
        let committing = self.log.commit();
        self.drain()?;
        Ok(committing)
    }
}

/// Converts an error of a commit that was accepted before. The result never states that nothing was written.
pub(super) fn in_doubt(error: Error) -> Error {
    match error {
        Error::Engine(EngineError::ReadOnly { cause }) => EngineError::WriteFailed { cause }.into(),
        // The engine could not be opened again, or another writer appeared, while the commit was being written.
        Error::Engine(error @ (EngineError::NotReopened { .. } | EngineError::Fenced { .. })) => {
            EngineError::WriteFailed { cause: Arc::new(error) }.into()
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_is_never_said_to_have_left_nothing() {
        let cause = Arc::new(EngineError::OpenedReadOnly);
        let not_reopened = EngineError::NotReopened { cause: Arc::clone(&cause) };
        for error in [EngineError::ReadOnly { cause }, not_reopened] {
            assert!(error.wrote_nothing(), "{error}");
            let Error::Engine(told) = in_doubt(error.into()) else { panic!("it is the engine's") };
            assert!(matches!(told, EngineError::WriteFailed { .. }), "{told}");
        }
    }
}
