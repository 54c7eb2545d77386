//! Resolves the objects and records that a transaction writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::RecordId;
use cg_format::record::Record;

use crate::kinds::object::{ObjectWrite, StoredObject};
use crate::kinds::record::{RecordChange, leaf_of};
use crate::read::state::ReadState;
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// The objects that change, as they will be stored. Costs one key read for each that is written, all together.
pub(crate) fn changed_objects(
    read: &ReadState,
    writes: &BTreeMap<ObjectKey, ObjectWrite>,
) -> Result<Vec<(ObjectKey, StoredObject)>, Error> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = writes.keys().collect();
    let mut changed = Vec::with_capacity(writes.len());
    for ((key, write), stored) in writes.iter().zip(read.stored_objects(&keys)) {
        if let Some(after) = write.after(key, stored?.as_ref())? {
            changed.push((key.clone(), after));
        }
    }
    Ok(changed)
}

/// The records that change. Costs two key reads for each that is written, all together.
pub(crate) fn changed_records(
    read: &ReadState,
    writes: &BTreeMap<RecordId, Option<Arc<Record>>>,
) -> Result<Vec<(RecordId, RecordChange)>, Error> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = writes.keys().copied().collect();
    let mut changed = Vec::with_capacity(writes.len());
    for ((id, new), old) in writes.iter().zip(read.found_records(&ids)) {
        let old = old?.map(|(record, _)| record);
        if old != *new {
            let leaf = |record: &Arc<Record>| leaf_of(read.shared.record_shape, record);
            let (old, leaf) = (old.as_ref().map(leaf), new.as_ref().map(leaf));
            changed.push((*id, RecordChange { old, leaf, new: new.clone() }));
        }
    }
    Ok(changed)
}
