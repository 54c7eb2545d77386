//! Kept slots and a later save, and worlds of earlier releases.

use cg_anvil::column::{Blocks, Section};
use serde_json::json;

use super::super::save::{LATER, OLD, OVERWORLD, column, document};
use super::super::test_dir::{TestDir, list};
use super::faults::{make, place, torn_columns, unread_slots};
use super::{check_raw, info, number};

#[test]
fn the_same_save_again_changes_nothing() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    let before = dir.hash("world");
    for merge in ["keep", "replace"] {
        dir.import("save", "world", &["--merge", merge]).ended(1);
        assert_eq!(dir.hash("world"), before, "{merge}");
    }
    dir.export("world", "out", &[]).ended(0);
    check_raw(&dir, "save", "out");
}

/// A later save with sound columns where the first had a torn one and an unreadable slot.
fn later(dir: &TestDir) -> [(i32, i32); 2] {
    let places = [place(3), place(torn_columns().len() + 3)];
    let slot = |at| {
        let mut column = column(at, LATER);
        column.sections.push(Section { blocks: Some(Blocks::uniform("test:later")), ..Section::new(5) });
        (at, document(&column), LATER.time)
    };
    dir.save("later").level(OLD, "later").slots("region", places.map(slot));
    places
}

#[test]
fn a_column_that_can_be_read_takes_the_place_of_a_kept_slot() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    let first = dir.import("save", "world", &[]).ended(1);
    let places = later(&dir);
    dir.import("later", "world", &["--merge", "replace"]).ended(0);
    assert_eq!(number(&info(&dir, "world"), "objects"), number(&first, "kept_slots") - 2);
    dir.export("world", "out", &[]).ended(0);
    let marks = super::super::folder::marks(&dir.at("out"));
    for at in places {
        assert_eq!(marks[&at], "later");
    }
}

#[test]
fn kept_slots_of_the_world_are_kept_from_a_later_save() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    later(&dir);
    dir.import("later", "world", &["--merge", "keep", "--merge-files", "keep"]).ended(0);
    dir.export("world", "out", &[]).ended(0);
    check_raw(&dir, "save", "out");
}

#[test]
fn what_cannot_be_read_takes_the_place_of_no_column() {
    let dir = TestDir::new();
    let places = later(&dir);
    make(&dir.save("save"));
    dir.import("later", "world", &[]).good();
    for merge in ["keep", "replace"] {
        let report = dir.import("save", "world", &["--merge", merge]).ended(1);
        let all = torn_columns().len() + unread_slots(0).len() + 10;
        if merge == "keep" {
            assert_eq!(number(&report, "kept_slots"), all as u64 - 2, "{merge}");
        }
        dir.export("world", merge, &[]).ended(0);
        let marks = super::super::folder::marks(&dir.at(merge));
        for at in places {
            assert_eq!(marks[&at], "later", "{merge}");
        }
    }
}

#[test]
fn a_torn_column_of_an_earlier_release_is_named_and_counted() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    for key in dir.objects("world", "minecraft/slot") {
        dir.cg("object delete", "world", &[&key, "--yes"]).good();
    }
    // Of the others, earlier releases did not note it: a name that is too long, and fields that are not as the game has them.
    let torn = torn_columns().len() - 12;
    let verified = dir.cg("verify", "world", &["--json"]).json();
    assert_eq!(verified["unread"], json!({ "columns": torn, "kept_slots": 0, "kept_bytes": 0 }));
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(number(&report, "dropped_slot_count"), torn as u64);
    let said = dir.cg("export", "world", &["--mca", crate::cmd::text(&dir.at("said"))]).out;
    let line = format!(
        "{OVERWORLD} column (0, 0): a part of it could not be read when it was imported, and is missing"
    );
    assert!(said.lines().any(|said| said == line), "{said}");
    assert_eq!(list(&report["dropped_slots"]).len(), torn);
}
