//! The choices of putting columns back, and how far it is.

use std::path::Path;

use cg_format::BlockBox;

use crate::export::Damaged;

/// Choices of putting columns back.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct IntoOptions {
    /// The dimension, by the name that the save has.
    pub dimension: String,
    /// The columns that these touch at any height are put.
    pub boxes: Vec<BlockBox>,
    /// Treatment of columns with unreadable chunks. Default: they are left out.
    pub damaged: Damaged,
    /// Puts columns also if their `DataVersion` is higher than that of the save's `level.dat`.
    pub allow_newer: bool,
    /// Takes entities that are put out of other places of the save, where they are left out otherwise.
    pub replace_entities: bool,
    /// Leaves players as the save has them.
    pub keep_players: bool,
    /// Keeps nothing of what is replaced.
    pub no_backup: bool,
    /// Counts what would change, and writes nothing.
    pub dry_run: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntoProgress<'a> {
    /// Regions of the world were read.
    Read {
        /// Those that are done.
        regions_done: usize,
        /// All of them.
        regions: usize,
    },
    /// Files of the save were searched for entities.
    Searched {
        /// Those that are done.
        files_done: usize,
        /// All of them.
        files: usize,
    },
    /// Regions of the save were written.
    Wrote {
        /// Those that are done.
        regions_done: usize,
        /// All of them.
        regions: usize,
    },
    /// A file of the save, or one beside it, is changed next.
    Changes(&'a Path),
}
