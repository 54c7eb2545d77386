//! A column outside of a world: what its slots of a save hold.

use std::collections::BTreeMap;

use super::prepared::{LocalState, PreparedColumn, PreparedEntities};
use crate::EntityRecord;
use crate::mapping::Points;
use crate::mapping::kept::{Bytes, KeptSlot};
use crate::region::{ColumnPos, RawSlot};

/// Contents of a slot of a region file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotContent {
    /// NBT, and when it was written, in seconds since 1970; zero where that is not known.
    Nbt(Vec<u8>, u32),
    /// The bytes as they stood in the file, of a slot that cannot be read in full.
    Raw(RawSlot),
}

/// The slots of a column in the folders of a dimension; `None` where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnParts {
    /// In `region/`.
    pub column: Option<SlotContent>,
    /// In `entities/`.
    pub entities: Option<SlotContent>,
    /// In `poi/`.
    pub points: Option<SlotContent>,
}

/// A column of a world as the slots of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedColumn {
    /// Where it is.
    pub pos: ColumnPos,
    /// Its slots.
    pub parts: ColumnParts,
    /// Content that the slots do not hold: in words, and how often.
    pub missed: BTreeMap<String, u64>,
}

/// A column that was read, and is of no world yet.
#[derive(Debug)]
pub struct DecodedColumn {
    pub(super) pos: ColumnPos,
    /// The block states by the column's own numbers.
    pub(super) states: Vec<LocalState>,
    pub(super) column: Option<PreparedColumn>,
    pub(super) entities: Option<PreparedEntities>,
    pub(super) points: Option<Points>,
    /// Slots of `region/`, `entities/` and `poi/` that could not be read in full.
    pub(super) kept: [Option<KeptSlot>; 3],
}

/// What became of a column that was saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnReport {
    /// Chunks that it has.
    pub chunks: u64,
    /// Chunks that the world had of it and that are gone.
    pub removed_chunks: u64,
    /// Entities that it has, each rider by itself.
    pub entities: u64,
    /// Entities that the world had of it and that are gone.
    pub removed_entities: u64,
    /// Slots that could not be read in full and are kept as bytes.
    pub kept_slots: u64,
    /// Whether the world keeps the column that it has, because blocks of the new one cannot be read: half of a column
    /// takes the place of none.
    pub is_refused: bool,
    /// What could not be read, in words.
    pub problems: Vec<String>,
}

impl ColumnParts {
    /// Whether there is no slot.
    pub const fn is_empty(&self) -> bool {
        self.column.is_none() && self.entities.is_none() && self.points.is_none()
    }
}

impl SlotContent {
    /// A slot that is kept as it was.
    pub(super) fn of(kept: KeptSlot) -> Self {
        match kept.bytes {
            Bytes::Old(timestamp, nbt) => Self::Nbt(nbt, timestamp),
            Bytes::Raw(raw) => Self::Raw(raw),
        }
    }

    /// When it was written, in seconds since 1970.
    pub const fn timestamp(&self) -> u32 {
        match self {
            Self::Nbt(_, timestamp) | Self::Raw(RawSlot { timestamp, .. }) => *timestamp,
        }
    }
}

impl DecodedColumn {
    /// Where it is.
    pub const fn pos(&self) -> ColumnPos {
        self.pos
    }

    /// What could not be read, in words.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let kept = self.kept.iter().flatten().map(|kept| kept.reason.as_str());
        let column = self.column.iter().flat_map(|column| &column.problems).map(String::as_str);
        column.chain(kept.filter(|reason| !reason.is_empty()))
    }

    /// All entities, each rider by itself.
    pub(super) fn records(&self) -> impl Iterator<Item = &EntityRecord> {
        let in_column = self.column.iter().map(|column| &column.entities);
        in_column.chain(&self.entities).flat_map(|entities| entities.groups.iter().flatten())
    }
}
