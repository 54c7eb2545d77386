//! The size of an engine's data.

use cg_format::key::Family;

/// The size of an engine's data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// One entry per family, in the order of [`Family::ALL`].
    pub families: Vec<FamilyUsage>,
    /// Bytes of write-ahead log on disk.
    pub log_bytes: u64,
    /// Bytes of memory that the engine uses for rows, including all caches and buffers that it shares with other
    /// engines.
    pub memory_bytes: u64,
}

/// The size of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyUsage {
    /// Which family.
    pub family: Family,
    /// The approximate number of rows. Overwritten and deleted rows may still be counted.
    pub row_count: u64,
    /// Bytes of sorted files on disk.
    pub table_bytes: u64,
    /// Bytes of blob files on disk, including [`garbage_bytes`](Self::garbage_bytes).
    pub blob_bytes: u64,
    /// Bytes of blob files that no row refers to.
    pub garbage_bytes: u64,
    /// Bytes in memory that are not in a file yet.
    pub buffered_bytes: u64,
    /// Whether its files are no longer rewritten because one of them is damaged.
    pub is_held: bool,
}

impl FamilyUsage {
    /// The usage of an empty family. Set the fields that differ.
    pub const fn new(family: Family) -> Self {
        Self {
            family,
            row_count: 0,
            table_bytes: 0,
            blob_bytes: 0,
            garbage_bytes: 0,
            buffered_bytes: 0,
            is_held: false,
        }
    }
}
