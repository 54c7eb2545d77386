//! Writing what is queued: by a thread of its own, or by whoever cannot wait for it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::CommitQueue;
use super::run::Numbered;
use crate::commit::commit_log::Committing;
use crate::commit::state::CommitState;
use crate::commit::transaction::{Changes, Rows};
use crate::engine::{Batch, CommitSeq, EngineError, Level};
use crate::rt::pool::lower_priority;
use crate::rt::stats::Counters;
use crate::rt::weak_world::WeakWorld;
use crate::storage::engine_cell::EngineGuard;
use crate::storage::error::Error;

/// The thread that writes; it ends when the world does.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<CommitQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts to write what a world's queue holds.
    pub(crate) fn start(queue: Arc<CommitQueue>, world: WeakWorld<CommitState>) -> io::Result<Self> {
        let work = {
            let queue = Arc::clone(&queue);
            move || {
                lower_priority();
                // Between two commits no visit is under way: a world can be dropped there.
                while queue.wait_for_work() {
                    // What failed was logged, and is told to whoever commits or waits until the world is resumed.
                    if world.with_world(CommitState::write_next).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("cg-store-write".into()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Waits for the thread to end, once the world can no longer be visited.
    pub(crate) fn end(&mut self) {
        self.queue.end();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say: what went wrong in it was logged.
            let _ = thread.join();
        }
    }
}

impl CommitState {
    /// The rows of changes, as the world's options want them.
    pub(crate) fn encode(&self, changes: &Changes) -> Rows {
        changes.encode(self.shared.options.opacity, self.shared.options.deltas.then_some(&self.read.deltas))
    }

    /// Encodes and writes the oldest queued commits; `false` if there are none.
    ///
    /// # Errors
    /// What this write or one before it failed with.
    pub(super) fn write_next(&self) -> Result<bool, Error> {
        self.write_next_up_to(u64::MAX)
    }

    /// As [`write_next`](Self::write_next), of those whose numbers are not greater.
    fn write_next_up_to(&self, seq: u64) -> Result<bool, Error> {
        let _in_order = self.queue.begin_writing();
        // Whoever had the right to write before may have written it.
        if !self.queue.holds_up_to(seq) {
            return Ok(false);
        }
        let mut run = self.queue.take_run(seq)?;
        if run.is_empty() {
            return Ok(false);
        }
        let ran = self.write_run(&mut run);
        self.queue.finish(run, ran)?;
        Ok(true)
    }

    /// Writes the rows of one transaction as the commit of a number, which must be the engine's next: nothing else may
    /// commit meanwhile.
    pub(crate) fn write(&self, rows: Rows, seq: u64) -> Result<(), EngineError> {
        let mut commit = Numbered::of(self, rows, seq);
        let (batch, limit_bytes) = (std::mem::take(&mut commit.batch), self.shared.batch_limit()?);
        if commit.len_bytes > limit_bytes {
            self.write_in_parts(batch, seq, limit_bytes)?;
        } else {
            self.shared.engine()?.commit_run(CommitSeq::new(seq), vec![batch], Level::Process)?;
        }
        commit.was_written(self);
        Ok(())
    }

    /// Writes rows that are too many for one batch. Readers find in the queue what is not in the engine yet.
    fn write_in_parts(&self, rows: Batch, seq: u64, limit_bytes: u64) -> Result<(), EngineError> {
        let engine = self.shared.engine()?;
        let rolled_forward =
            self.shared.slot.apply_latch().write_in_parts(&*engine, rows, seq, limit_bytes)?;
        // Who waits for it reads the counter when the latch is open.
        Counters::add(&self.shared.counters.commits_staged, 1);
        rolled_forward.open();
        Ok(())
    }

    /// Writes everything that was accepted before this call.
    ///
    /// # Errors
    /// What a write failed with; the world is read-only from then on.
    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.drain_to(self.log.published())
    }

    /// Writes everything up to a commit.
    pub(crate) fn drain_to(&self, seq: u64) -> Result<(), Error> {
        // A commit that is rolled forward in parts is reached before all of it is in the rows, so the engine is not asked.
        while self.queue.holds_up_to(seq) {
            self.write_next_up_to(seq)?;
        }
        Ok(())
    }

    /// The engine, once it holds everything that was accepted, for as long as the value is held.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub(crate) fn settled_engine(&self) -> Result<EngineGuard<'_>, Error> {
        self.drain()?;
        Ok(self.shared.engine()?)
    }

    /// The right to commit past the queue, which is empty and stays so meanwhile.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub(crate) fn commit_alone(&self) -> Result<Committing<'_>, Error> {
        // Most of the queue is written before others have to wait for it.
        self.drain()?;
        let committing = self.log.commit();
        self.drain()?;
        self.queue.check()?;
        Ok(committing)
    }
}
