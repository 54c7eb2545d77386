//! Purging the tombstones of objects.

use std::iter::Peekable;
use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::frame::version_of;
use cg_format::key::Family;

use crate::engine::{ALL_KEYS, Batch, EngineError, Met, scan_skipping_damage};
use crate::kinds::object::decode;
use crate::maintain::state::MaintainState;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;

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
        let (engine, mut forgotten) = (self.shared.engine()?, Vec::new());
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
                forgotten.push(ConflictKey::Object(key));
            }
        }
        Ok(forgotten)
    }
}

/// Whether a row is a sound tombstone of an object that a commit before `commit` deleted.
fn is_tombstone(key: &[u8], row: &[u8], commit: u64) -> bool {
    version_of(row).is_some_and(|version| version < commit)
        && decode(key, row).is_ok_and(|object| object.bytes.is_none())
}
