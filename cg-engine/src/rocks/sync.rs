//! Syncs of the logs, and the floor that follows them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::{CommitSeq, Engine as _, EngineError, Failure};
use super::floor::{Floor, Promise};
use super::synced::{FileEnd, NewestLog, Synced};
use super::{RocksEngine, failure};

impl RocksEngine {
    /// Returns when a commit is synced.
    pub(super) fn sync_to(&self, seq: CommitSeq) -> Result<(), EngineError> {
        self.sync_and_measure(seq, || self.newest_log_end())
    }

    /// As [`sync_to`](Self::sync_to), for a caller that keeps others from committing.
    pub(super) fn sync_before_close(&self, seq: CommitSeq) -> Result<(), EngineError> {
        self.sync_and_measure(seq, || NewestLog::find(&self.dir).end())
    }

    /// Raises the floor to all that the logs hold, unless it was written just now: no commit followed the last sync.
    pub(super) fn note_idle(&self) -> Result<(), EngineError> {
        let is_idle = |floor: &Mutex<Floor>| floor.try_lock().is_some_and(|floor| floor.is_idle());
        if !self.floor.as_ref().is_some_and(is_idle) {
            return Ok(());
        }
        let end = self.newest_log_end();
        if *self.log_synced.lock() != end {
            self.db.flush_wal(true).map_err(|error| self.fail(self.writing("sync the log", error)))?;
            *self.log_synced.lock() = end;
        }
        self.raise_floor(|_| true);
        Ok(())
    }

    /// Raises the floor to all that the files of a closed engine hold. Nothing writes to them any more.
    pub(super) fn note_closed(&self) {
        if let Some(floor) = &self.floor
            && self.is_sound()
        {
            let end = NewestLog::find(&self.dir).end();
            if self.db.flush_wal(true).is_ok() {
                *self.log_synced.lock() = end;
            }
            // The length that it has now counts when the floor is raised.
            floor.lock().manifest.confirm(&self.dir);
        }
        self.raise_floor(|_| true);
    }

    /// The end of the newest log, at the end of a record.
    fn newest_log_end(&self) -> FileEnd {
        // No commit waits while the directory is listed.
        let log = NewestLog::find(&self.dir);
        let _newest = self.newest.lock();
        log.end()
    }

    /// Syncs up to a commit. `measure` tells how much the newest log holds, where the floor is to be raised.
    fn sync_and_measure(&self, seq: CommitSeq, measure: impl Fn() -> FileEnd) -> Result<(), EngineError> {
        let result = self.syncs.reach(seq, || self.last_commit(), || self.sync_logs(&measure));
        match &result {
            Ok(()) => self.raise_floor(Floor::is_due),
            Err(EngineError::SyncFailed { cause, .. }) => self.stop(Failure::Sync(Arc::clone(cause))),
            Err(_) => {}
        }
        result
    }

    fn sync_logs(&self, measure: impl Fn() -> FileEnd) -> Result<(), EngineError> {
        let is_due =
            self.floor.as_ref().is_some_and(|floor| floor.try_lock().is_some_and(|floor| floor.is_due()));
        let measured = is_due.then(measure);
        // RocksDB does not buffer the log, so there is nothing to flush. The call syncs every log that is not
        // synced yet.
        let result = self.db.flush_wal(true).map_err(|error| failure::of("sync the log", error));
        if let (Ok(()), Some(measured)) = (&result, measured) {
            *self.log_synced.lock() = measured;
        }
        result.inspect_err(|error| {
            tracing::error!(%error, dir = %self.dir.display(), "a sync failed; no more commits are taken");
        })
    }

    /// Raises the floor to what is synced, if that is wanted of it. If another thread holds it, that raises it.
    fn raise_floor(&self, is_wanted: impl Fn(&Floor) -> bool) {
        let floor = self.floor.as_ref().and_then(Mutex::try_lock);
        let Some(mut floor) = floor.filter(|floor| is_wanted(floor)) else { return };
        let manifest =
            if self.is_sound() { floor.manifest.confirm(&self.dir) } else { floor.manifest.synced() };
        let log = *self.log_synced.lock();
        let seq = self.syncs.synced();
        floor.raise(Promise { seq, lineage: self.word_of(seq), synced: Synced { log, manifest } });
    }
}
