//! A world that begins or ends to log which values change.

use crate::commit::state::CommitState;
use crate::engine::Batch;
use crate::storage::change_log;
use crate::storage::error::Error;

impl CommitState {
    /// Logs the changes of all later commits, unless the world does already.
    ///
    /// # Errors
    /// If the queue cannot be written, or the engine fails.
    pub(crate) fn keep_change_log(&self) -> Result<(), Error> {
        if self.shared.change_log.is_kept() {
            return Ok(());
        }
        self.change_log_to(|batch, next| {
            change_log::begin_at(batch, next);
            Some(next)
        })
    }

    /// Logs no changes any more, and deletes the log.
    ///
    /// # Errors
    /// As [`keep_change_log`](Self::keep_change_log).
    pub(crate) fn drop_change_log(&self) -> Result<(), Error> {
        if !self.shared.change_log.is_kept() {
            return Ok(());
        }
        self.change_log_to(|batch, _| {
            change_log::delete(batch);
            None
        })
    }

    fn change_log_to(&self, change: impl FnOnce(&mut Batch, u64) -> Option<u64>) -> Result<(), Error> {
        let mut committing = self.commit_alone()?;
        let mut batch = Batch::new();
        let next = self.shared.engine()?.last_commit().next().get();
        let beginning = change(&mut batch, next);
        let seq = self.commit_past_queue(batch, [])?;
        self.shared.change_log.set(beginning);
        committing.publish(seq, []);
        Ok(())
    }
}
