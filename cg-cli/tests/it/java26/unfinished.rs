//! An import that was stopped continues as it was begun, or says why it does not.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use cg_anvil::import::{ImportError, ImportOptions, Merge, import};
use cg_anvil::save as anvil;
use cg_store::prelude::*;
use serde_json::json;

use super::folder::check_same;
use super::save::{Dimensions, LATER, LIVE, NEW, OLD, Old, STRAY};
use super::test_dir::{TestDir, list};
use crate::held;

/// Begins an import as the library does, and stops it after its first transaction.
pub(super) fn begin(save: &Path, world: &Path, merge: Option<Merge>) {
    let options = WorldOptions::process();
    let world = if world.exists() {
        World::builder().options(&options).open(world)
    } else {
        World::builder().options(&options).create(world)
    };
    let world = world.expect("a world");
    let options = ImportOptions { merge, stop_after_transactions: Some(1), ..ImportOptions::default() };
    let error = import(save, &world, &options, |_| {}).expect_err("it has more to write");
    assert!(matches!(error, ImportError::Stopped(1)), "{error}");
    world.close().expect("closed");
}

/// Whether a world holds half of an import.
pub(super) fn is_unfinished(world: &Path) -> bool {
    let Ok(world) = World::builder().options(&WorldOptions::process()).open(world) else { return false };
    let found = world
        .read_view(|view| view.for_each_property("minecraft:import", |_| std::ops::ControlFlow::Break(())));
    found.expect("no damage").is_some()
}

#[test]
fn an_import_is_not_continued_with_options_that_it_was_not_begun_with() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "save").vanilla(Dimensions, LIVE);
    begin(save.path(), &dir.at("world"), None);
    let before = dir.hash("world");
    for options in [
        &["--take-strays"][..],
        &["--as-dimension", "multiverse:mining"],
        &["--merge", "keep"],
        &["--merge", "replace"],
        &["--merge", "replace", "--merge-files", "replace"],
    ] {
        let why = dir.import("save", "world", options).refused();
        assert!(!why.contains("another save"), "{options:?}: {why}");
        assert_eq!(dir.hash("world"), before, "{options:?}");
    }
    assert_eq!(dir.import("save", "world", &[]).good()["imported_columns"], 4);
    dir.export("world", "out", &[]).good();
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn a_merge_is_not_continued_with_another_choice_of_files() {
    let dir = TestDir::new();
    dir.save("first").level(OLD, "first").vanilla(Old, LIVE).file("data/raids.dat", "r");
    let save = dir.save("second");
    save.level(NEW, "second").vanilla(Dimensions, LATER);
    dir.import("first", "world", &[]).good();
    begin(save.path(), &dir.at("world"), Some(Merge::Replace));
    let before = dir.hash("world");
    dir.import("second", "world", &["--merge", "replace", "--merge-files", "replace"]).refused();
    dir.import("second", "world", &["--merge", "keep"]).refused();
    dir.import("second", "world", &["--merge", "replace", "--take-strays"]).refused();
    assert_eq!(dir.hash("world"), before);
    let report = dir.import("second", "world", &["--merge", "replace", "--merge-files", "keep"]).ended(0);
    assert_eq!((&report["remaining_files"], &report["imported_columns"]), (&json!(1), &json!(4)));
    assert_eq!(report["replaced_level"]["was"]["data_version"], OLD);
}

/// Kills an import with these options on its way.
#[track_caller]
fn kill(dir: &TestDir, save: &str, world: &str, options: &[&str]) {
    let mut delay = Duration::from_millis(200);
    for _ in 0..30 {
        let _other = std::fs::remove_dir_all(dir.at(world));
        let was_at_work = dir.killed_after(delay, save, world, options);
        if was_at_work && is_unfinished(&dir.at(world)) {
            return;
        }
        assert!(was_at_work || dir.at(world).exists(), "{options:?}: cg does not know them");
        delay = if was_at_work { delay * 5 / 4 } else { delay * 2 / 3 };
    }
    panic!("no kill came on the way");
}

#[test]
fn options_that_an_import_was_begun_with_are_needed_to_continue_it() {
    let columns: Vec<_> = (0..1024).map(|at| (at % 32, at / 32)).collect();
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "save").vanilla(Dimensions, LIVE).blocks("DIM-1", STRAY, &columns);
    save.blocks("dimensions/minecraft/overworld", LIVE, &columns);
    for (world, options) in
        [("strays", &["--take-strays"][..]), ("other", &["--as-dimension", "multiverse:mining"])]
    {
        kill(&dir, "save", world, options);
        let before = dir.hash(world);
        dir.import("save", world, &[]).refused();
        dir.import("save", world, &["--take-strays", "--as-dimension", "multiverse:mining"]).refused();
        assert_eq!(dir.hash(world), before);
        let continued = dir.import("save", world, options);
        let whole = format!("{world} whole");
        let wanted = dir.import("save", &whole, options);
        assert_eq!((continued.code, &continued.report), (wanted.code, &wanted.report), "{}", continued.err);
        assert_eq!(dir.hash(world), dir.hash(&whole));
    }
    dir.export("strays", "out", &[]).good();
    check_same(save.path(), &dir.at("out"));
}

/// Strays and layouts are reported by an import that continues as by one that was never stopped.
#[test]
fn an_import_that_is_stopped_reports_as_if_it_was_not() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "save").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(0, 0), (40, 0)]);
    let whole = dir.import("save", "whole", &[]).ended(1);
    begin(save.path(), &dir.at("world"), None);
    assert_eq!(dir.import("save", "world", &[]).ended(1), whole);
    assert_eq!(dir.hash("world"), dir.hash("whole"));
    assert_eq!(list(&whole["strays"]).len(), 1);
}

/// Identity that an older `cg` gave a save: name, dimension, length and time of each region file.
fn identity(save: &Path) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for file in anvil::find(save).expect("a save").regions {
        let name = file.path.strip_prefix(save).expect("inside").to_str().expect("text").replace('\\', "/");
        let metadata = file.path.metadata().expect("there");
        let changed = metadata.modified().expect("a time").duration_since(UNIX_EPOCH).expect("since 1970");
        hash.update(format!("{name}\n{}\n{}\n{}\n", file.dimension, metadata.len(), changed.as_nanos()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn what_an_older_cg_left_unfinished_continues_or_is_refused_for_that() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "save").vanilla(Dimensions, LIVE);
    let world =
        World::builder().options(&WorldOptions::process()).create(dir.at("world")).expect("a new world");
    let head =
        json!({ "save": identity(save.path()), "merge": null, "began_after": world.last_commit().get() });
    let begun = world.transaction(|tx| {
        let name = Name::new("minecraft:import").expect("a name");
        tx.set_property(Property::Named(name), Some(head.to_string().into_bytes()));
        Ok::<_, Error>(())
    });
    begun.expect("committed");
    world.close().expect("closed");
    drop(world);
    let before = dir.hash("world");
    let done = dir.import("save", "world", &[]);
    if done.code == 2 {
        let why = done.refused();
        assert!(!why.contains("another save"), "{why}");
        assert_eq!(dir.hash("world"), before);
    } else {
        assert_eq!(done.good()["imported_columns"], 4);
        assert!(!is_unfinished(&dir.at("world")));
        assert_eq!(held::count(&held::open(&dir.at("world"))).columns.len(), 4);
        dir.export("world", "out", &[]).good();
        check_same(save.path(), &dir.at("out"));
    }
}
