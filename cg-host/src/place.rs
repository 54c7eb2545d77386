//! Places of columns.

use cg_format::{ChunkAt, Dimension};

/// The place of a column, and the heights of it that a host has, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnAt {
    /// The dimension.
    pub dimension: Dimension,
    /// In chunks.
    pub x: i64,
    /// In chunks.
    pub z: i64,
    /// The lowest height, in chunks.
    pub min_y: i32,
    /// The highest height, in chunks.
    pub max_y: i32,
}

impl ColumnAt {
    /// The most heights of a column.
    pub const MAX_HEIGHTS: i64 = 4096;

    /// Whether a chunk is one of the column's.
    pub(crate) fn has(&self, at: ChunkAt) -> bool {
        at.dimension == self.dimension
            && (at.pos.x(), at.pos.z()) == (self.x, self.z)
            && (i64::from(self.min_y)..=i64::from(self.max_y)).contains(&at.pos.y())
    }
}

impl std::fmt::Display for ColumnAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "column ({}, {}) of dimension {}", self.x, self.z, self.dimension.get())
    }
}
