//! Recovery of staged commits when an engine is opened. It is finished before anything is read.

use crate::engine::{CommitSeq, Engine, EngineError, Place, Readable};
use crate::storage::error::{Error, OpenError};
use crate::storage::staged::Unfinished;

/// Rolls forward staged commits after their commit point, and deletes the parts of those before it. Returns whether
/// there was a commit to roll forward.
///
/// # Errors
/// [`OpenError::UnfinishedCommit`] if there is a commit to roll forward and the engine is read-only;
/// [`OpenError::DamagedCommit`], before which nothing was changed; the errors of the engine.
pub fn finish(engine: &dyn Engine) -> Result<bool, Error> {
    let unfinished = Unfinished::find(engine).map_err(in_parts)?;
    if engine.caps().read_only {
        return match unfinished.first_commit() {
            Some(commit) => Err(OpenError::UnfinishedCommit { commit: CommitSeq::new(commit) }.into()),
            None => Ok(false),
        };
    }
    unfinished.finish(engine).map_err(in_parts)?;
    Ok(unfinished.first_commit().is_some())
}

/// Whether a staged commit is committed and not completely rolled forward.
///
/// # Errors
/// If that cannot be read.
pub(crate) fn is_left(view: &dyn Readable) -> Result<bool, Error> {
    Ok(Unfinished::find(view).map_err(in_parts)?.first_commit().is_some())
}

/// Checks whether [`finish`] would succeed, before an engine is opened for writing.
///
/// # Errors
/// [`OpenError::DamagedCommit`], and the errors of the engine.
#[cfg(feature = "rocks")]
pub(crate) fn check(view: &dyn Readable) -> Result<(), Error> {
    Unfinished::find(view).map(drop).map_err(in_parts)
}

fn in_parts(error: EngineError) -> Error {
    match error {
        EngineError::Corrupt { place: Place::Row { family, key }, message } => {
            OpenError::DamagedCommit { family, key, what: message }.into()
        }
        error => error.into(),
    }
}
