//! Writing batches: guards, the numbers of commits, and what follows a write that failed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::Space;
use cg_format::key::Family;
use rocksdb::{FlushOptions, WriteBatch};

use super::super::batch::Op;
use super::super::{Batch, CommitSeq, EngineError, Failure, Guard, SealedRow, check_load};
use super::watch::{Rows, Watch};
use super::{Access, RocksEngine, failure};

/// The newest commit, and the rows written while guards are compared.
#[derive(Debug)]
pub(super) struct Newest {
    pub(super) seq: CommitSeq,
    watch: Watch,
}

impl From<CommitSeq> for Newest {
    fn from(seq: CommitSeq) -> Self {
        Self { seq, watch: Watch::default() }
    }
}

impl RocksEngine {
    pub(super) fn check_writable(&self) -> Result<(), EngineError> {
        self.check_open()?;
        if self.access == Access::ReadOnly {
            return Err(EngineError::OpenedReadOnly);
        }
        match self.failed.get() {
            Some(failure) => Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) }),
            None => Ok(()),
        }
    }

    fn check_guards(&self, guards: &[Guard]) -> Result<(), EngineError> {
        let keys: Vec<_> = guards.iter().map(|guard| (guard.space, &*guard.key)).collect();
        let found = self.get_many_with(&keys, &self.reads, None);
        guards.iter().zip(found).try_for_each(|(guard, stored)| guard.check(stored?.as_deref()))
    }

    /// Writes a batch without guards.
    pub(super) fn commit_plain(&self, batch: Batch) -> Result<CommitSeq, EngineError> {
        let mut newest = self.newest.lock();
        self.check_writable()?;
        let rows = if newest.watch.is_watched() { Rows::of(&batch) } else { Rows::default() };
        let seq = if batch.is_maintenance() { newest.seq } else { newest.seq.next() };
        let sealed = self.seal(batch, seq);
        self.write(&mut newest, seq, sealed, &rows)?;
        Ok(seq)
    }

    /// Compares the guards, and seals the frames of a maintenance batch, before it takes the lock. So other commits
    /// do not wait for that. Under the lock it compares again what was written meanwhile.
    pub(super) fn commit_guarded(&self, batch: Batch, guards: &[Guard]) -> Result<CommitSeq, EngineError> {
        let (since, then) = {
            let mut newest = self.newest.lock();
            self.check_writable()?;
            (newest.watch.begin(), newest.seq)
        };
        let compared = self.check_guards(guards);
        let rows = Rows::of(&batch);
        // A maintenance batch is based on nothing newer than this commit.
        let sealed = if batch.is_maintenance() { Ok(self.seal(batch, then)) } else { Err(batch) };
        let mut newest = self.newest.lock();
        let touched = newest.watch.end(since, guards);
        compared?;
        self.check_writable()?;
        self.check_guards(&touched)?;
        let (seq, sealed) = match sealed {
            Ok(sealed) => (newest.seq, sealed),
            Err(batch) => {
                let seq = newest.seq.next();
                (seq, self.seal(batch, seq))
            }
        };
        self.write(&mut newest, seq, sealed, &rows)?;
        Ok(seq)
    }

    /// Writes rows that are sealed already, before the first commit.
    pub(super) fn load_rows(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        let mut newest = self.newest.lock();
        self.check_writable()?;
        let seq = check_load(&rows, newest.seq, self.max_batch_bytes)?;
        let mut batch = WriteBatch::default();
        for SealedRow { family, key, bytes } in rows {
            batch.put_cf(self.family(family), key, bytes);
        }
        self.write(&mut newest, seq, batch, &Rows::default())
    }

    /// Writes a batch whose guards hold, and records it as the newest.
    fn write(
        &self,
        newest: &mut Newest,
        seq: CommitSeq,
        sealed: WriteBatch,
        rows: &Rows,
    ) -> Result<(), EngineError> {
        let written = self.db.write_opt(sealed, &self.writes);
        // It is unknown whether a failed write is stored. No write follows it.
        newest.watch.note(rows);
        written.map_err(|error| self.fail(self.writing("write the log", error)))?;
        newest.seq = seq;
        self.last_commit.store(seq.get(), Ordering::Release);
        self.batch_count.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The batch for RocksDB with sealed frames. For a commit, the row of the sequence comes last.
    pub(super) fn seal(&self, batch: Batch, seq: CommitSeq) -> WriteBatch {
        // RocksDB stores a few bytes per operation beside its key and value.
        let capacity = batch.len_bytes() as usize + 16 * batch.op_count() + 128;
        let mut sealed = WriteBatch::with_capacity_bytes(capacity);
        self.note_lineage(&batch);
        let family = |space: Space| self.family(space.family());
        batch.drain(seq, |op| match op {
            Op::Put { space, key, draft, version } => {
                let value = draft.seal(space, key, version);
                sealed.put_cf(family(space), key, value);
            }
            Op::Delete { space, key } => sealed.delete_cf(family(space), key),
            Op::DeleteRange { space, from, to } => sealed.delete_range_cf(family(space), from, to),
        });
        sealed
    }

    /// Refuses all later writes. Returns the error of this one.
    pub(super) fn fail(&self, error: EngineError) -> EngineError {
        let no_space = match &error {
            EngineError::NoSpace { message } => Some(message.clone()),
            _ => None,
        };
        let cause = Arc::new(error);
        tracing::error!(error = %cause, dir = %self.dir.display(), "a write failed; no more are taken");
        self.stop(if failure::is_sync(&cause) {
            Failure::Sync(Arc::clone(&cause))
        } else {
            Failure::Write(Arc::clone(&cause))
        });
        match no_space {
            Some(message) => EngineError::NoSpace { message },
            None => EngineError::WriteFailed { cause },
        }
    }

    pub(super) fn flush_families(&self) -> Result<(), EngineError> {
        let families: Vec<_> = Family::ALL.into_iter().map(|family| self.family(family)).collect();
        let flushed = self.db.flush_cfs_opt(&families, &FlushOptions::default());
        flushed.map_err(|error| self.fail(self.writing("flush the families", error)))
    }
}
