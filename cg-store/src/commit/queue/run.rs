//! A run: queued commits that the engine gets in one call.

use cg_format::ChunkAt;

use super::Queued;
use crate::commit::observers::PutRows;
use crate::commit::state::CommitState;
use crate::commit::transaction::Rows;
use crate::engine::{Batch, CommitSeq, EngineError, Level};
use crate::rt::pool::caught;
use crate::rt::stats::Counters;

/// The maximum number of commits in a run.
pub(super) const MAX_COMMITS: usize = 64;
/// A run that holds more memory than this gets no further commit.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// The outcome of a run.
#[derive(Debug)]
pub(super) struct Ran {
    /// The number of commits that the engine was given, counted from the first.
    pub(super) given: usize,
    /// The number of those that are in the engine.
    pub(super) written: usize,
    /// Why the next commit was not written.
    pub(super) ended: Result<(), EngineError>,
}

/// The batch of a commit, and what is recorded when it is in the engine.
pub(super) struct Numbered {
    seq: u64,
    pub(super) batch: Batch,
    pub(super) len_bytes: u64,
    row_count: u64,
    /// The chunks that are saved or deleted as a whole.
    whole: Vec<ChunkAt>,
    put: PutRows,
}

impl Numbered {
    /// Encodes the rows of a commit with its number.
    pub(super) fn of(world: &CommitState, rows: Rows, seq: u64) -> Self {
        let (batch, whole) = rows.numbered(seq, &world.read.deltas, &world.shared.counters);
        Self {
            seq,
            len_bytes: batch.len_bytes(),
            row_count: batch.op_count() as u64,
            whole,
            put: PutRows::of(&batch),
            batch,
        }
    }

    /// Reports that the commit is in the engine: rows of chunks, their deltas and the patches of opacity tiles.
    pub(super) fn was_written(self, world: &CommitState) {
        world.tell_written(self.seq, self.put, self.whole);
        Counters::add(&world.shared.counters.rows_written, self.row_count);
        Counters::add(&world.shared.counters.bytes_written, self.len_bytes);
    }
}

impl CommitState {
    /// Encodes queued commits, and writes as many of them as one call of the engine takes.
    pub(super) fn write_run(&self, run: &mut [Queued]) -> Ran {
        let limit_bytes = match self.shared.batch_limit() {
            Ok(limit_bytes) => limit_bytes,
            Err(error) => return Ran { given: 0, written: 0, ended: Err(error) },
        };
        let mut given = Vec::with_capacity(run.len());
        for commit in run {
            // A panic here would lose commits that were taken out of the queue: no thread would write them, and readers
            // would wait for ever.
            match caught(|| self.number(commit, limit_bytes)) {
                Ok(Some(numbered)) => given.push(numbered),
                Ok(None) if given.is_empty() => return self.write_alone(commit),
                Err(message) if given.is_empty() => {
                    return Ran { given: 1, written: 0, ended: panicked(message) };
                }
                // The next run begins with this commit.
                Ok(None) | Err(_) => break,
            }
        }
        self.give(given)
    }

    /// Encodes a queued commit. Returns `None` if it may take more than one batch.
    fn number(&self, commit: &mut Queued, limit_bytes: u64) -> Option<Numbered> {
        let rows = commit.rows.take().unwrap_or_else(|| self.encode(&commit.changes));
        if rows.max_len_bytes() > limit_bytes {
            commit.rows = Some(rows);
            return None;
        }
        Some(Numbered::of(self, rows, commit.seq))
    }

    /// Writes a commit that may take more than one batch.
    fn write_alone(&self, commit: &mut Queued) -> Ran {
        let rows = commit.rows.take();
        let write = || self.write(rows.unwrap_or_else(|| self.encode(&commit.changes)), commit.seq);
        let ended = caught(write).unwrap_or_else(panicked);
        Ran { given: 1, written: usize::from(ended.is_ok()), ended }
    }

    /// Writes consecutive commits with one call of the engine.
    fn give(&self, mut run: Vec<Numbered>) -> Ran {
        let given = run.len();
        let Some(first) = run.first().map(|commit| CommitSeq::new(commit.seq)) else {
            return Ran { given, written: 0, ended: Ok(()) };
        };
        let batches = run.iter_mut().map(|commit| std::mem::take(&mut commit.batch)).collect();
        let engine = match self.shared.engine() {
            Ok(engine) => engine,
            Err(error) => return Ran { given, written: 0, ended: Err(error) },
        };
        let commit = || engine.commit_run(first, batches, Level::Process).map(drop);
        let ended = caught(commit).unwrap_or_else(panicked);
        let last = match &ended {
            Ok(()) => u64::MAX,
            // The engine's numbers are those of another writer.
            Err(EngineError::Fenced { .. }) => 0,
            Err(_) => engine.last_commit().get(),
        };
        drop(engine);
        run.retain(|commit| commit.seq <= last);
        let written = run.len();
        for commit in run {
            commit.was_written(self);
        }
        Ran { given, written, ended }
    }
}

fn panicked(message: String) -> Result<(), EngineError> {
    Err(EngineError::Panicked { operation: "writing a queued commit", message })
}
