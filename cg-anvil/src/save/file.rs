//! Files of a save: its `level.dat`, and its region files.

use std::path::PathBuf;

use super::layout::Layout;
use crate::region::RegionPos;

/// File that tells a save from a folder of region files.
pub(crate) const LEVEL: &str = "level.dat";

/// One region file of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionFile {
    /// The dimension, `namespace:name`.
    pub dimension: String,
    /// Kind of content, as the file's folder tells it.
    pub kind: RegionKind,
    /// The place in the file's name; `None` when it has none, and only the columns tell theirs.
    pub pos: Option<RegionPos>,
    /// Where the file is.
    pub path: PathBuf,
    /// The layout of its folder; `None` when that is no dimension's.
    pub layout: Option<Layout>,
}

/// Kind of a region file's content, as its folder tells it. Blocks come before entities, which belong to their chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegionKind {
    /// `region/`: columns.
    Blocks,
    /// A file by itself, or in a folder without a save around it: its content tells.
    ByContent,
    /// `entities/`: entities by column.
    Entities,
    /// `poi/`: points of interest by column.
    PointsOfInterest,
}
