//! Report of putting columns back: what changed, and what of the boxes was left out.

use std::collections::BTreeMap;

use serde::Serialize;
use uuid::Uuid;

use crate::export::DamagedColumn;
use crate::import::Unfinished;
use crate::region::ColumnPos;
use crate::save::Layout;

/// Entries that each list holds.
const LISTED: usize = 1000;

/// Changes to a save by putting columns back, done or only counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IntoReport {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The dimension, by the name that the save has.
    pub dimension: String,
    /// The layout in which the game of the save's `level.dat` looks.
    pub layout: Option<Layout>,
    /// Region files that were written, those of entities and points of interest too.
    pub files: u64,
    /// Slots of `region/`.
    pub columns: SlotCounts,
    /// Slots of `entities/`.
    pub entity_slots: SlotCounts,
    /// Slots of `poi/`.
    pub points: SlotCounts,
    /// Entities in slots that were put, riders too.
    pub entities: u64,
    /// Players who are in the boxes, each in their file or in `level.dat`.
    pub players: SlotCounts,
    /// Players who are in the boxes and were left out.
    pub left_players: Listed<LeftPlayer>,
    /// Entities of slots and of files of players that were replaced which the world does not have in the boxes.
    pub removed_entities: u64,
    /// Columns of the save in the boxes that the world does not have. They stay as they are.
    pub kept_columns: u64,
    /// Columns whose blocks are not those that they were imported with: without height maps and points of interest.
    pub changed_columns: u64,
    /// Columns that were left out because their game is newer than the save's.
    pub newer_columns: Listed<NewerColumn>,
    /// Entities that were left out because the save has them elsewhere.
    pub elsewhere: Listed<Elsewhere>,
    /// Entities that were taken out of another place of the save.
    pub taken: Listed<Elsewhere>,
    /// Slots of the save that could not be searched for entities.
    pub unsearched_slots: u64,
    /// The folders with what was replaced.
    pub backups: Vec<String>,
    /// The unfinished import; the world holds a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_import: Option<Unfinished>,
    /// Dimensions that a game with the save's `level.dat` would not find, in words.
    pub warnings: Vec<String>,
    /// Columns with unreadable chunks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged_columns: Vec<DamagedColumn>,
    /// Content that region files cannot hold, or that could not be read: in words, and how often.
    pub not_exported: BTreeMap<String, u64>,
}

/// Slots by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SlotCounts {
    /// The save had none.
    pub new: u64,
    /// The save had another, or one that could not be read.
    pub replaced: u64,
    /// The save has the same, which stays.
    pub equal: u64,
    /// The save had one beside a column that the world has without it.
    pub removed: u64,
}

/// The first entries of a list, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// All of them.
    pub count: u64,
    /// The first thousand.
    pub first: Vec<T>,
}

/// A column of a game that is newer than the save's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewerColumn {
    /// Its place.
    pub x: i32,
    /// Its place.
    pub z: i32,
    /// The highest `DataVersion` of its slots.
    pub data_version: i32,
}

/// A player who stays as the save has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftPlayer {
    /// The player.
    pub uuid: Uuid,
    /// The reason, in words.
    pub why: String,
}

/// An entity that the save has in another place too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The entity.
    pub uuid: Uuid,
    /// The file of the save, from its folder on.
    pub file: String,
    /// The column, unless a player has it.
    pub column: Option<ColumnPos>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}

impl<T> Listed<T> {
    pub(super) fn add(&mut self, entry: T) {
        self.count += 1;
        if self.first.len() < LISTED {
            self.first.push(entry);
        }
    }
}

impl IntoReport {
    /// Whether all that the world has in the boxes is in the save, where its game looks.
    pub fn is_whole(&self) -> bool {
        self.newer_columns.count == 0
            && self.left_players.count == 0
            && self.elsewhere.count == 0
            && self.unfinished_import.is_none()
            && self.warnings.is_empty()
            && self.damaged_columns.is_empty()
            && self.not_exported.is_empty()
    }
}
