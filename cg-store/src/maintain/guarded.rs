//! Commits of maintenance, which change no content and give way to other commits.

use crate::engine::{Batch, Engine, EngineError, Guard, Level};
use crate::storage::error::Error;

/// Commits a batch, unless a commit has changed a guarded row. Returns whether it was committed.
pub(crate) fn commit_guarded(engine: &dyn Engine, batch: Batch, guards: &[Guard]) -> Result<bool, Error> {
    match engine.commit(batch.maintenance(), guards, Level::Process) {
        Ok(_) => Ok(true),
        Err(EngineError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
