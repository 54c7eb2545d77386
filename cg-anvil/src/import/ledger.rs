//! What an import met of each column of a dimension, in the file that is read and in the files before it.
//!
//! What is stored does not tell: a chunk that equals the one it replaces keeps its version.

use std::collections::BTreeMap;
use std::mem;

use serde::{Deserialize, Serialize};

use super::column_set::ColumnSet;
use crate::region::ColumnPos;

/// What an import may have met of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its slot of `region/`, which the import brought, or kept as bytes.
    Column,
    /// Something that the world had of it and keeps. Versions do not tell: entities that are given to a chunk make it
    /// another.
    Kept,
    /// Its points of interest, which the import brought.
    Points,
    /// Its slot of `entities/`, from which the import brought what is no entity.
    EntitySlot,
    /// Its slot of `region/`, which could not be read.
    Unread,
}

/// The columns of a file, or of several, by what was met of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Met {
    brought: ColumnSet,
    #[serde(default)]
    kept: ColumnSet,
    #[serde(default)]
    points: ColumnSet,
    #[serde(default)]
    entity_slots: ColumnSet,
    #[serde(default)]
    unread: ColumnSet,
}

/// The columns that an import met: those of the file that is read, and those of the files before it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Those of the file that is read.
    file: Met,
    /// Those of the files of its dimension before it.
    earlier: Met,
    /// Those of the files of the other dimensions.
    others: BTreeMap<String, Met>,
}

impl Met {
    /// Whether this was met of no column.
    pub(super) const fn is_without(&self, part: Part) -> bool {
        self.of(part).is_empty()
    }

    const fn of(&self, part: Part) -> &ColumnSet {
        match part {
            Part::Column => &self.brought,
            Part::Kept => &self.kept,
            Part::Points => &self.points,
            Part::EntitySlot => &self.entity_slots,
            Part::Unread => &self.unread,
        }
    }

    const fn of_mut(&mut self, part: Part) -> &mut ColumnSet {
        match part {
            Part::Column => &mut self.brought,
            Part::Kept => &mut self.kept,
            Part::Points => &mut self.points,
            Part::EntitySlot => &mut self.entity_slots,
            Part::Unread => &mut self.unread,
        }
    }

    fn add(&mut self, other: &Self) {
        for part in [Part::Column, Part::Kept, Part::Points, Part::EntitySlot, Part::Unread] {
            self.of_mut(part).add(other.of(part));
        }
    }
}

impl Ledger {
    /// Adds what was met of a file that was begun before, of a dimension.
    pub(super) fn add(&mut self, dimension: &str, met: &Met) {
        self.others.entry(dimension.to_owned()).or_default().add(met);
    }

    /// Begins a file of a dimension.
    pub(super) fn open(&mut self, dimension: &str) {
        self.earlier = self.others.remove(dimension).unwrap_or_default();
    }

    /// Goes on with what was met of the file.
    pub(super) fn resume(&mut self, met: &Met) {
        self.file.clone_from(met);
    }

    /// Ends a file of a dimension.
    pub(super) fn close(&mut self, dimension: &str) {
        let mut met = mem::take(&mut self.earlier);
        met.add(&mem::take(&mut self.file));
        self.others.insert(dimension.to_owned(), met);
    }

    /// What was met of the file that is read.
    pub(super) const fn of_file(&self) -> &Met {
        &self.file
    }

    /// Whether this was met of a column of the dimension, in any file.
    pub(super) fn has(&self, part: Part, column: ColumnPos) -> bool {
        self.earlier.of(part).contains(column) || self.file.of(part).contains(column)
    }

    /// Notes that this was met of a column in the file that is read.
    pub(super) fn note(&mut self, part: Part, column: ColumnPos) {
        self.file.of_mut(part).insert(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 5] = [Part::Column, Part::Kept, Part::Points, Part::EntitySlot, Part::Unread];

    #[test]
    fn each_part_is_known_by_itself_and_by_the_later_files_of_its_dimension() {
        for part in PARTS {
            let (mut ledger, at) = (Ledger::default(), ColumnPos::new(-33, 7));
            let has = |ledger: &Ledger| PARTS.map(|part| ledger.has(part, at));
            let only = PARTS.map(|other| other == part);
            ledger.open("a:b");
            ledger.note(part, at);
            assert_eq!(has(&ledger), only);
            assert!(!ledger.has(part, ColumnPos::new(-32, 7)) && !ledger.has(part, ColumnPos::new(-1, 7)));
            ledger.close("a:b");
            ledger.open("a:c");
            assert_eq!(has(&ledger), [false; 5], "of another dimension");
            ledger.close("a:c");
            ledger.open("a:b");
            assert_eq!(has(&ledger), only, "of an earlier file");
            assert_eq!(*ledger.of_file(), Met::default());
        }
    }

    #[test]
    fn what_was_met_of_a_file_goes_on_and_is_stored_as_before() {
        let mut ledger = Ledger::default();
        ledger.note(Part::Points, ColumnPos::new(1, 0));
        let stored = serde_json::to_string(ledger.of_file()).expect("JSON");
        let empty =
            r#""brought":[],"kept":[],"points":[{"x":0,"z":0,"slots":[2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}]"#;
        assert_eq!(stored, format!("{{{empty},\"entity_slots\":[],\"unread\":[]}}"));
        let mut again = Ledger::default();
        again.resume(&serde_json::from_str(&stored).expect("JSON"));
        assert_eq!(again.of_file(), ledger.of_file());
        again.close("a:b");
        again.add("a:b", ledger.of_file());
        again.open("a:b");
        assert!(again.has(Part::Points, ColumnPos::new(1, 0)));
    }
}
