//! Which layout counts: the one that was met, the `level.dat` that is kept, or what is known without either.

use std::fs;

use serde_json::json;

use super::folder::{check_marks, regions};
use super::save::{
    Dimensions, END, LATER, LIVE, Layout, Mark, NETHER, NEW, OLD, OVERWORLD, Old, VANILLA, level,
};
use super::test_dir::{TestDir, layouts};
use crate::cmd::{run, text};

/// A world of an older `cg`, imported from the game's three dimensions and these files, goes into a layout.
#[track_caller]
fn check_unrecorded(files: &[(&str, &[u8])], layout: Layout) {
    // Wherever the regions were: only the stored files decide.
    for met in [Old, Dimensions] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.vanilla(met, LIVE);
        for (name, bytes) in files {
            save.file(name, bytes);
        }
        dir.import("save", "world", &[]).good();
        dir.forget_layout("world");
        let names: Vec<_> = files.iter().map(|(name, _)| name).collect();
        let exported = dir.export("world", "out", &[]).good();
        assert_eq!(exported["layout"], layouts(&VANILLA, layout), "{names:?}, met in {met:?}");
        assert_eq!(exported["warnings"], json!([]));
        let info = dir.dimensions("world");
        for dimension in VANILLA {
            assert_eq!(info[dimension]["layout"], layout.text(), "{names:?}");
            assert!(dir.at("out").join(layout.folder(dimension)).join("region").is_dir());
        }
        assert_eq!(regions(&dir.at("out")).len(), 10);
    }
}

#[test]
fn without_a_record_the_stored_level_decides() {
    check_unrecorded(&[], Old);
    for (data_version, layout) in [(OLD, Old), (4771, Old), (4786, Dimensions), (NEW, Dimensions)] {
        check_unrecorded(&[("level.dat", &level(data_version, "made"))], layout);
    }
    // Files of the other layout beside a version that is plain change nothing.
    check_unrecorded(&[("level.dat", &level(4771, "made")), ("players/data/a.dat", b"a")], Old);
    check_unrecorded(&[("level.dat", &level(4786, "made")), ("playerdata/a.dat", b"a")], Dimensions);
}

#[test]
fn without_a_record_a_snapshot_is_of_the_layout_that_its_files_are_of() {
    for data_version in [4772, 4785] {
        let level = level(data_version, "snapshot");
        let level: (&str, &[u8]) = ("level.dat", &level);
        check_unrecorded(&[level], Old);
        check_unrecorded(&[level, ("playerdata/a.dat", b"a"), ("data/raids.dat", b"r")], Old);
        check_unrecorded(&[level, ("players/data/a.dat", b"a")], Dimensions);
        check_unrecorded(&[level, ("data/minecraft/raids.dat", b"r")], Dimensions);
    }
}

#[test]
fn a_level_without_a_version_is_of_the_old_layout() {
    let bytes = crate::maker::gzip(&cg_anvil::nbt::document(|root| {
        root.compound("Data", |data| data.string("LevelName", "of 1.8").expect("short"));
    }));
    check_unrecorded(&[("level.dat", &bytes)], Old);
}

/// A save with some of the game's dimensions.
fn make(dir: &TestDir, name: &str, data_version: i32, layout: Layout, mark: Mark, dimensions: &[&str]) {
    let save = dir.save(name);
    save.level(data_version, name);
    for dimension in dimensions {
        save.dimension(layout.folder(dimension), mark, &[(0, 0)]);
    }
}

/// An export is of one layout only, and all that is vanilla is there.
#[track_caller]
fn check_exported(dir: &TestDir, out: &str, layout: Layout, marks: [&str; 3]) {
    let exported = dir.export("world", out, &[]).good();
    assert_eq!(
        (&exported["layout"], &exported["warnings"]),
        (&layouts(&VANILLA, layout), &json!([])),
        "{out}"
    );
    for (dimension, mark) in VANILLA.into_iter().zip(marks) {
        check_marks(&dir.at(out).join(layout.folder(dimension)), mark, &[(0, 0)]);
    }
    let root = if layout == Old { "dimensions" } else { "DIM-1" };
    assert!(!dir.at(out).join(root).exists(), "{out}");
    assert_eq!(regions(&dir.at(out)).len(), 9, "{out}");
}

#[test]
fn after_a_merge_the_level_that_is_kept_decides_for_what_was_not_met_beside_it() {
    let [old, new] = [(OLD, Old), (NEW, Dimensions)];
    for (name, first, second) in [("old, then new", old, new), ("new, then old", new, old)] {
        let dir = TestDir::new();
        make(&dir, "first", first.0, first.1, LIVE, &VANILLA);
        make(&dir, "second", second.0, second.1, LATER, &[OVERWORLD, NETHER]);
        dir.import("first", "world", &[]).good();
        dir.import("second", "world", &["--merge", "replace"]).ended(0);
        println!("{name} with replace: the end was met beside the level that is gone");
        check_exported(&dir, "out", second.1, ["later", "later", "live"]);
    }
    for (name, first, second) in [("old, then new", old, new), ("new, then old", new, old)] {
        let dir = TestDir::new();
        make(&dir, "first", first.0, first.1, LIVE, &[OVERWORLD, NETHER]);
        make(&dir, "second", second.0, second.1, LATER, &VANILLA);
        dir.import("first", "world", &[]).good();
        dir.import("second", "world", &["--merge", "keep"]).ended(0);
        println!("{name} with keep: the end was met beside a level that was not taken");
        check_exported(&dir, "out", first.1, ["live", "live", "later"]);
    }
}

#[test]
fn a_dimension_that_was_met_where_its_game_does_not_look_counts_only_beside_that_level() {
    let dir = TestDir::new();
    make(&dir, "first", NEW, Old, LIVE, &VANILLA);
    make(&dir, "second", NEW, Dimensions, LATER, &[OVERWORLD]);
    dir.import("first", "world", &[]).good();
    assert_eq!(dir.export("world", "before", &[]).ended(1)["layout"], layouts(&VANILLA, Old));
    dir.import("second", "world", &["--merge", "replace"]).ended(0);
    check_exported(&dir, "out", Dimensions, ["later", "live", "live"]);
}

#[test]
fn the_end_comes_from_an_old_backup_into_the_layout_of_the_world() {
    for merge in ["keep", "replace"] {
        let dir = TestDir::new();
        make(&dir, "save", NEW, Dimensions, LIVE, &[OVERWORLD, NETHER]);
        make(&dir, "backup", OLD, Old, LATER, &VANILLA);
        dir.import("save", "world", &[]).good();
        let report = dir.import("backup/DIM1", "world", &["--merge", merge]).ended(0);
        assert_eq!((&report["imported_columns"], &report["replaced_level"]), (&json!(1), &json!(null)));
        check_exported(&dir, "out", Dimensions, ["live", "live", "later"]);
        assert_eq!(fs::read(dir.at("out/level.dat")).expect("there"), level(NEW, "save"));
    }
}

#[test]
fn without_any_level_a_layout_goes_back_as_it_was_met() {
    for layout in [Old, Dimensions] {
        let dir = TestDir::new();
        dir.save("save").vanilla(layout, LIVE);
        let (imported, exported) = dir.round("save", &[]);
        assert_eq!(imported["layout"], layouts(&VANILLA, layout));
        assert_eq!((&exported["layout"], &exported["warnings"]), (&layouts(&VANILLA, layout), &json!([])));
        super::folder::check_same(&dir.at("save"), &dir.at("out"));
    }
}

#[test]
fn a_level_that_comes_later_decides_for_what_was_there_before() {
    for merge in ["keep", "replace"] {
        let dir = TestDir::new();
        dir.save("save").dimension("dimensions/minecraft/the_nether", LIVE, &[(0, 0)]);
        dir.save("save").dimension("dimensions/minecraft/the_end", LIVE, &[(0, 0)]);
        make(&dir, "second", OLD, Old, LATER, &[OVERWORLD]);
        dir.import("save", "world", &[]).good();
        dir.import("second", "world", &["--merge", merge]).ended(0);
        check_exported(&dir, "out", Old, ["later", "live", "live"]);
    }
}

#[test]
fn a_checkpoint_has_the_layout_and_a_box_of_chunks_does_not() {
    let dir = TestDir::new();
    // Each where its own level's game does not look, so that nothing but the record tells.
    make(&dir, "save", NEW, Old, LIVE, &[NETHER]);
    dir.import("save", "world", &[]).good();
    dir.cg("checkpoint", "world", &[text(&dir.at("copy"))]).good();
    assert_eq!(dir.export("copy", "out", &[]).ended(1)["layout"], layouts(&[NETHER], Old));

    make(&dir, "other", OLD, Dimensions, LATER, &[NETHER, END]);
    dir.import("other", "target", &[]).good();
    let pack = dir.at("nether.cgpack");
    let area = ["--dim", NETHER, "--box", "0", "64", "0", "15", "79", "15"];
    dir.cg("pack", "world", &[&[text(&pack)], &area[..]].concat()).good();
    assert_eq!(run(&["unpack", text(&pack), text(&dir.at("target"))]).code, 0);
    let exported = dir.export("target", "unpacked", &[]).ended(1);
    assert_eq!(exported["layout"], layouts(&[NETHER, END], Dimensions));
    check_marks(&dir.at("unpacked/dimensions/minecraft/the_nether"), "live", &[(0, 0)]);
}
