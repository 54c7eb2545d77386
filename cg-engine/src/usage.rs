//! How much an engine holds.

use cg_format::key::Family;

/// How much an engine holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// One entry per family, in the order of [`Family::ALL`].
    pub families: Vec<FamilyUsage>,
    /// Bytes of write-ahead log on disk.
    pub log_bytes: u64,
    /// Bytes of memory that the engine holds for rows, over all caches and buffers that it shares with others.
    pub memory_bytes: u64,
}

/// How much an engine holds of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyUsage {
    /// Which family.
    pub family: Family,
    /// Roughly how many rows; overwritten and deleted ones may still count.
    pub row_count: u64,
    /// Bytes of sorted files on disk.
    pub table_bytes: u64,
    /// Bytes of blob files on disk, [`garbage_bytes`](Self::garbage_bytes) of them dead.
    pub blob_bytes: u64,
    /// Bytes of blob files that no row refers to any more.
    pub garbage_bytes: u64,
    /// Bytes in memory that are not yet in a file.
    pub buffered_bytes: u64,
    /// Whether its files are rewritten no more because one of them is damaged.
    pub is_held: bool,
}

impl FamilyUsage {
    /// Of an empty family. Set the fields that differ.
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
