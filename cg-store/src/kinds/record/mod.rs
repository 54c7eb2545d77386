//! Spatial records: data of a host at points of the world, found by area.
//!
//! Records are in the leaves of trees whose [shape] the world stores. A query returns all records of the leaves that
//! overlap an area, without a test of each point. Each record has two rows in the same commit: itself under its leaf,
//! and its [leaf](Space::RecordPlace) under its UUID.

mod change;
mod query;

use cg_format::key::{self, RecordLeaf};
use cg_format::record::RecordView;
use cg_format::{RecordId, Space};

pub(crate) use change::RecordChange;
pub use change::leaf_of;
pub(crate) use query::scan_records;
pub use query::{RecordQuery, scan_area};

use crate::storage::error::Error;
use crate::storage::row::open_row;

/// Decodes a record's row.
///
/// # Errors
/// [`Error::Corrupt`] if the row is damaged.
pub fn decode<'a>(id: RecordId, key: &[u8], row: &'a [u8]) -> Result<RecordView<'a>, Error> {
    open_row(Space::Record, key, row, || format!("record {id}"), |frame| RecordView::decode(frame.payload()))
}

/// Decodes the row with the leaf of a record.
pub(crate) fn decode_place(id: RecordId, row: &[u8]) -> Result<RecordLeaf, Error> {
    let key = key::record_place(id);
    let what = || format!("the place of record {id}");
    open_row(Space::RecordPlace, &key, row, what, |frame| key::decode_record_leaf(frame.payload()))
}
