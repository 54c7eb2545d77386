//! What an export did, and what it could not write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::layout::{LayoutChoice, Placed};
use super::options::ExportOptions;
use crate::codec::Missed;
use crate::import::{TwoStates, Unfinished};

/// Places that a report lists.
pub(super) const LISTED: usize = 1024;

/// Report of an export, with its earlier runs that were stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportReport {
    /// Region files, those of entities and points of interest too.
    pub files: u64,
    /// Columns.
    pub columns: u64,
    /// Chunks of ours: sections with blocks.
    pub chunks: u64,
    /// Entities, riders too.
    pub entities: u64,
    /// Files that are no regions.
    pub other_files: u64,
    /// Players, each in a file of its own or in `level.dat`.
    pub players: u64,
    /// Of these, players that are not as they came.
    pub changed_players: u64,
    /// Players that were deleted since they came: their files are left out.
    pub deleted_players: u64,
    /// The player of `level.dat`, if their own file said something else when they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_states: Option<TwoStates>,
    /// Columns whose blocks are not those that they were imported with: without height maps, ticks that were due, the
    /// word that their light is done, and points of interest, which the game makes anew.
    pub changed_columns: u64,
    /// Columns of before 1.13 that went back as they came.
    pub old_slots: u64,
    /// Columns of before 1.13 that were left out, because the world has blocks there.
    pub left_old_slots: u64,
    /// Slots that had an unreadable part when they were imported, and that went back as they came.
    pub kept_slots: u64,
    /// The bytes of these.
    pub kept_slot_bytes: u64,
    /// Slots with an unreadable part that is not written, because the world has something else there: the first
    /// thousand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_slots: Vec<DroppedSlot>,
    /// How many of these there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_slot_count: u64,
    /// The layout of each dimension that a save has a folder for.
    pub layout: BTreeMap<String, Placed>,
    /// The unfinished import; the save holds a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_import: Option<Unfinished>,
    /// Which dimensions a game with the exported `level.dat`, or an import, would not find, and why.
    pub warnings: Vec<String>,
    /// Columns with unreadable chunks, each by its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged_columns: Vec<DamagedColumn>,
    /// Content that region files cannot hold, or that could not be read: in words, and how often.
    pub not_exported: BTreeMap<String, u64>,
}

/// A column with unreadable chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedColumn {
    /// Its dimension, by the name that the save has.
    pub dimension: String,
    /// Its place.
    pub x: i32,
    /// Its place.
    pub z: i32,
    /// The sections that cannot be read, ascending; those among them that never had blocks cannot be told from the rest.
    pub sections: Vec<i32>,
    /// Whether it was written, to be generated again.
    pub is_written: bool,
}

/// A slot with an unreadable part that does not go back, or a column with a missing part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedSlot {
    /// Its dimension, by the name that the save has.
    pub dimension: String,
    /// `region`, `entities` or `poi`.
    pub folder: String,
    /// Its place.
    pub x: i32,
    /// Its place.
    pub z: i32,
    /// Fault for which it could not be read, in words; empty if that is not known.
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ExportReport {
    /// Whether the world is whole and everything was exported, to where the game looks for it or where these options say.
    pub fn is_whole(&self, options: &ExportOptions) -> bool {
        let is_asked_for = options.layout != LayoutChoice::AsImported || options.dimension.is_some();
        self.unfinished_import.is_none()
            && self.not_exported.is_empty()
            && self.damaged_columns.is_empty()
            && self.dropped_slot_count == 0
            && (is_asked_for || self.warnings.is_empty())
    }

    /// Adds what a region came to.
    pub(super) fn add(&mut self, region: Self) {
        let Self {
            files,
            columns,
            chunks,
            entities,
            other_files,
            players,
            changed_players,
            deleted_players,
            two_states: _,
            changed_columns,
            old_slots,
            left_old_slots,
            kept_slots,
            kept_slot_bytes,
            dropped_slots,
            dropped_slot_count,
            layout,
            unfinished_import: _,
            warnings,
            damaged_columns,
            not_exported,
        } = region;
        self.files += files;
        self.columns += columns;
        self.chunks += chunks;
        self.entities += entities;
        self.other_files += other_files;
        self.players += players;
        self.changed_players += changed_players;
        self.deleted_players += deleted_players;
        self.changed_columns += changed_columns;
        self.old_slots += old_slots;
        self.left_old_slots += left_old_slots;
        self.kept_slots += kept_slots;
        self.kept_slot_bytes += kept_slot_bytes;
        let has_room = LISTED.saturating_sub(self.dropped_slots.len());
        self.dropped_slots.extend(dropped_slots.into_iter().take(has_room));
        self.dropped_slot_count += dropped_slot_count;
        self.layout.extend(layout);
        self.warnings.extend(warnings);
        self.damaged_columns.extend(damaged_columns);
        for (what, count) in not_exported {
            self.missed(what, count);
        }
    }

    pub(super) fn missed(&mut self, what: impl Into<String>, count: u64) {
        self.misses().add(what, count);
    }

    /// Takes note of what is not exported.
    pub(super) const fn misses(&mut self) -> Missed<'_> {
        Missed(&mut self.not_exported)
    }
}
