//! Acceptance of submitted batches: on the commit thread of the world, or on a thread that needs them accepted.

use std::sync::Arc;

use cg_format::{ChunkAt, Lookup};

use super::queue::Waiting;
use crate::commit::state::CommitState;
use crate::commit::transaction::accept_reserved;
use crate::engine::EngineError;
use crate::read::cache::Stored;
use crate::read::chunk::LoadResult;
use crate::rt::pool::catch_panic;
use crate::rt::reentry::{Doing, ReentryGuard};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

impl CommitState {
    /// Whether a batch waits to be accepted.
    #[inline]
    pub(crate) fn has_submitted(&self) -> bool {
        !self.submitted.is_empty()
    }

    /// Accepts or refuses everything that was submitted before this call.
    ///
    /// # Errors
    /// Why the world takes no commits, if it takes none. The remaining batches stay in the queue.
    #[inline]
    pub(crate) fn apply_submitted(&self) -> Result<(), Error> {
        if self.has_submitted() { self.apply_up_to(self.submitted.last()) } else { Ok(()) }
    }

    /// As `apply_submitted`, for the batches that concern the columns of some chunks.
    ///
    /// # Errors
    /// As `apply_submitted`.
    #[cold]
    pub(crate) fn apply_submitted_for(&self, at: &[ChunkAt]) -> Result<(), Error> {
        self.submitted.last_concerning(at).map_or(Ok(()), |number| self.apply_up_to(number))
    }

    /// Waits until another thread has applied what concerns the columns of some chunks. For threads of low priority,
    /// which must not hold the right to accept. Returns early if the world takes no commits.
    pub(crate) fn await_acceptance(&self, at: &[ChunkAt]) {
        while self.awaits_acceptance(at) && self.queue.check().is_ok() {
            self.submitted.wait_until_one_leaves();
        }
    }

    /// Loads many chunks after the batches that concern their columns are accepted.
    pub(crate) fn stored_many_applied(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        if self.has_submitted() && self.apply_submitted_for(at).is_err() {
            // Only the chunks whose batches still wait get an error.
            let applied = |at: &ChunkAt| {
                self.apply_submitted_for(&[*at])?;
                self.read.stored(*at)
            };
            return at.iter().map(applied).collect();
        }
        self.read.stored_many(at)
    }

    /// As [`stored_many_applied`](Self::stored_many_applied), with the results that a host gets.
    pub(crate) fn load_many(&self, at: &[ChunkAt]) -> Vec<LoadResult> {
        let found = self.stored_many_applied(at);
        found.into_iter().map(|found| Ok(found?.here().map(|stored| stored.chunk))).collect()
    }

    /// Whether a waiting batch concerns the column of one of some chunks.
    #[inline]
    pub(crate) fn awaits_acceptance(&self, at: &[ChunkAt]) -> bool {
        self.has_submitted() && self.submitted.last_concerning(at).is_some()
    }

    /// Accepts or refuses the batches up to a number.
    ///
    /// Does nothing on a thread that is accepting a batch or holds the commit lock, for example in a function of the
    /// host. Such a call sees the world as it was before.
    #[cold]
    pub(super) fn apply_up_to(&self, number: u64) -> Result<(), Error> {
        if ReentryGuard::is_in(Doing::Acceptance, &*self.submitted)
            || ReentryGuard::is_in(Doing::Commit, &self.log)
        {
            return Ok(());
        }
        loop {
            let _in_order = self.submitted.begin_accepting();
            let Some(next) = self.submitted.next_up_to(number) else { return Ok(()) };
            self.accept_next(&next)?;
        }
    }

    /// Accepts or refuses the next batch, unless the queue is overfull. Returns it, if there was one.
    pub(super) fn apply_one(&self) -> Result<Option<Arc<Waiting>>, Error> {
        if self.queue.is_overfull() {
            return Ok(None);
        }
        let _in_order = self.submitted.begin_accepting();
        let Some(next) = self.submitted.next_up_to(u64::MAX) else { return Ok(None) };
        self.accept_next(&next)?;
        Ok(Some(next))
    }

    fn accept_next(&self, next: &Waiting) -> Result<(), Error> {
        // Checked first: while the world takes no commits, preparing one is wasted.
        self.queue.check()?;
        let accepted = {
            let _accepting = ReentryGuard::enter(Doing::Acceptance, &*self.submitted);
            catch_panic("accepting what was submitted", || {
                accept_reserved(self, |tx| next.batch.write_to(tx))
            })
        };
        if let Err(error) = &accepted {
            if keeps_it_waiting(error) && (self.queue.check().is_err() || self.shared.engine().is_err()) {
                return accepted.map(|_| ());
            }
            tracing::error!(%error, "a batch that was submitted is refused, and nothing of it is written");
            Counters::add(&self.shared.counters.submissions_refused, 1);
        }
        self.finish_next(next, accepted);
        Ok(())
    }

    fn finish_next(&self, next: &Waiting, accepted: Result<u64, Error>) {
        self.submitted.leave(accepted);
        self.queue.release(next.reserved_bytes);
    }

    /// Refuses the batches that can no longer be accepted, because the world is closed.
    pub(crate) fn abandon_submitted(&self) {
        let _in_order = self.submitted.begin_accepting();
        while let Some(next) = self.submitted.next_up_to(u64::MAX) {
            tracing::error!(
                "the world is closed before a batch that was submitted could be accepted: it is lost"
            );
            Counters::add(&self.shared.counters.submissions_refused, 1);
            self.finish_next(&next, Err(Error::Closed));
        }
    }

    /// Returns the refusals that were not reported yet.
    pub(crate) fn check_submitted(&self) -> Result<(), Error> {
        self.submitted.take_unreported().map_or(Ok(()), Err)
    }
}

/// Whether the error is that of a world that takes no commits until it is resumed. A function of the host may return it too,
/// of another world.
const fn keeps_it_waiting(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::ReadOnly { .. } | EngineError::NotReopened { .. }))
}
