//! Keys of spatial records: the path through the tree to a leaf, then the record.
//!
//! | offset | bytes | part |
//! |---|---|---|
//! | 0 | 1 | tag: 1 a record, 2 the leaf in which one lies |
//! | 1 | 8 | of a record: dimension |
//! | 9 | 24 | Morton(table) |
//! | 33 | 4 each | which root of the table, which child of the root, …: one number for each level |
//! | … | 16 | UUID |
//!
//! So all records of a node of the tree, from a table down to a leaf, are one range of keys.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{read_dimension, whole};
use crate::id::RecordId;
use crate::morton;
use crate::wire::Reader;
use crate::{DecodeError, Dimension, Problem};

/// The maximum number of levels of a tree of records.
pub const RECORD_MAX_LEVELS: usize = 16;
/// The length of the key of a record's place.
pub const RECORD_PLACE_LEN_BYTES: usize = 1 + RecordId::LEN_BYTES;

/// The length of the prefix that the keys of a table's records have in common.
pub const RECORD_TABLE_LEN_BYTES: usize = 1 + 8 + morton::LEN_3D_BYTES;

pub(super) const RECORD_TAG: u8 = 1;
pub(super) const PLACE_TAG: u8 = 2;

/// The length of the number of one level.
const LEVEL_LEN_BYTES: usize = 4;

/// The length of a record's key in a tree with this many levels.
pub const fn record_len_bytes(level_count: usize) -> usize {
    RECORD_TABLE_LEN_BYTES + level_count * LEVEL_LEN_BYTES + RecordId::LEN_BYTES
}

/// The path from a table to a leaf: the number of the table's root, of the root's child, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RecordPath {
    /// Numbers after the last level are zero.
    numbers: [u32; RECORD_MAX_LEVELS],
    level_count: u8,
}

impl RecordPath {
    /// The path without levels.
    pub const EMPTY: Self = Self { numbers: [0; RECORD_MAX_LEVELS], level_count: 0 };

    /// The path one level further down; `None` at [`RECORD_MAX_LEVELS`].
    #[must_use]
    pub fn child(mut self, number: u32) -> Option<Self> {
        *self.numbers.get_mut(usize::from(self.level_count))? = number;
        self.level_count += 1;
        Some(self)
    }

    /// The number of each level, from the root down.
    pub fn numbers(&self) -> &[u32] {
        self.numbers.get(..usize::from(self.level_count)).unwrap_or_default()
    }
}

impl fmt::Debug for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.numbers()).finish()
    }
}

/// A leaf of the tree of records: a cube of blocks, identified by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordLeaf {
    /// The dimension.
    pub dimension: Dimension,
    /// The table's coordinates along x, y and z, in tables from the origin.
    pub table: [i64; 3],
    /// The path from the table to the leaf.
    pub path: RecordPath,
}

/// The name of a table in SQL: `records_0_n1_2_3` is the table (−1, 2, 3) of dimension 0.
///
/// At most 91 bytes: that of a distant table may exceed what a database takes as a name.
///
/// ```
/// use cg_format::{Dimension, key::record_table_name};
/// let name = record_table_name(Dimension::new(3), [-1, 0, i64::MIN]);
/// assert_eq!(name, "records_3_n1_0_n9223372036854775808");
/// ```
pub fn record_table_name(dimension: Dimension, table: [i64; 3]) -> String {
    let axis = |axis: i64| format!("{}{}", if axis < 0 { "n" } else { "" }, axis.unsigned_abs());
    let [x, y, z] = table.map(axis);
    format!("records_{}_{x}_{y}_{z}", dimension.get())
}

/// The prefix of the keys of a leaf's records, and of no other keys.
pub fn record_leaf(leaf: &RecordLeaf) -> Vec<u8> {
    let numbers = leaf.path.numbers();
    let mut key = Vec::with_capacity(record_len_bytes(numbers.len()));
    key.push(RECORD_TAG);
    key.extend(leaf.dimension.get().to_be_bytes());
    key.extend(morton::encode_3d(leaf.table));
    for number in numbers {
        key.extend(number.to_be_bytes());
    }
    key
}

/// The inverse of [`record_leaf`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another tag, or a length that does not match a number
/// of levels from 1 to [`RECORD_MAX_LEVELS`].
pub fn decode_record_leaf(key: &[u8]) -> Result<RecordLeaf, DecodeError> {
    whole(key, |reader| read_leaf(reader, key.len()))
}

/// The key of a record in a leaf.
pub fn record(leaf: &RecordLeaf, id: RecordId) -> Vec<u8> {
    let mut key = record_leaf(leaf);
    key.extend(id.to_bytes());
    key
}

/// The inverse of [`record`].
///
/// # Errors
/// As [`decode_record_leaf`].
pub fn decode_record(key: &[u8]) -> Result<(RecordLeaf, RecordId), DecodeError> {
    whole(key, |reader| {
        let leaf = read_leaf(reader, key.len().saturating_sub(RecordId::LEN_BYTES))?;
        Ok((leaf, RecordId::from_bytes(reader.array("record uuid")?)))
    })
}

/// The key of the row that stores the leaf of a record.
pub fn record_place(id: RecordId) -> [u8; RECORD_PLACE_LEN_BYTES] {
    super::tagged(PLACE_TAG, &id.to_bytes())
}

/// The inverse of [`record_place`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length or tag.
pub fn decode_record_place(key: &[u8]) -> Result<RecordId, DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", PLACE_TAG)?;
        reader.array("record uuid").map(RecordId::from_bytes)
    })
}

/// Reads a leaf from this many bytes.
fn read_leaf(reader: &mut Reader<'_>, len_bytes: usize) -> Result<RecordLeaf, DecodeError> {
    reader.expect_u8("tag", RECORD_TAG)?;
    let dimension = read_dimension(reader)?;
    let table = morton::decode_3d(&reader.array("Morton code")?);
    let numbers_len_bytes = len_bytes.saturating_sub(RECORD_TABLE_LEN_BYTES);
    let level_count = numbers_len_bytes / LEVEL_LEN_BYTES;
    let is_whole = numbers_len_bytes.is_multiple_of(LEVEL_LEN_BYTES);
    if !is_whole || !(1..=RECORD_MAX_LEVELS).contains(&level_count) {
        let (field, found) = ("bytes of the way to a leaf", numbers_len_bytes as u64);
        return Err(reader.error(Problem::OutOfRange { field, found, allowed: "4, 8, 12, … 64" }));
    }
    let mut path = RecordPath::EMPTY;
    for _ in 0..level_count {
        let number = u32::from_be_bytes(reader.array("number in its parent")?);
        path = path.child(number).expect("as many levels as there may be were checked");
    }
    Ok(RecordLeaf { dimension, table, path })
}
