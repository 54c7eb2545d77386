//! An unfinished import of a save that changed since: it continues, or is given up, and locks nothing.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use cg_anvil::import::Merge;
use cg_format::entity::Owner;
use cg_store::prelude::*;
use serde_json::{Value, json};

use super::folder::{copy, marks};
use super::save::{At, LATER, LIVE, OLD, OVERWORLD, Save, column, document};
use super::test_dir::{TestDir, list};
use super::unfinished::{begin, is_unfinished};
use crate::cmd::text;
use crate::{held, maker};

/// Two parts of one region, which come in two transactions, and a region of its own.
const AT: [At; 3] = [(0, 0), (20, 0), (40, 0)];
const REGION: &str = "region/r.0.0.mca";

/// A world of one save, and half of a merge with another.
fn half_merged(dir: &TestDir, merge: Merge) -> Save {
    dir.save("first").level(OLD, "first").blocks("", LIVE, &[(2, 2)]);
    let second = dir.save("second");
    second.level(OLD, "second").blocks("", LATER, &AT);
    dir.import("first", "world", &[]).good();
    copy(&dir.at("world"), &dir.at("before"));
    begin(second.path(), &dir.at("world"), Some(merge));
    assert!(is_unfinished(&dir.at("world")));
    second
}

/// As a running server does it.
fn touch(save: &Save, name: &str) {
    let file = File::options().append(true).open(save.path().join(name)).expect("there");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000)).expect("the file is ours");
}

/// The files that a report names as changed or gone, with the beginning of what it says.
#[track_caller]
fn named(report: &Value) -> Vec<(&str, &str)> {
    let lost = list(&report["unreadable"]).iter();
    lost.map(|lost| {
        let reason = lost["reason"].as_str().expect("text");
        (lost["file"].as_str().expect("text"), reason.split(" since ").next().expect("a part"))
    })
    .collect()
}

/// Asserts which columns of the second save an export holds, beside the one of the first.
#[track_caller]
fn check_columns(dir: &TestDir, later: &[At]) {
    let later = later.iter().map(|at| (*at, "later".to_owned()));
    assert_eq!(marks(&dir.at("out")), later.chain([((2, 2), "live".to_owned())]).collect());
}

#[test]
fn a_merge_continues_when_the_save_was_touched() {
    for merge in ["replace", "keep"] {
        let dir = TestDir::new();
        let second = half_merged(&dir, if merge == "keep" { Merge::Keep } else { Merge::Replace });
        touch(&second, REGION);
        let report = dir.import("second", "world", &["--merge", merge]).ended(1);
        assert_eq!(named(&report), [(REGION, "its length or time changed")], "{merge}");
        assert_eq!(report["imported_columns"], 3);
        assert!(!is_unfinished(&dir.at("world")));
        dir.export("world", "out", &[]).good();
        check_columns(&dir, &AT);
    }
}

#[test]
fn a_merge_continues_with_what_the_save_holds_by_then() {
    let dir = TestDir::new();
    let second = half_merged(&dir, Merge::Replace);
    // A region that comes before the others, one that goes unread, and a column beside the one that was read.
    second.blocks("", LATER, &[(-40, 0)]).blocks("", LATER, &[(0, 0), (20, 0), (21, 0)]);
    fs::remove_file(second.path().join("region/r.1.0.mca")).expect("removed");
    let report = dir.import("second", "world", &["--merge", "replace"]).ended(1);
    assert_eq!(named(&report), [(REGION, "its length or time changed")]);
    assert_eq!(report["imported_columns"], 4);
    dir.export("world", "out", &[]).good();
    check_columns(&dir, &[(-40, 0), (0, 0), (20, 0), (21, 0)]);
    // To end with, the save can be imported once more, whole.
    dir.import("second", "world", &["--merge", "replace"]).ended(0);
}

#[test]
fn a_file_that_went_while_its_import_was_unfinished_is_named() {
    let dir = TestDir::new();
    let second = half_merged(&dir, Merge::Replace);
    fs::remove_file(second.path().join(REGION)).expect("removed");
    let report = dir.import("second", "world", &["--merge", "replace"]).ended(1);
    assert_eq!(named(&report), [(REGION, "it is gone")]);
    assert_eq!(report["imported_columns"], 2);
    assert!(!is_unfinished(&dir.at("world")));
}

#[test]
fn a_save_of_another_place_does_not_continue_an_import() {
    let dir = TestDir::new();
    let second = half_merged(&dir, Merge::Replace);
    // Moved and otherwise as it was, it is the same.
    fs::rename(second.path(), dir.at("moved")).expect("moved");
    copy(&dir.at("world"), &dir.at("again"));
    dir.import("moved", "again", &["--merge", "replace"]).ended(0);
    dir.save("third").level(OLD, "third").blocks("", LATER, &AT);
    let before = dir.hash("world");
    let why = dir.import("third", "world", &["--merge", "replace"]).refused();
    assert!(why.contains("another save") && why.contains("--abandon"), "{why}");
    assert_eq!(dir.hash("world"), before);
}

#[test]
fn an_unfinished_import_is_said() {
    let dir = TestDir::new();
    let second = half_merged(&dir, Merge::Keep);
    let save = fs::canonicalize(second.path()).expect("there");
    let unfinished =
        json!({ "save": text(&save), "begun": "with the merge mode `keep`", "imported_columns": 1 });
    for verb in ["info", "verify"] {
        let said = dir.cg(verb, "world", &["--json"]);
        assert_eq!((said.code, &said.json()["unfinished_import"]), (1, &unfinished), "{verb}");
    }
    assert_eq!(dir.cg("verify", "world", &["--json"]).json()["ok"], false);
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!((&report["unfinished_import"], &report["columns"]), (&unfinished, &json!(2)));
    let line = format!(
        "UNFINISHED import of {} with the merge mode `keep`, columns so far 1; run it again, or give it up with `cg import --abandon`",
        save.display()
    );
    let said = dir.at("said");
    for (verb, args) in [("info", &[][..]), ("verify", &[]), ("export", &["--mca", text(&said)])] {
        let said = dir.cg(verb, "world", args);
        assert!(said.out.lines().any(|said| said == line), "{verb}: {}", said.out);
    }
    dir.import("second", "world", &["--merge", "keep"]).ended(0);
    for verb in ["info", "verify"] {
        let said = dir.cg(verb, "world", &["--json"]);
        assert_eq!((said.code, said.json().get("unfinished_import")), (0, None), "{verb}");
    }
}

#[test]
fn an_import_that_is_abandoned_leaves_all_that_came_and_no_lock() {
    let dir = TestDir::new();
    let second = half_merged(&dir, Merge::Replace);
    touch(&second, REGION);
    let said = dir.cg("import --abandon", "world", &["--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.json()["abandoned"]["imported_columns"], 1);
    assert!(!is_unfinished(&dir.at("world")));
    dir.cg("info", "world", &[]).good();
    dir.export("world", "out", &[]).good();
    check_columns(&dir, &AT[..1]);
    let said = dir.cg("import --abandon", "world", &[]);
    assert_eq!((said.code, said.err.as_str()), (2, "cg: no import into the world is unfinished\n"));
    // What was begun in one way may be done in another now, and of another save.
    dir.import("second", "world", &["--merge", "keep"]).ended(0);
    dir.import("first", "world", &["--merge", "replace"]).ended(0);
}

#[test]
fn an_import_whose_progress_is_damaged_is_abandoned() {
    for damaged in ["minecraft:import", "minecraft:import/0"] {
        let dir = TestDir::new();
        half_merged(&dir, Merge::Replace);
        let world = held::open(&dir.at("world"));
        let spoiled = world.transaction(|tx| {
            let name = Name::new(damaged).expect("a name");
            tx.set_property(Property::Named(name), Some(b"{".to_vec()));
            Ok::<_, Error>(())
        });
        spoiled.expect("committed");
        world.close().expect("closed");
        drop(world);
        assert_eq!(dir.cg("info", "world", &[]).code, 1);
        let done = dir.import("second", "world", &["--merge", "replace"]);
        assert!(done.code == 1 && done.err.contains("--abandon"), "{done:?}");
        dir.cg("import --abandon", "world", &[]).good();
        dir.cg("info", "world", &[]).good();
        dir.import("second", "world", &["--merge", "replace"]).ended(0);
    }
}

#[test]
fn entities_that_wait_are_given_to_their_chunks_when_an_import_is_abandoned() {
    let dir = TestDir::new();
    let save = dir.save("save");
    // The pig is listed in a column and stands in the next, which comes later.
    let mut first = column((15, 0), LIVE);
    first.entities = vec![maker::entity("minecraft:pig", [0, 0, 0, 3], [256.5, 70.0, 5.0], &[])];
    let slots = [first, column((16, 0), LIVE), column((40, 0), LIVE)];
    save.slots("region", slots.iter().map(|column| ((column.pos.x, 0), document(column), LIVE.time)));
    let world =
        World::builder().options(&WorldOptions::process()).create(dir.at("world")).expect("a new world");
    let options = cg_anvil::import::ImportOptions {
        merge: Some(Merge::Keep),
        stop_after_transactions: Some(2),
        ..Default::default()
    };
    cg_anvil::import::import(save.path(), &world, &options, |_| {}).expect_err("it has more to write");
    world.close().expect("closed");
    drop(world);
    dir.cg("import --abandon", "world", &[]).good();
    let world = held::open(&dir.at("world"));
    let overworld = world.catalog().dimension(OVERWORLD).expect("registered");
    let pig = EntityId::new(uuid::Uuid::from_u128(3));
    let at = ChunkAt::new(overworld, ChunkPos::constant(16, 4, 0));
    assert_eq!(world.entity(pig).expect("no damage").expect("stored").owner, Owner::Chunk(at));
}
