//! Waiting for a commit after one that is known.

use std::time::{Duration, Instant};

use crate::commit::state::CommitState;
use crate::storage::error::Error;

/// How often a waiter looks whether its world was closed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl CommitState {
    /// Waits until a commit after this one is published, until a moment at most. Returns the newest commit.
    ///
    /// # Errors
    /// [`Error::Closed`] if the world is closed meanwhile.
    pub(crate) fn wait_for_commit(&self, after: u64, until: Option<Instant>) -> Result<u64, Error> {
        loop {
            self.shared.check_open()?;
            let newest = self.log.published();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if newest > after || left == Some(Duration::ZERO) {
                return Ok(newest);
            }
            self.log.wait_after(after, left.unwrap_or(LOOK_EVERY).min(LOOK_EVERY));
        }
    }
}
