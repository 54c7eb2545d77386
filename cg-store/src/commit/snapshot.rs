//! Saving and deleting snapshots: one commit each.

use crate::commit::state::CommitState;
use crate::commit::transaction::{Changes, commit_snapshot};
use crate::engine::EngineError;
use crate::kinds::snapshots::{self, AROUND_A_PART_BYTES, PART_BYTES, SnapshotChange};
use crate::storage::error::Error;

impl CommitState {
    /// See [`Snapshots::save`](crate::snapshots::Snapshots::save).
    pub(crate) fn save_snapshot(&self, name: &str, value: &[u8]) -> Result<u64, Error> {
        self.shared.check_open()?;
        let _one_at_a_time = self.keeping.lock();
        // A save whose commit failed earlier is now either written, or it never will be.
        self.drain()?;
        let before = snapshots::parts(&*self.shared.engine()?, name)?;
        if before.first() == Some(&0) {
            return Err(Error::SnapshotExists { name: name.into() });
        }
        self.change_snapshot(SnapshotChange { name: name.into(), value: Some(value.into()), before })
    }

    /// See [`Snapshots::delete`](crate::snapshots::Snapshots::delete).
    pub(crate) fn delete_snapshot(&self, name: &str) -> Result<bool, Error> {
        self.shared.check_open()?;
        let _one_at_a_time = self.keeping.lock();
        self.drain()?;
        let before = snapshots::parts(&*self.shared.engine()?, name)?;
        if before.is_empty() {
            return Ok(false);
        }
        self.change_snapshot(SnapshotChange { name: name.into(), value: None, before })?;
        Ok(true)
    }
    /// Commits a change and waits until it is written. The caller holds the lock that excludes other snapshot changes.
    fn change_snapshot(&self, change: SnapshotChange) -> Result<u64, Error> {
        let caps = self.shared.engine()?.caps();
        let (max_bytes, limit_bytes) = (change.max_len_bytes(), self.shared.batch_limit()?);
        if change.is_put() {
            // A staged commit is written twice.
            let written_bytes = if max_bytes > limit_bytes { 2 * max_bytes } else { max_bytes };
            self.disk_guard.check(&*self.shared.engine()?, written_bytes)?;
        }
        let len_bytes = (PART_BYTES + AROUND_A_PART_BYTES) as u64;
        if max_bytes > limit_bytes && len_bytes > caps.max_batch_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes: caps.max_batch_bytes }.into());
        }
        commit_snapshot(self, Changes::of_snapshot(self.shared.registry.catalog(), change))
    }
}
