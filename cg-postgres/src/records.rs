//! Records as rows of tables: the table of each, and its columns.

use cg_engine::Family;
use cg_format::Space;
use cg_format::entity::EntityPos;
use cg_format::frame::FrameView;
use cg_format::key::{RECORD_TABLE_LEN_BYTES, RecordLeaf, record_table_name};
use cg_format::record::RecordView;

/// The bytes of rows in one message.
pub(crate) const PART_BYTES: usize = 4 << 20;
/// The longest name that a database takes. It cuts a longer one.
const MAX_NAME_BYTES: usize = 63;
/// The longest payload with a column of its own. A row with two that are longer may not fit into memory of the server.
const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// Whether a row may be in a table of records.
pub(crate) fn is_record(family: Family, key: &[u8]) -> bool {
    family == Family::Record && Space::of_row(family, key) == Some(Space::Record)
}

/// Rows of one table cube, whose keys have one length.
#[derive(Debug, Default)]
pub(crate) struct TablePart {
    /// The range of the table's keys.
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    pub(crate) key_len_bytes: i32,
    /// `None` if the database cannot take it.
    pub(crate) name: Option<String>,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) values: Vec<Vec<u8>>,
    pub(crate) columns: Columns,
    len_bytes: usize,
}

/// The columns of rows. All of a row are `None` if it does not decode.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The first byte of the payload in the row, counted from 1.
    pub(crate) payload_at: Vec<Option<i32>>,
    /// Also `None` if it has a zero byte, which the database does not take in text.
    pub(crate) kind: Vec<Option<String>>,
    pub(crate) at: Vec<Option<i64>>,
    pub(crate) block: [Vec<Option<i64>>; 3],
    pub(crate) point: [Vec<Option<f64>>; 3],
}

impl TablePart {
    /// Puts a row into the last part, or into a new one. Rows come in the order of their keys.
    pub(crate) fn put(parts: &mut Vec<Self>, leaf: &RecordLeaf, key: Vec<u8>, row: Vec<u8>) {
        let fits = |part: &&mut Self| {
            key.starts_with(&part.from)
                && key.len() == part.key_len_bytes as usize
                && part.len_bytes + key.len() + row.len() <= PART_BYTES
        };
        if let Some(part) = parts.last_mut().filter(fits) {
            return part.push(key, row);
        }
        let mut part = Self::of(leaf, &key);
        part.push(key, row);
        parts.push(part);
    }

    fn of(leaf: &RecordLeaf, key: &[u8]) -> Self {
        let from = key.get(..RECORD_TABLE_LEN_BYTES).unwrap_or(key).to_vec();
        let name = record_table_name(leaf.dimension, leaf.table);
        Self {
            to: next_prefix(&from),
            from,
            key_len_bytes: key.len() as i32,
            name: Some(name).filter(|name| name.len() <= MAX_NAME_BYTES),
            ..Self::default()
        }
    }

    fn push(&mut self, key: Vec<u8>, row: Vec<u8>) {
        self.len_bytes += key.len() + row.len();
        self.columns.push(&key, &row);
        self.keys.push(key);
        self.values.push(row);
    }
}

impl Columns {
    /// Adds those of a row.
    pub(crate) fn push(&mut self, key: &[u8], row: &[u8]) {
        let frame = FrameView::open(Space::Record, key, row);
        let record = frame.and_then(|frame| RecordView::decode(frame.payload())).ok();
        let position = record.map(|record| record.position);
        // The payload is the end of the row.
        let payload = record.map(|record| record.payload.len()).filter(|len| *len <= MAX_PAYLOAD_BYTES);
        self.payload_at.push(payload.map(|len| (row.len() - len + 1) as i32));
        self.kind.push(record.map(|record| record.kind.to_owned()).filter(|kind| !kind.contains('\0')));
        self.at.push(record.map(|record| record.timestamp));
        let block = position.map(EntityPos::block);
        let point = position.map(EntityPos::to_f64);
        for (axis, (blocks, points)) in self.block.iter_mut().zip(&mut self.point).enumerate() {
            blocks.push(block.map(|block| [block.x, block.y, block.z][axis]));
            points.push(point.map(|point| point[axis]));
        }
    }
}

/// The first key after all that begin with a prefix.
fn next_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut next = prefix.to_vec();
    while next.last() == Some(&u8::MAX) {
        next.pop();
    }
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    next
}
