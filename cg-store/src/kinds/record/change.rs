//! Resolves the records that a transaction writes.

use std::sync::Arc;

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::{self, RecordLeaf};
use cg_format::record::Record;
use cg_format::{RecordId, Space};

use crate::engine::Batch;
use crate::storage::record_shape::RecordShape;

/// One record before and after.
#[derive(Debug)]
pub(crate) struct RecordChange {
    /// Its previous leaf; `None` if it did not exist.
    pub(crate) old: Option<RecordLeaf>,
    pub(crate) leaf: Option<RecordLeaf>,
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

    /// The maximum size of its rows.
    pub(crate) fn max_rows_bytes(&self) -> usize {
        /// Two keys, two frames, a leaf.
        const ROWS_BYTES: usize = 512;
        ROWS_BYTES + self.new.as_ref().map_or(0, |record| record.len_bytes())
    }
}

/// The leaf of a record.
pub fn leaf_of(shape: RecordShape, record: &Record) -> RecordLeaf {
    shape.leaf(record.position.dimension(), record.position.block())
}
