//! What becomes of the records that a transaction writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::{self, RecordLeaf};
use cg_format::record::Record;
use cg_format::{RecordId, Space};

use super::RecordShape;
use crate::api::world::Inner;
use crate::engine::Batch;
use crate::storage::error::Error;

/// One record before and after.
#[derive(Debug)]
pub(crate) struct RecordChange {
    /// Where it lay; `None` if it was not there.
    old: Option<RecordLeaf>,
    leaf: Option<RecordLeaf>,
    /// `None` is a deletion.
    pub(crate) new: Option<Arc<Record>>,
}

impl RecordChange {
    /// Adds its rows to a batch.
    pub(crate) fn put_rows(&self, batch: &mut Batch, id: RecordId) {
        if let Some(old) = self.old.filter(|old| Some(*old) != self.leaf) {
            batch.delete(Space::Record, key::record(&old, id));
        }
        let (Some(leaf), Some(record)) = (&self.leaf, &self.new) else {
            batch.delete(Space::RecordPlace, key::record_place(id));
            return;
        };
        let draft = Draft::plain(Codec::None, 0, |out| record.encode(out));
        batch.put(Space::Record, key::record(leaf, id), draft, Stamp::Commit);
        if self.old != self.leaf {
            let draft = Draft::plain(Codec::None, 0, |out| out.extend(key::record_leaf(leaf)));
            batch.put(Space::RecordPlace, key::record_place(id), draft, Stamp::Commit);
        }
    }

    /// About the bytes of its rows and of itself in memory.
    pub(crate) fn len_bytes(&self) -> usize {
        /// Two keys, two frames, a leaf.
        const ROWS_BYTES: usize = 512;
        ROWS_BYTES + self.new.as_ref().map_or(0, |record| record.len_bytes())
    }
}

/// The records that change. Two key reads for each that is written, all together.
pub(crate) fn settle(
    world: &Inner,
    writes: &BTreeMap<RecordId, Option<Arc<Record>>>,
) -> Result<Vec<(RecordId, RecordChange)>, Error> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = writes.keys().copied().collect();
    let mut settled = Vec::with_capacity(writes.len());
    for ((id, new), old) in writes.iter().zip(world.stored_records(&ids)) {
        let old = old?;
        if old != *new {
            let leaf = |record: &Arc<Record>| leaf_of(world.record_shape, record);
            let (old, leaf) = (old.as_ref().map(leaf), new.as_ref().map(leaf));
            settled.push((*id, RecordChange { old, leaf, new: new.clone() }));
        }
    }
    Ok(settled)
}

/// The leaf in which a record lies.
pub(crate) fn leaf_of(shape: RecordShape, record: &Record) -> RecordLeaf {
    shape.leaf(record.position.dimension(), record.position.block())
}
