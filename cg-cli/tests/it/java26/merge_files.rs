//! Files of a save that was replaced: how many stay, which are deleted when that is asked for, and a kill in between.

use std::fs;

use serde_json::{Value, json};

use super::folder::{check_same, copy, other_files};
use super::save::{Dimensions, LATER, LIVE, NETHER, NEW, OLD, Old, Save, below};
use super::test_dir::TestDir;
use crate::cmd::text;

const REPLACE: [&str; 4] = ["--merge", "replace", "--merge-files", "replace"];

/// Files of the save before that the upgraded one has no more.
const GONE: [&str; 6] =
    ["data/map_0.dat", "data/raids.dat", "notes.txt", "playerdata/a.dat", "stats/a.json", "stats/b.json"];

/// The save before, and as its game upgraded it.
fn make(dir: &TestDir) -> [Save; 2] {
    let [before, after] = ["before", "after"].map(|name| dir.save(name));
    before.level(OLD, "before").vanilla(Old, LIVE).file("icon.png", "old").file("datapacks/a.zip", "a");
    for name in GONE {
        before.file(name, name);
    }
    after.level(NEW, "after").vanilla(Dimensions, LATER).file("icon.png", "new").file("datapacks/a.zip", "a");
    after.file("players/data/a.dat", "a").file("data/minecraft/raids.dat", "r");
    [before, after]
}

/// Sums what a report says of deleted files.
#[track_caller]
fn deleted(report: &Value) -> u64 {
    let folders = report["deleted_files"].as_object().unwrap_or_else(|| panic!("{report}"));
    folders.values().map(|count| count.as_u64().expect("a number")).sum()
}

#[test]
fn files_that_remain_are_counted() {
    let dir = TestDir::new();
    let [before, after] = make(&dir);
    assert_eq!(dir.import("before", "world", &[]).good()["remaining_files"], 0);
    copy(&dir.at("world"), &dir.at("named"));
    copy(&dir.at("world"), &dir.at("read"));
    let report = dir.import("after", "world", &["--merge", "replace"]).ended(0);
    assert_eq!((&report["remaining_files"], deleted(&report)), (&json!(6), 0));
    assert_eq!(report["imported_files"], 5);
    let named = dir.import("after", "named", &["--merge", "replace", "--merge-files", "keep"]).ended(0);
    assert_eq!(named, report);
    assert_eq!(dir.hash("named"), dir.hash("world"));
    let said = dir.cg("import", "after", &[text(&dir.at("read")), "--merge", "replace"]);
    let has_count =
        |line: &str| line.split(|letter: char| !letter.is_ascii_digit()).any(|number| number == "6");
    assert!(said.out.lines().any(has_count), "{}", said.out);
    dir.export("world", "out", &[]).good();
    let mut wanted = [other_files(before.path()), other_files(after.path())].concat();
    wanted.sort();
    wanted.dedup();
    assert_eq!(other_files(&dir.at("out")), wanted);
}

#[test]
fn files_of_the_replaced_save_are_deleted_when_that_is_asked_for() {
    let dir = TestDir::new();
    let [_, after] = make(&dir);
    dir.import("before", "world", &[]).good();
    dir.cg("object put", "world", &["block/1/bricks", "--text", "a host's own"]).good();
    copy(&dir.at("world"), &dir.at("read"));
    let report = dir.import("after", "world", &REPLACE).ended(0);
    assert_eq!(report["deleted_files"], json!({ ".": 1, "data": 2, "playerdata": 1, "stats": 2 }));
    assert_eq!((&report["remaining_files"], &report["imported_files"]), (&json!(0), &json!(5)));
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(report["not_exported"], json!({ "objects of the host": 1 }));
    check_same(after.path(), &dir.at("out"));
    assert_eq!(dir.objects("world", "block/"), ["block/1/bricks"]);
    let said = dir.cg("import", "after", &[&[text(&dir.at("read"))], &REPLACE[..]].concat());
    for folder in ["data", "playerdata", "stats"] {
        assert!(said.out.contains(folder), "{folder}: {}", said.out);
    }
    assert_eq!(dir.hash("world"), dir.hash("read"));
    // Once more, there is nothing to delete.
    let again = dir.import("after", "world", &REPLACE).ended(0);
    assert_eq!((deleted(&again), &again["remaining_files"]), (0, &json!(0)));
}

#[test]
fn files_of_deeper_folders_are_deleted_too() {
    let dir = TestDir::new();
    make(&dir);
    dir.save("before").file("DIM-1/data/raids.dat", "r").file("datapacks/b/data/x/y.json", "{}");
    dir.import("before", "world", &[]).good();
    let report = dir.import("after", "world", &REPLACE).ended(0);
    assert_eq!(deleted(&report), 8, "{report}");
    let folders = report["deleted_files"].as_object().expect("folders");
    for folder in ["DIM-1", "datapacks"] {
        assert!(folders.keys().any(|name| name.starts_with(folder)), "{report}");
    }
    dir.export("world", "out", &[]).good();
    check_same(&dir.at("after"), &dir.at("out"));
    assert!(!dir.at("out/DIM-1").exists());
}

#[test]
fn a_source_without_a_level_deletes_nothing() {
    for source in ["regions", "before/DIM-1", "after/dimensions/minecraft/the_nether", "half"] {
        let dir = TestDir::new();
        let [before, _] = make(&dir);
        dir.save("regions").blocks("", LATER, &[(0, 0)]);
        fs::rename(dir.at("regions/region/r.0.0.mca"), dir.at("regions/r.0.0.mca")).expect("moved");
        fs::remove_dir(dir.at("regions/region")).expect("empty");
        dir.save("half").vanilla(Old, LATER).file("data/map_1.dat", "1");
        dir.import("before", "world", &[]).good();
        let done = dir.import(source, "world", &REPLACE);
        assert!(!done.err.contains("unexpected argument"), "{}", done.err);
        if done.code != 2 {
            assert_eq!(deleted(&done.report), 0, "{source}");
        }
        dir.export("world", "out", &[]).ended(0);
        let kept = other_files(&dir.at("out"));
        for name in other_files(before.path()) {
            assert!(kept.contains(&name), "{source}: {name}");
        }
    }
}

#[test]
fn files_are_deleted_only_with_a_merge_that_replaces() {
    let dir = TestDir::new();
    make(&dir);
    dir.import("after", "world", &["--merge-files", "replace"]).refused();
    assert!(!dir.at("world").exists(), "nothing was made");
    dir.import("before", "world", &[]).good();
    let before = dir.hash("world");
    dir.import("after", "world", &["--merge", "keep", "--merge-files", "replace"]).refused();
    dir.import("after", "world", &["--merge-files", "replace"]).refused();
    assert_eq!(dir.import("after", "world", &["--merge", "replace", "--merge-files", "some"]).code, 2);
    assert_eq!(dir.hash("world"), before);
}

#[test]
fn a_deletion_that_is_killed_continues() {
    let dir = TestDir::new();
    let [before, after] = make(&dir);
    for index in 0..300 {
        before.file(&format!("playerdata/{index}.dat"), "p");
        // Of several transactions.
        after.file(&below("players/data", &format!("{index}.dat")), vec![index as u8; 100_000]);
    }
    dir.import("before", "before world", &[]).good();
    copy(&dir.at("before world"), &dir.at("whole"));
    let whole = dir.import("after", "whole", &REPLACE).ended(0);
    assert_eq!(deleted(&whole), 306, "{}", whole["deleted_files"]);
    copy(&dir.at("before world"), &dir.at("killed"));
    let (done, kills) = dir.import_killed("after", "killed", &REPLACE);
    assert!(kills > 0, "the import was faster than every delay");
    let report = done.ended(0);
    // One that was killed after its last transaction has nothing to do when it is run again.
    if deleted(&report) > 0 {
        assert_eq!(report["deleted_files"], whole["deleted_files"]);
    }
    assert_eq!(dir.hash("killed"), dir.hash("whole"));
    dir.export("killed", "out", &[]).good();
    check_same(after.path(), &dir.at("out"));
}

#[test]
fn what_the_import_itself_brings_is_not_deleted() {
    let dir = TestDir::new();
    let [_, after] = make(&dir);
    // Into a world that has nothing of a save but a host's chunks.
    dir.save("bare").blocks(Dimensions.folder(NETHER), LIVE, &[(50, 50)]);
    dir.import("bare", "world", &[]).good();
    let report = dir.import("after", "world", &REPLACE).ended(0);
    assert_eq!((deleted(&report), &report["remaining_files"]), (0, &json!(0)));
    dir.export("world", "out", &[]).good();
    assert_eq!(other_files(&dir.at("out")), other_files(after.path()));
}

#[cfg(unix)]
#[test]
fn files_that_the_save_has_where_no_import_looks_are_not_deleted() {
    use std::os::unix::fs::symlink;
    let dir = TestDir::new();
    let [_, after] = make(&dir);
    // A file and a folder as links, a world of ours, and a folder that is too deep.
    let deep = vec!["d"; 34].join("/");
    dir.save("shared").file("a.dat", "a").file("notes.txt", "n");
    dir.save("before").file("worlds/w/x.txt", "x").file(&format!("{deep}/x.txt"), "x");
    dir.import("before", "world", &[]).ended(1);
    // An import takes no file that is too deep; a host may.
    let deep_key = format!("minecraft/file/{deep}/x.txt");
    dir.cg("object put", "world", &[&deep_key, "--text", "x"]).good();
    after.file("worlds/w/world.cg", "").file(&format!("{deep}/x.txt"), "x");
    symlink(dir.at("shared"), after.path().join("playerdata")).expect("a link");
    symlink(dir.at("shared/notes.txt"), after.path().join("notes.txt")).expect("a link");
    let report = dir.import("after", "world", &REPLACE).ended(1);
    assert_eq!(report["unreadable"].as_array().map(Vec::len), Some(4), "{report}");
    assert_eq!(report["deleted_files"], json!({ "data": 2, "stats": 2 }), "{report}");
    assert_eq!(report["remaining_files"], 0);
    for name in ["playerdata/a.dat", "notes.txt", "worlds/w/x.txt", &format!("{deep}/x.txt")] {
        let key = format!("minecraft/file/{name}");
        assert_eq!(dir.objects("world", &key), std::slice::from_ref(&key), "{name}");
    }
    // A name that only begins like that of a link is another.
    assert_eq!(dir.objects("world", "minecraft/file/stats/"), [""; 0]);
}
