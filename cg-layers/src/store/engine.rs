//! The engine of a store of overlays: its commits, one after the other, and the openings that made them.

use std::fmt;
use std::sync::Arc;

use cg_format::lineage::{HistoryPoint, Lineage};
use cg_format::{Space, overlay::Origin};
use cg_store::Error;
use cg_store::engine::{Batch, CommitSeq, Engine, EngineError, Level, Readable as _, Snapshot, Value};
use cg_store::layer::{ApplyLatch, Applying, Mutex, rank, with_history};

/// An engine with the rows of overlays.
pub(crate) struct RowEngine {
    engine: Box<dyn Engine>,
    /// The openings that made its commits.
    lineage: Arc<Lineage>,
    /// The level of commits that hosts make.
    level: Level,
    /// Held while a commit has a number and is not written yet.
    numbering: Mutex<(), rank::OverlayNumbering>,
    apply_latch: ApplyLatch,
}

impl RowEngine {
    /// Begins an opening of an engine.
    ///
    /// # Errors
    /// As [`with_history`].
    pub(crate) fn open(engine: Box<dyn Engine>, level: Level) -> Result<Self, Error> {
        let (engine, lineage) = with_history(engine)?;
        Ok(Self { engine, lineage, level, numbering: Mutex::default(), apply_latch: ApplyLatch::default() })
    }

    /// The engine, to read single rows while no commit is half applied, or where that does not matter.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// The opening that made a commit.
    pub(crate) fn opening_of(&self, version: u64) -> u64 {
        self.lineage.opening_of(version)
    }

    /// What a row of a commit carries of the opening that made it.
    pub(crate) fn word_of(&self, version: u64) -> u32 {
        self.lineage.word_of(version)
    }

    /// Whether a value of this layer is of the history of its store.
    pub(crate) fn has(&self, origin: Origin) -> bool {
        self.lineage.has(HistoryPoint { opening: origin.opening, commit: origin.version })
    }

    /// A row after the newest commit.
    pub(crate) fn get(&self, space: Space, row_key: &[u8]) -> Result<Option<Value<'_>>, Error> {
        let _no_commit_is_half_applied = self.apply_latch.lock_shared()?;
        Ok(self.engine.get(space, row_key)?)
    }

    /// The state after the newest commit.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_>, Error> {
        let _no_commit_is_half_applied = self.apply_latch.lock_shared()?;
        Ok(self.engine.snapshot()?)
    }

    /// Writes a batch as the next commit.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if an earlier commit is stuck, and the errors of the engine.
    pub(crate) fn commit(&self, batch: Batch, level: Level) -> Result<CommitSeq, EngineError> {
        let _in_order = self.numbering.lock();
        // A stuck commit is rolled forward when the engine is opened again, and would overwrite later commits.
        drop(self.apply_latch.lock_shared()?);
        self.engine.commit(batch, &[], level)
    }

    /// As [`commit`](Self::commit). Returns the number also if the commit is applied and only its sync failed, with that
    /// error.
    ///
    /// # Errors
    /// As [`commit`](Self::commit), but for [`EngineError::SyncFailed`].
    pub(crate) fn apply(
        &self,
        batch: Batch,
        level: Level,
    ) -> Result<(CommitSeq, Result<(), EngineError>), EngineError> {
        let _in_order = self.numbering.lock();
        drop(self.apply_latch.lock_shared()?);
        match self.engine.commit(batch, &[], level) {
            // No other commit is made meanwhile.
            Err(error @ EngineError::SyncFailed { .. }) => Ok((self.engine.last_commit(), Err(error))),
            committed => Ok((committed?, Ok(()))),
        }
    }

    /// Writes a batch above the limit as the next commit, in parts. No row is read until the returned value is opened.
    pub(crate) fn commit_in_parts(
        &self,
        batch: Batch,
        limit_bytes: u64,
    ) -> Result<(u64, Applying<'_>), EngineError> {
        let _in_order = self.numbering.lock();
        let seq = self.engine.last_commit().next();
        Ok((seq.get(), self.apply_latch.write_in_parts(&*self.engine, batch, seq, limit_bytes)?))
    }

    /// Waits until every commit survives a power cut, if one does not yet.
    pub(crate) fn sync_if_behind(&self) -> Result<(), EngineError> {
        let is_behind = self.engine.last_synced() < self.engine.last_commit();
        if is_behind && !self.engine.caps().read_only { self.engine.sync() } else { Ok(()) }
    }
}

impl fmt::Debug for RowEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowEngine").field("level", &self.level).finish_non_exhaustive()
    }
}
