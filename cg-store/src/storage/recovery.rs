//! What an engine holds of commits that were too large for one batch when it is opened: finished before anything is read.

#[cfg(feature = "rocks")]
use crate::engine::Readable;
use crate::engine::{Engine, EngineError, Place};
use crate::storage::error::{Error, OpenError};
use crate::storage::staged::Unfinished;

/// Rolls forward what was committed and got stuck, and deletes the parts of what was not committed.
///
/// # Errors
/// [`OpenError::UnfinishedCommit`] if there is something to be rolled forward and the engine is open for reading only;
/// [`OpenError::DamagedCommit`], before which nothing was changed; what the engine says.
pub(crate) fn finish(engine: &dyn Engine) -> Result<(), Error> {
    let unfinished = Unfinished::find(engine).map_err(in_parts)?;
    if engine.caps().read_only {
        return match unfinished.first_commit() {
            Some(commit) => Err(OpenError::UnfinishedCommit { commit }.into()),
            None => Ok(()),
        };
    }
    unfinished.finish(engine).map_err(in_parts)
}

/// Whether a commit counts and is not rolled forward to its end, as far as anybody can tell.
pub(crate) fn is_left(engine: &dyn Engine) -> bool {
    Unfinished::find(engine).map_or(true, |unfinished| unfinished.first_commit().is_some())
}

/// Whether [`finish`] could do its work, before an engine is opened for writing.
///
/// # Errors
/// [`OpenError::DamagedCommit`], and what the engine says.
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
