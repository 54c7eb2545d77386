//! Purging of tombstones.
//!
//! A deleted chunk leaves a tombstone: its row in the hottest tier, with the commit that deleted it. The tombstone
//! hides copies in colder tiers. It also reports the deletion to a reader that knows an older state.
//!
//! So a tombstone is purged only when both uses have ended. No colder tier holds the place, and the host has moved the
//! tombstone horizon past its commit.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use cg_format::frame::{self, FrameKind};
use cg_format::key::Family;

use crate::engine::{ALL_KEYS, Batch, Readable, ReadableExt as _};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;
use crate::storage::meta;

impl MaintainState {
    /// See [`Tiers::purge_tombstones_before`](crate::tiers::Tiers::purge_tombstones_before).
    pub(crate) fn purge_tombstones_before(&self, commit: u64) -> Result<u64, Error> {
        self.shared.check_open()?;
        self.commit.drain()?;
        let commit = commit.min(self.commit.log.published().saturating_add(1));
        let mut deleted = self.objects_deleted_before(commit)?.into_iter().peekable();
        loop {
            let mut committing = self.commit.commit_alone()?;
            let known = self.shared.tombstone_horizon.load(Ordering::Relaxed);
            let tombstone_horizon = commit.max(known);
            let mut batch = Batch::new();
            if commit > known {
                meta::TOMBSTONE_HORIZON.put(&mut batch, &commit);
            }
            let forgotten = self.purge_objects(&mut batch, &mut deleted, commit)?;
            if !batch.is_empty() {
                let seq = self.commit.commit_past_queue(batch, forgotten.iter().cloned())?;
                self.shared.tombstone_horizon.store(tombstone_horizon, Ordering::Relaxed);
                committing.publish(seq, forgotten);
            }
            if deleted.peek().is_none() {
                return Ok(tombstone_horizon);
            }
        }
    }
}

/// The number of tombstones in a view that commits before `commit` wrote. Reads every hot row.
pub(crate) fn count_tombstones_before(view: &dyn Readable, commit: u64) -> Result<u64, Error> {
    let mut marks = 0;
    view.scan_uncached(Family::ChunkL0, ALL_KEYS, |_, row| {
        let is_tombstone = frame::kind_of(row) == Some(FrameKind::Tombstone);
        marks += u64::from(is_tombstone && frame::version_of(row).is_some_and(|version| version < commit));
        ControlFlow::<()>::Continue(())
    })?;
    Ok(marks)
}
