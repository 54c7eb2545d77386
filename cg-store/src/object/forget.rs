//! Deleted objects whose versions nobody needs any more.

use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::frame::version_of;
use cg_format::key::Family;

use super::{ObjectKey, decode};
use crate::engine::{ALL_KEYS, Batch, Engine, EngineError, Met, scan_past_damage};
use crate::error::{ConflictKey, Error};
use crate::world::Inner;

impl<E: Engine> Inner<E> {
    /// The keys of objects that commits before this one deleted. Costs a scan of all objects. What cannot be read is not
    /// forgotten.
    pub(crate) fn objects_deleted_before(&self, commit: u64) -> Result<Vec<ObjectKey>, Error> {
        let mut found = Vec::new();
        scan_past_damage(&*self.engine()?, Family::Object, ALL_KEYS, |met| {
            if let Met::Row(key, row) = met
                && is_mark(key, row, commit)
            {
                found.extend(ObjectKey::new(key));
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// Adds to a batch the end of those of some deleted objects that were not written since. The caller holds the commit
    /// lock, and the queue is empty.
    pub(crate) fn forget_objects(
        &self,
        batch: &mut Batch,
        keys: Vec<ObjectKey>,
        commit: u64,
    ) -> Result<Vec<ConflictKey>, Error> {
        let (engine, mut forgotten) = (self.engine()?, Vec::new());
        for key in keys {
            let row = match engine.get(Space::Object, key.as_bytes()) {
                Err(EngineError::Corrupt { .. }) => continue,
                row => row?,
            };
            if row.is_some_and(|row| is_mark(key.as_bytes(), &row, commit)) {
                batch.delete(Space::Object, key.as_bytes());
                forgotten.push(ConflictKey::Object(key));
            }
        }
        Ok(forgotten)
    }
}

/// Whether a row is a sound mark of an object that a commit before this one deleted.
fn is_mark(key: &[u8], row: &[u8], commit: u64) -> bool {
    version_of(row).is_some_and(|version| version < commit)
        && decode(key, row).is_ok_and(|object| object.bytes.is_none())
}
