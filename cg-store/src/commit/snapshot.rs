//! Saving and deleting snapshots: one commit each.

use std::sync::Arc;

use crate::commit::queue::Admission;
use crate::commit::state::CommitState;
use crate::commit::transaction::{Changes, Prepared};
use crate::engine::{EngineError, Level};
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

    /// Commits a change and waits until it is written. Other commits are accepted meanwhile. The caller holds the lock
    /// that excludes other snapshot changes.
    fn change_snapshot(&self, change: SnapshotChange) -> Result<u64, Error> {
        let caps = self.shared.engine()?.caps();
        let max_bytes = change.max_len_bytes();
        let limit_bytes = self.room_for(max_bytes, change.is_put())?;
        let len_bytes = (PART_BYTES + AROUND_A_PART_BYTES) as u64;
        if max_bytes > limit_bytes && len_bytes > caps.max_batch_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes: caps.max_batch_bytes }.into());
        }
        let changes = Arc::new(Changes::of_snapshot(self.shared.registry.catalog(), change));
        // No conflict check depends on a snapshot.
        let prepared = Prepared { changes, rows: None, written: Vec::new(), since: 0, consulted: Vec::new() };
        let seq = self.enter(self.log.commit(), None, prepared, Admission::Bypass)?;
        self.persist_own(seq, Level::Process, None)?;
        Ok(seq)
    }
}
