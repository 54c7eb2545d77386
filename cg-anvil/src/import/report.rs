//! Report of an import: what it did, and what it could not do.
//!
//! The report of each file travels with the import's progress, in one property that every transaction writes anew, so
//! its lists have an end: what no longer fits is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cg_minecraft::game::NEWEST_TESTED;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Level;
use crate::mapping::TwoStates;
use crate::save::{Layout, Side};

/// Entries that each list holds of one file, besides the first of each slot.
pub(super) const LISTED: usize = 1024;
/// Reasons that are told apart.
const REASONS: usize = 100;
/// Places that are named of each reason.
const PARTS: usize = 4;
/// Bytes of a text in a list.
const TEXT_BYTES: usize = 256;

/// Report of an import. Of one that was killed and run again, everything it did in all its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportReport {
    /// Columns of the save that arrived, also those without blocks.
    pub imported_columns: u64,
    /// Chunks of ours that arrived: sections with blocks.
    pub imported_chunks: u64,
    /// Of these, chunks where the world had none.
    pub new_chunks: u64,
    /// Of these, chunks that took the place of another.
    pub replaced_chunks: u64,
    /// Of these, chunks that the world had, entities aside.
    pub unchanged_chunks: u64,
    /// Chunks of the world that went because the save has none there in the column that replaces theirs.
    pub removed_chunks: u64,
    /// Chunks of the save that did not arrive, because the world keeps its column.
    pub kept_chunks: u64,
    /// Entities that arrived, each rider by itself.
    pub entities: u64,
    /// Of these, entities that no chunk owns.
    pub detached: u64,
    /// Players that are entities now, those too that the world had so.
    pub players: u64,
    /// Entities that did not arrive, because the world has them, or keeps the column in which they are listed.
    pub kept_entities: u64,
    /// Files that are no regions.
    pub imported_files: u64,
    /// Files that the world had with other content, and kept.
    pub kept_files: u64,
    /// Slots of columns of before 1.13, which are kept as bytes.
    pub old_slots: u64,
    /// Versions in the save that were not tested; `None` if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untested: Option<Untested>,
    /// Slots with an unreadable part, which are kept as bytes and go back on export.
    pub kept_slots: u64,
    /// The bytes of these.
    pub kept_slot_bytes: u64,
    /// The layout in which each dimension of the save was met.
    pub layout: BTreeMap<String, Layout>,
    /// Strays of the save, which were not imported: region files where the game does not look for their dimension.
    pub strays: Vec<Stray>,
    /// The `level.dat` that was replaced, where the world had another one.
    pub replaced_level: Option<ReplacedLevel>,
    /// Files of the world's save before, which the save does not have and which are still there.
    pub remaining_files: u64,
    /// Files of the world's save before that were deleted, by folder; `.` is the save's own.
    pub deleted_files: BTreeMap<String, u64>,
    /// Files of the save that were left out because they do not belong to the dimension that was taken.
    pub left_files: u64,
    /// Whether another process had the save open.
    pub in_use: bool,
    /// Parts that could not be read, and files that were left out: of each file the first thousand, and of every slot
    /// the first.
    pub unreadable: Vec<Unreadable>,
    /// The same by reason, all of it: each reason once, whatever its numbers and names, with its first places.
    pub reasons: Vec<Reason>,
    /// Entities with another UUID than the save gives them: of each file the first thousand.
    pub rekeyed: Vec<Rekeyed>,
    /// Parts that are not imported and lose nothing: region files of dimensions that were not asked for, or that are
    /// read by another path, and the world itself where it is inside of the save. The first thousand.
    pub not_carried: BTreeSet<String>,
    /// Region files, and parts of them, that are of no dimension or are not named as the game names them, and that were
    /// imported as files: the first thousand.
    pub regions_as_files: BTreeSet<String>,
    /// Files of players that are no entities, each with why: the first thousand. They go back on export as all files.
    pub players_as_files: BTreeMap<String, String>,
    /// The player of `level.dat`, if their own file says something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub two_states: Option<TwoStates>,
    /// Files that are larger than an object may be, and were left out: the first thousand.
    pub too_large: Vec<TooLarge>,
    /// Whether the save has no column.
    pub has_no_column: bool,
    /// Counts of what happened and is in none of the lists.
    pub unlisted: Unlisted,
}

/// A file of a save that is larger than an object may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLarge {
    /// The file, from the save's folder on.
    pub file: String,
    /// How long it is.
    pub bytes: u64,
}

/// How much more there is than the lists of an [`ImportReport`] hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unlisted {
    /// Beside [`ImportReport::unreadable`].
    pub unreadable: u64,
    /// Beside [`ImportReport::rekeyed`].
    pub rekeyed: u64,
    /// How often a name was met that [`ImportReport::not_carried`] had no room for; the same name may be counted again.
    pub not_carried: u64,
    /// Beside [`ImportReport::regions_as_files`].
    pub regions_as_files: u64,
    /// Beside [`ImportReport::players_as_files`].
    pub players_as_files: u64,
    /// Beside [`ImportReport::too_large`].
    pub too_large: u64,
}

/// Versions of the game that are newer than the newest whose saves were tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untested {
    /// The newest `DataVersion` that was met.
    pub data_version: i32,
    /// Columns of such a version.
    pub columns: u64,
    /// Whether the `level.dat` is of such a version.
    pub level: bool,
}

/// Region files of a dimension where the game does not look for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    /// The dimension.
    pub dimension: String,
    /// Summary of the files that were not imported.
    #[serde(flatten)]
    pub side: Side,
    /// Summary of the files that were imported instead.
    pub live: Side,
}

/// The `level.dat` of a world's save, which that of another save replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedLevel {
    /// Name and version in the world's; `None` if it could not be read.
    pub was: Option<Level>,
    /// Name and version in the new one; `None` if it cannot be read.
    pub is: Option<Level>,
}

/// A part of a save that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unreadable {
    /// The file, from the save's folder on.
    pub file: String,
    /// The slot, 0 … 1023; `None` when the whole file could not be opened, or was left out.
    pub slot: Option<u16>,
    /// Why.
    pub reason: String,
}

/// Why parts of a save could not be read, or were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// As the first part gives it; empty for all reasons beyond the first hundred.
    pub reason: String,
    /// How many parts give it, with whatever numbers and names.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Part>,
}

/// A place in a save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The file, from the save's folder on.
    pub file: String,
    /// The slot, 0 … 1023; `None` for the whole file.
    pub slot: Option<u16>,
}

/// An entity whose UUID was met before, or that has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rekeyed {
    /// The region file, from the save's folder on.
    pub file: String,
    /// The slot.
    pub slot: u16,
    /// The UUID in the save, which the first entity keeps; `None` when it has none.
    pub was: Option<Uuid>,
    /// The UUID in the world. Follows from the entity's bytes.
    pub is: Uuid,
}

impl Untested {
    /// One column of a version, or its `level.dat`; `None` for a version that was tested.
    pub fn of(data_version: i32, columns: u64) -> Option<Self> {
        (data_version > NEWEST_TESTED).then_some(Self { data_version, columns, level: columns == 0 })
    }

    /// Both together.
    pub fn and(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        Some(Self {
            data_version: one.data_version.max(other.data_version),
            columns: one.columns + other.columns,
            level: one.level || other.level,
        })
    }
}

impl fmt::Display for Untested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data_version, columns, level } = self;
        write!(f, "DataVersion {data_version} is newer than {NEWEST_TESTED}, the newest that was tested: ")?;
        match (level, columns) {
            (true, 0) => f.write_str("that of level.dat")?,
            (true, columns) => write!(f, "level.dat and columns {columns}")?,
            (false, columns) => write!(f, "columns {columns}")?,
        }
        f.write_str("; compare an export with the save")
    }
}

impl ImportReport {
    /// Whether everything could be read, no file was left out, and nothing but this import had the save open.
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_empty() && self.too_large.is_empty() && self.strays.is_empty() && !self.in_use
    }

    /// Everything that could not be read, listed or not.
    pub fn unreadable_count(&self) -> u64 {
        self.unreadable.len() as u64 + self.unlisted.unreadable
    }

    /// Takes note of a loss. Those of one slot come together.
    pub(super) fn note_unreadable(&mut self, file: &str, slot: Option<u16>, reason: String) {
        let part = Part { file: file.to_owned(), slot };
        self.note_reason(Reason { reason: shortened(reason.clone()), count: 1, first: vec![part] });
        let is_first = self.unreadable.last().is_none_or(|last| last.slot != slot);
        if is_first || self.unreadable.len() < LISTED {
            self.unreadable.push(Unreadable { file: file.to_owned(), slot, reason: shortened(reason) });
        } else {
            self.unlisted.unreadable += 1;
        }
    }

    /// Adds to the parts of a reason.
    fn note_reason(&mut self, more: Reason) {
        let has_room = self.reasons.len() < REASONS;
        let is_alike = |known: &&mut Reason| kind(&known.reason).eq(kind(&more.reason));
        let known = self.reasons.iter_mut().find(is_alike);
        let known = match known {
            Some(known) => known,
            None if has_room => return self.reasons.push(more),
            None => {
                if self.reasons.len() == REASONS {
                    self.reasons.push(Reason { reason: String::new(), count: 0, first: Vec::new() });
                }
                self.reasons.last_mut().expect("it was just made")
            }
        };
        known.count += more.count;
        for part in more.first {
            if known.first.len() < PARTS && !known.first.contains(&part) {
                known.first.push(part);
            }
        }
    }

    /// Takes note of a file or folder that is left out.
    pub(super) fn note_left_out(&mut self, name: &str, why: &str) {
        self.note_unreadable(&shortened(name.to_owned()), None, format!("left out: {why}"));
    }

    /// Takes note of a file that is too large, so that it is left out.
    pub(super) fn note_too_large(&mut self, file: &str, bytes: u64) {
        if self.too_large.len() < LISTED {
            self.too_large.push(TooLarge { file: file.to_owned(), bytes });
        } else {
            self.unlisted.too_large += 1;
        }
    }

    /// Takes note of a region file that was imported as a file.
    pub(super) fn note_region_as_file(&mut self, file: &str) {
        if self.regions_as_files.len() < LISTED {
            self.regions_as_files.insert(file.to_owned());
        } else {
            self.unlisted.regions_as_files += 1;
        }
    }

    /// Takes note of the file of a player that is no entity.
    pub(super) fn note_player_as_file(&mut self, file: &str, why: &str) {
        if self.players_as_files.len() < LISTED {
            self.players_as_files.insert(file.to_owned(), why.to_owned());
        } else {
            self.unlisted.players_as_files += 1;
        }
    }

    /// Takes note of an entity's new UUID.
    pub(super) fn note_rekeyed(&mut self, rekeyed: Rekeyed) {
        if self.rekeyed.len() < LISTED {
            self.rekeyed.push(rekeyed);
        } else {
            self.unlisted.rekeyed += 1;
        }
    }

    /// Takes note of a field that stays behind.
    pub(super) fn note_not_carried(&mut self, name: &str) {
        if self.not_carried.contains(name) {
            return;
        }
        let name = shortened(name.to_owned());
        if self.not_carried.len() < LISTED {
            self.not_carried.insert(name);
        } else if !self.not_carried.contains(&name) {
            self.unlisted.not_carried += 1;
        }
    }

    pub(super) fn add(&mut self, part: Self) {
        self.imported_columns += part.imported_columns;
        self.imported_chunks += part.imported_chunks;
        self.new_chunks += part.new_chunks;
        self.replaced_chunks += part.replaced_chunks;
        self.unchanged_chunks += part.unchanged_chunks;
        self.removed_chunks += part.removed_chunks;
        self.kept_chunks += part.kept_chunks;
        self.entities += part.entities;
        self.detached += part.detached;
        self.players += part.players;
        self.kept_entities += part.kept_entities;
        self.imported_files += part.imported_files;
        self.kept_files += part.kept_files;
        self.old_slots += part.old_slots;
        self.untested = Untested::and(self.untested, part.untested);
        self.kept_slots += part.kept_slots;
        self.kept_slot_bytes += part.kept_slot_bytes;
        self.unreadable.extend(part.unreadable);
        part.reasons.into_iter().for_each(|reason| self.note_reason(reason));
        self.rekeyed.extend(part.rekeyed);
        self.not_carried.extend(part.not_carried);
        self.regions_as_files.extend(part.regions_as_files);
        self.players_as_files.extend(part.players_as_files);
        self.two_states = self.two_states.take().or(part.two_states);
        self.too_large.extend(part.too_large);
        self.unlisted.unreadable += part.unlisted.unreadable;
        self.unlisted.rekeyed += part.unlisted.rekeyed;
        self.unlisted.not_carried += part.unlisted.not_carried;
        self.unlisted.regions_as_files += part.unlisted.regions_as_files;
        self.unlisted.players_as_files += part.unlisted.players_as_files;
        self.unlisted.too_large += part.unlisted.too_large;
    }
}

/// A reason without what differs from part to part: numbers, and what is between quotation marks.
fn kind(reason: &str) -> impl Iterator<Item = char> {
    let mut chars = reason.chars().peekable();
    std::iter::from_fn(move || {
        let first = chars.next()?;
        let first = match first {
            '-' => chars.next_if(char::is_ascii_digit).unwrap_or('-'),
            first => first,
        };
        if first == '"' {
            let mut is_escaped = false;
            while chars.next_if(|c| *c != '"' || is_escaped).is_some_and(|c| {
                is_escaped = c == '\\' && !is_escaped;
                true
            }) {}
            chars.next();
        } else if first.is_ascii_digit() || first == '?' {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            return Some('#');
        }
        Some(first)
    })
}

/// The text, or its beginning and how much more there is: names in a save can be 65,535 bytes long.
fn shortened(text: String) -> String {
    if text.len() <= TEXT_BYTES {
        return text;
    }
    let end = (0..=TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (kept, left_out) = text.split_at(end);
    format!("{kept}… ({} bytes more)", left_out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_is_one_entry_whatever_its_numbers_and_names() {
        let mut report = ImportReport::default();
        for slot in 0..3600 {
            let reason =
                format!("section {}: property \"l{slot}\\\"\" of \"a:b\" is no string", slot % 24 - 4);
            report.note_unreadable("region/r.0.0.mca", Some(slot as u16), reason);
        }
        report.note_unreadable("region/r.0.1.mca", None, "it is gone".into());
        let [first, gone] = &report.reasons[..] else { panic!("{:?}", report.reasons) };
        assert_eq!(first.reason, "section -4: property \"l0\\\"\" of \"a:b\" is no string");
        let slots: Vec<_> = first.first.iter().filter_map(|part| part.slot).collect();
        assert_eq!((first.count, slots.as_slice(), gone.count), (3600, &[0, 1, 2, 3][..], 1));
        let mut all = ImportReport::default();
        all.add(report.clone());
        all.add(report);
        assert_eq!((all.reasons.len(), all.reasons[0].count, all.reasons[0].first.len()), (2, 7200, 4));
    }

    #[test]
    fn reasons_without_end_are_counted_together() {
        let mut report = ImportReport::default();
        for reason in 0..10_000_u32 {
            let letters = reason.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
            report.note_unreadable("f", None, letters);
        }
        assert_eq!(report.reasons.len(), REASONS + 1);
        let last = report.reasons.last().expect("a hundred and one");
        assert_eq!((last.reason.as_str(), last.count, last.first.len()), ("", 9900, 1));
    }
}
