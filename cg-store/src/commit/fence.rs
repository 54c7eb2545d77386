//! A world whose rows another writer took: it never writes again, and says of each commit whether it is written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::resume::Resumption;
use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, EngineError};
use crate::storage::error::{Error, NotResumed};

impl CommitState {
    /// The error of waiting for a commit. If another writer has the world, it says whether the commit is written, in
    /// doubt, or not written.
    pub(super) fn fenced(&self, seq: u64, error: Error) -> Error {
        let Error::Engine(error) = error else { return error };
        match error.fence() {
            Some(_) if seq <= self.written_here() => {
                EngineError::SyncFailed { seq: CommitSeq::new(seq), cause: Arc::new(error) }.into()
            }
            Some(why) if seq > self.queue.given_up_to() => EngineError::Fenced { why: why.clone() }.into(),
            Some(_) => EngineError::WriteFailed { cause: Arc::new(error) }.into(),
            None => error.into(),
        }
    }

    /// The newest commit that was reported as written by this world.
    fn written_here(&self) -> u64 {
        match self.written_when_fenced.load(Ordering::Acquire) {
            u64::MAX => self.shared.slot.reached()[0].get(),
            written => written,
        }
    }

    /// Ends the writing of a world for good, because another writer has it. Returns the error.
    pub(super) fn fenced_by(&self, cause: Arc<EngineError>, resumption: &mut Resumption) -> Error {
        let past_queue = resumption.in_doubt.as_ref().map_or(0, |(seq, _)| *seq);
        // The engine may be a reader of what the other writer wrote.
        if let Some(begun) = &resumption.begun {
            self.written_when_fenced.store(begun.promised, Ordering::Release);
        } else if resumption.fenced.is_none() {
            self.written_when_fenced.store(self.shared.slot.reached()[0].get(), Ordering::Release);
        }
        let written = self.written_here();
        let sent = self.queue.given_up_to().max(past_queue).max(written);
        let accepted = self.log.published().max(sent);
        // Waiters for queued commits get this cause from now on.
        self.queue.fail(Arc::clone(&cause));
        // What is held to open the rows again is given to the other writer.
        resumption.begun = None;
        resumption.fenced = Some(Arc::clone(&cause));
        let [written, sent, accepted] = [written, sent, accepted].map(CommitSeq::new);
        NotResumed::Fenced { cause, written, sent, accepted }.into()
    }
}
