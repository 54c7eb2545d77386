//! `--take-strays`: the other side of a dimension as a dimension of its own, and back where it was.

use serde_json::json;

use super::folder::{check_marks, check_same, copy, marks};
use super::save::{Dimensions, END, LIVE, NETHER, NEW, OLD, OVERWORLD, Old, STRAY, VANILLA, below};
use super::test_dir::TestDir;

const TAKE: [&str; 1] = ["--take-strays"];

#[test]
fn strays_go_back_into_the_folders_that_they_came_from() {
    for (data_version, live) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "both").vanilla(live, LIVE);
        for dimension in VANILLA {
            let folder = live.other().folder(dimension);
            // One column where the other side has one too, and one where it has none.
            save.dimension(folder, STRAY, &[(3, 4), (70, 70)]).file(&below(folder, "data/x.dat"), folder);
        }
        let (imported, exported) = dir.round("save", &TAKE);
        assert_eq!((&imported["strays"], &imported["imported_columns"]), (&json!([]), &json!(10)));
        assert_eq!((&imported["entities"], &imported["unreadable"]), (&json!(6), &json!([])));
        assert_eq!((&exported["columns"], &exported["not_exported"]), (&json!(10), &json!({})));
        check_same(save.path(), &dir.at("out"));
        let info = dir.dimensions("world");
        for name in ["stray:overworld", "stray:the_nether", "stray:the_end"] {
            assert_eq!(info[name]["chunks"], 2, "{info}");
        }
        assert_eq!(info.as_object().map(serde_json::Map::len), Some(6));
        // What came out goes in the same way.
        dir.import("out", "again", &TAKE).good();
        assert_eq!(dir.hash("again"), dir.hash("world"));
    }
}

#[test]
fn strays_of_the_same_bytes_as_what_is_live_are_not_mixed_with_it() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "copied").vanilla(Dimensions, LIVE);
    // The same entities too, so that their UUIDs are met twice.
    copy(&save.path().join(Dimensions.folder(NETHER)), &save.path().join("DIM-1"));
    let (imported, _) = dir.round("save", &TAKE);
    assert_eq!((&imported["imported_columns"], &imported["entities"]), (&json!(5), &json!(4)));
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn entities_without_blocks_are_taken_too() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).entities("", STRAY, &[(0, 0), (40, 0)]);
    save.points("DIM1", STRAY, &[(8, 8)]);
    let (imported, _) = dir.round("save", &TAKE);
    assert_eq!((&imported["strays"], &imported["entities"]), (&json!([]), &json!(5)));
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn one_stray_dimension_is_exported_by_its_name() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(70, 70)]);
    dir.import("save", "world", &TAKE).good();
    dir.export("world", "stray", &["-d", "stray:the_nether"]).ended(0);
    check_marks(&dir.at("stray/DIM-1"), "stray", &[(70, 70)]);
    dir.export("world", "live", &["-d", NETHER]).ended(0);
    check_marks(&dir.at("live/dimensions/minecraft/the_nether"), "live", &[(3, 4)]);
    assert!(!dir.at("live/DIM-1").exists());
}

#[test]
fn a_layout_that_moves_what_is_live_onto_its_strays_mixes_nothing() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(3, 4), (70, 70)]);
    dir.import("save", "world", &TAKE).good();
    let done = dir.export("world", "out", &["--layout", "old"]);
    assert_ne!(done.code, 0, "two dimensions want DIM-1: {}", done.report);
    if done.code == 1 {
        // What is live was asked for; the strays are counted as not exported, wherever else they may be.
        check_marks(&dir.at("out/DIM-1"), "live", &[(3, 4)]);
        check_marks(&dir.at("out"), "live", &[(0, 0), (-1, 33)]);
        check_marks(&dir.at("out/DIM1"), "live", &[(-5, -6)]);
        assert_ne!(done.report["not_exported"], json!({}), "{}", done.report);
    }
}

#[test]
fn a_dimension_that_has_the_name_of_strays_is_not_mixed_with_them() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(70, 70)]);
    save.dimension("dimensions/stray/the_nether", LIVE, &[(70, 70), (71, 71)]);
    let done = dir.import("save", "world", &TAKE);
    if done.code == 0 {
        assert_eq!(done.report["imported_columns"], 7, "{}", done.report);
        dir.export("world", "out", &[]).good();
        check_same(save.path(), &dir.at("out"));
    } else {
        // Nothing is lost without a word.
        assert!([1, 2].contains(&done.code) && !done.err.contains("unexpected argument"), "{}", done.err);
        assert!(
            done.code == 2 || done.report["unreadable"] != json!([]) || done.report["strays"] != json!([])
        );
    }
}

#[test]
fn without_strays_the_option_changes_nothing() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "one side").vanilla(Dimensions, LIVE);
    let (imported, _) = dir.round("save", &TAKE);
    assert_eq!(imported["strays"], json!([]));
    check_same(save.path(), &dir.at("out"));
    dir.import("save", "plain", &[]).good();
    assert_eq!(dir.hash("plain"), dir.hash("world"));
    // What the world knows of strays is not taken for what is live by a later import.
    save.dimension("DIM1", STRAY, &[(1, 1)]);
    let merged = dir.import("save", "world", &["--merge", "replace", "--take-strays"]).ended(0);
    assert_eq!(merged["strays"], json!([]));
    dir.export("world", "merged", &[]).good();
    check_same(save.path(), &dir.at("merged"));
    assert_eq!(marks(&dir.at("merged/dimensions/minecraft/the_end")).len(), 1);
    assert_eq!(dir.dimensions("world")[END]["chunks"], 1);
    assert_eq!(dir.dimensions("world")[OVERWORLD]["chunks"], 2);
}

#[test]
fn a_dimension_that_has_the_name_of_strays_is_said_before_anything_is_made() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(70, 70)]);
    // In no column the same, so that nothing would show it.
    save.dimension("dimensions/stray/the_nether", LIVE, &[(1, 1)]);
    let why = dir.import("save", "world", &TAKE).refused();
    assert!(why.contains("stray:the_nether"), "{why}");
    assert!(!dir.at("world").exists(), "nothing was made");
    assert_eq!(dir.import("save", "world", &[]).ended(1)["imported_columns"], 5);
}

#[test]
fn one_stray_dimension_is_exported_with_the_files_beside_it() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(70, 70)]);
    save.file("DIM-1/data/raids.dat", "r").file("data/minecraft/raids.dat", "of the save");
    dir.import("save", "world", &TAKE).good();
    dir.export("world", "stray", &["-d", "stray:the_nether"]).ended(0);
    check_same(&save.path().join("DIM-1"), &dir.at("stray/DIM-1"));
    assert_eq!(super::folder::other_files(&dir.at("stray")), ["DIM-1/data/raids.dat"]);
}
