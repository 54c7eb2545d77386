//! Purging of tombstones.
//!
//! A deleted chunk leaves a tombstone: its row in the hottest tier, with the commit that deleted it. The tombstone
//! hides copies in colder tiers. It also reports the deletion to a reader that knows an older state.
//!
//! So a tombstone is purged only when both uses have ended. No colder tier holds the place, and the host has moved the
//! tombstone horizon past its commit.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use cg_format::Space;
use cg_format::frame::{self, FrameKind};
use cg_format::key::Family;

use crate::engine::{ALL_KEYS, Batch, EngineError, Met, Readable, ReadableExt as _, scan_skipping_damage};
use crate::kinds::object::decode;
use crate::maintain::state::MaintainState;
use crate::storage::change_log;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::meta;
use crate::storage::object_key::ObjectKey;

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
            // A client that knows less than the horizon is listed everything, so the log of less is of no use.
            let log = self.shared.change_log.beginning();
            let log = log.map(|beginning| beginning.max(tombstone_horizon.saturating_sub(1)));
            if let Some(beginning) = log.filter(|_| log != self.shared.change_log.beginning()) {
                change_log::begin_at(&mut batch, beginning);
            }
            let purged = self.purge_objects(&mut batch, &mut deleted, commit)?;
            if !batch.is_empty() {
                let seq = self.commit.commit_past_queue(batch, purged.iter().cloned())?;
                self.shared.tombstone_horizon.store(tombstone_horizon, Ordering::Relaxed);
                self.shared.change_log.set(log);
                committing.publish(seq, purged);
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

impl MaintainState {
    /// The keys of objects that commits before `commit` deleted. Costs a scan of all objects. Unreadable rows are
    /// skipped and stay.
    pub(crate) fn objects_deleted_before(&self, commit: u64) -> Result<Vec<ObjectKey>, Error> {
        let mut found = Vec::new();
        scan_skipping_damage(&*self.shared.engine()?, Family::Object, ALL_KEYS, |met| {
            if let Met::Row(key, row) = met
                && is_tombstone(key, row, commit)
            {
                found.extend(ObjectKey::new(key));
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// Adds to a batch the deletion of object tombstones that are still the newest row of their key. Adds as many as
    /// the batch takes, up to a limit on the time other commits wait. The caller holds the commit lock, and the queue
    /// is empty.
    pub(crate) fn purge_objects(
        &self,
        batch: &mut Batch,
        keys: &mut Peekable<impl Iterator<Item = ObjectKey>>,
        commit: u64,
    ) -> Result<Vec<ConflictKey>, Error> {
        /// The maximum number of keys that are read during one hold of the commit lock.
        const AT_ONCE: usize = 4096;
        let (engine, mut purged) = (self.shared.engine()?, Vec::new());
        let limit_bytes = engine.caps().max_batch_bytes;
        for _ in 0..AT_ONCE {
            let fits = |key: &ObjectKey| {
                batch.is_empty() || batch.len_bytes() + key.as_bytes().len() as u64 <= limit_bytes
            };
            let Some(key) = keys.next_if(fits) else { break };
            let row = match engine.get(Space::Object, key.as_bytes()) {
                Err(EngineError::Corrupt { .. }) => continue,
                row => row?,
            };
            if row.is_some_and(|row| is_tombstone(key.as_bytes(), &row, commit)) {
                batch.delete(Space::Object, key.as_bytes());
                purged.push(ConflictKey::Object(key));
            }
        }
        Ok(purged)
    }
}

/// Whether a row is a sound tombstone of an object that a commit before `commit` deleted.
fn is_tombstone(key: &[u8], row: &[u8], commit: u64) -> bool {
    frame::version_of(row).is_some_and(|version| version < commit)
        && decode(key, row).is_ok_and(|object| object.bytes.is_none())
}
