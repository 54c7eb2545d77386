//! Writes queued commits: on a thread of its own, or on a thread that must wait for the write.

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
    /// Starts to write what the queue of a world holds.
    pub(crate) fn start(queue: Arc<CommitQueue>, world: WeakWorld<CommitState>) -> io::Result<Self> {
        let work = {
            let queue = Arc::clone(&queue);
            move || {
                lower_priority();
                // The thread does not hold the world between two commits, so the world can be dropped then.
                while queue.wait_for_work() {
                    // The failure was logged. Every later commit or wait returns it until the world is resumed.
                    if world.with_world(CommitState::write_next).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("cg-store-write".into()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Waits for the thread to end. Called when the world can no longer be entered.
    pub(crate) fn end(&mut self) {
        self.queue.end();
        if let Some(thread) = self.thread.take() {
            // The result is ignored: the thread has logged its failures.
            let _ = thread.join();
        }
    }
}

impl CommitState {
    /// Encodes changes into rows according to the options of the world.
    pub(crate) fn encode(&self, changes: &Changes) -> Rows {
        changes.encode(self.shared.options.opacity, self.shared.options.deltas.then_some(&self.read.deltas))
    }

    /// Encodes and writes the oldest queued commits. Returns `false` if there are none.
    ///
    /// # Errors
    /// The error of this write, or of an earlier one.
    pub(super) fn write_next(&self) -> Result<bool, Error> {
        self.write_next_up_to(u64::MAX)
    }

    /// As [`write_next`](Self::write_next), for commits up to a number.
    fn write_next_up_to(&self, seq: u64) -> Result<bool, Error> {
        let _in_order = self.queue.begin_writing();
        // The previous holder of the right to write may have written it.
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

    /// Writes the rows of one transaction as a commit. `seq` must be the engine's next number, so no other commit may
    /// run meanwhile.
    pub(crate) fn write(&self, rows: Rows, seq: u64) -> Result<(), EngineError> {
        let mut commit = Numbered::of(self, rows, seq);
        let (batch, limit_bytes) = (std::mem::take(&mut commit.batch), self.shared.batch_limit()?);
        if commit.len_bytes > limit_bytes {
            self.write_in_parts(batch, CommitSeq::new(seq), limit_bytes)?;
        } else {
            self.shared.engine()?.commit_run(CommitSeq::new(seq), vec![batch], Level::Process)?;
        }
        commit.was_written(self);
        Ok(())
    }

    /// Writes rows that are too large for one batch. Readers find in the queue what is not in the engine yet.
    fn write_in_parts(&self, rows: Batch, seq: CommitSeq, limit_bytes: u64) -> Result<(), EngineError> {
        let engine = self.shared.engine()?;
        let rolled_forward =
            self.shared.slot.apply_latch().write_in_parts(&*engine, rows, seq, limit_bytes)?;
        // The counter must be current when the latch opens, because waiting threads read it then.
        Counters::add(&self.shared.counters.commits_staged, 1);
        rolled_forward.open();
        Ok(())
    }

    /// Writes everything that was accepted before this call.
    ///
    /// # Errors
    /// The error of a failed write; the world is read-only from then on.
    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.drain_to(self.log.published())
    }

    /// Writes everything up to a commit.
    pub(crate) fn drain_to(&self, seq: u64) -> Result<(), Error> {
        // The engine reaches the number of a staged commit before all its rows are in place. So the queue is asked
        // instead.
        while self.queue.holds_up_to(seq) {
            self.write_next_up_to(seq)?;
        }
        Ok(())
    }

    /// Returns the engine when it holds everything that was accepted.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub(crate) fn drained_engine(&self) -> Result<EngineGuard<'_>, Error> {
        self.drain()?;
        Ok(self.shared.engine()?)
    }

    /// Returns the right to commit past the queue. The queue is empty, and stays empty while the right is held.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub(crate) fn commit_alone(&self) -> Result<Committing<'_>, Error> {
        let committing = self.hold_commits()?;
        self.queue.check()?;
        Ok(committing)
    }

    /// Keeps other commits out while the queue is empty. A world that takes no commits any more can be read under it.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub(crate) fn hold_commits(&self) -> Result<Committing<'_>, Error> {
        // Writes most of the queue before other commits have to wait for it.
        self.drain()?;
        let committing = self.log.commit();
        self.drain()?;
        Ok(committing)
    }
}
