//! One sync for all callers that wait: the first caller leads, the others follow.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::super::{CommitSeq, EngineError};

/// The newest synced commit, and whether a sync is running.
///
/// A caller that arrives while a sync runs waits for the next one, because the running sync may have begun before its
/// commit. The first of the waiting callers then syncs for all.
#[derive(Debug, Default)]
pub(super) struct GroupSync {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    synced: CommitSeq,
    leading: bool,
    failed: Option<Arc<EngineError>>,
}

impl GroupSync {
    /// Everything up to this commit is known to be synced.
    pub(super) fn new(synced: CommitSeq) -> Self {
        let state = State { synced, ..State::default() };
        Self { state: Mutex::new(state), done: Condvar::new() }
    }

    /// The newest commit known to be synced.
    pub(super) fn synced(&self) -> CommitSeq {
        self.state.lock().synced
    }

    /// Returns when `seq` is synced. `newest` returns the last commit that a sync which begins now certainly covers.
    ///
    /// # Errors
    /// [`EngineError::SyncFailed`] after any sync has failed. The result of a second sync is not reliable, because
    /// the operating system may have dropped the pages that it could not write.
    pub(super) fn reach(
        &self,
        seq: CommitSeq,
        newest: impl Fn() -> CommitSeq,
        sync: impl Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        loop {
            if state.synced >= seq {
                return Ok(());
            }
            if let Some(cause) = &state.failed {
                return Err(EngineError::SyncFailed { seq, cause: Arc::clone(cause) });
            }
            if state.leading {
                self.done.wait(&mut state);
                continue;
            }
            state.leading = true;
            drop(state);
            // The caller committed `seq` before this call.
            let covered = newest().max(seq);
            let result = sync();
            state = self.state.lock();
            state.leading = false;
            match result {
                Ok(()) => state.synced = state.synced.max(covered),
                Err(error) => state.failed = Some(Arc::new(error)),
            }
            self.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
