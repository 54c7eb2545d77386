//! The shared saves of 26.1.1 and 26.2, through a world and back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::folder::{check_bytes, check_same, copy, move_folder, other_files, regions, slots};
use super::save::{Dimensions, END, NETHER, OLD, OVERWORLD, Old, VANILLA, level, moved};
use super::test_dir::{TestDir, layouts, list};
use crate::worlds;

/// `S`: a server of 26.1.1 with all three dimensions.
const SERVER: &str = "java26/26.1.1_paper_server";
/// `T`: a map of 26.2 that was opened in every version.
const MAP: &str = "java26/26.2_upgraded_map";

/// A copy of a shared save, as `save`; `None` where the shared saves are not there, which was said.
fn copied(dir: &TestDir, name: &str) -> Option<PathBuf> {
    let source = worlds::folder()?.join(name);
    copy(&source, &dir.at("save"));
    Some(dir.at("save"))
}

/// Leaves of a copy only what a test needs, so that it takes no longer than it must.
fn keep_dimensions(save: &Path, dimensions: &[&str]) {
    for dimension in VANILLA.into_iter().filter(|dimension| !dimensions.contains(dimension)) {
        fs::remove_dir_all(save.join(Dimensions.folder(dimension))).expect("there");
    }
}

/// Moves the regions of the game's dimensions to where the version before has them.
fn move_back(save: &Path) {
    for name in regions(save) {
        let to = moved(&name, Dimensions, Old);
        fs::create_dir_all(save.join(&to).parent().expect("below the save")).expect("a folder");
        fs::rename(save.join(name), save.join(to)).expect("moved");
    }
}

/// The columns and entities that another decoder counted in a save.
fn counted(name: &str) -> [u64; 2] {
    let truth = worlds::truth(&worlds::folder().expect("it was there"));
    let of = |kind: &str, field: &str| -> u64 {
        let files = truth.iter().filter(|(file, truth)| file.starts_with(name) && truth["kind"] == kind);
        files
            .map(|(_, truth)| if truth["format"].get("pre-1.13").is_some() { 0 } else { sum(&truth[field]) })
            .sum()
    };
    [of("mca", "chunks"), of("mca_entities", "entities_total")]
}

fn sum(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn a_server_of_26_1_1_comes_back() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, SERVER) else { return };
    let (imported, exported) = dir.round("save", &[]);
    let [columns, entities] = counted(SERVER);
    assert_eq!((sum(&imported["imported_columns"]), sum(&imported["entities"])), (columns, entities));
    assert_eq!((&imported["imported_files"], &imported["old_slots"]), (&json!(53), &json!(0)));
    assert_eq!((&imported["players"], &imported["players_as_files"]), (&json!(3), &json!({})));
    assert_eq!((&exported["players"], &exported["changed_players"]), (&json!(3), &json!(0)));
    assert_eq!(imported["layout"], layouts(&VANILLA, Dimensions));
    assert_eq!((sum(&exported["columns"]), sum(&exported["entities"])), (columns, entities));
    assert_eq!((&exported["files"], &exported["other_files"]), (&json!(9), &json!(53)));
    assert_eq!((&exported["layout"], &exported["warnings"]), (&imported["layout"], &json!([])));
    check_same(&save, &dir.at("out"));
    // Points of interest of columns without blocks, byte for byte.
    let mut points = 0;
    for region in ["r.0.0.mca", "r.0.1.mca"] {
        let of = |root: &Path| slots(&root.join("dimensions/minecraft/overworld/poi").join(region));
        check_bytes(region, &of(&save), &of(&dir.at("out")));
        points += of(&save).len();
    }
    assert_eq!(points, 19);
    dir.export("world", "nether", &["-d", NETHER]).good();
    check_same(&save.join(Dimensions.folder(NETHER)), &dir.at("nether").join(Dimensions.folder(NETHER)));
    assert!(!dir.at("nether/level.dat").exists() && !dir.at("nether/DIM-1").exists());
}

#[test]
fn a_map_of_26_2_comes_back_with_its_oldest_chunks() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, MAP) else { return };
    let (imported, exported) = dir.round("save", &[]);
    let [columns, entities] = counted(MAP);
    assert_eq!((sum(&imported["imported_columns"]), sum(&imported["entities"])), (columns, entities));
    assert_eq!((&imported["unreadable"], &imported["not_carried"]), (&json!([]), &json!([])));
    for report in [&imported, &exported] {
        assert_eq!(report["old_slots"], 27);
    }
    assert_eq!((&imported["players"], &exported["players"]), (&json!(5), &json!(5)));
    check_same(&save, &dir.at("out"));
    let region = "dimensions/minecraft/overworld/region/r.-2.-2.mca";
    check_bytes(region, &slots(&save.join(region)), &slots(&dir.at("out").join(region)));
}

#[test]
fn a_server_of_the_layout_before_comes_back() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, SERVER) else { return };
    move_back(&save);
    fs::write(save.join("level.dat"), level(OLD, "world")).expect("written");
    fs::remove_file(save.join("level.dat_old")).expect("there");
    move_folder(&save.join("players/data"), &save.join("playerdata"));
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!((&imported["layout"], &imported["strays"]), (&layouts(&VANILLA, Old), &json!([])));
    assert_eq!((&exported["layout"], &exported["warnings"]), (&imported["layout"], &json!([])));
    check_same(&save, &dir.at("out"));
}

#[test]
fn what_an_older_cg_exported_of_a_server_comes_in_whole() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, SERVER) else { return };
    keep_dimensions(&save, &[NETHER, END]);
    copy(&save, &dir.at("original"));
    move_back(&save);
    let imported = dir.import("save", "world", &[]).good();
    assert_eq!((&imported["imported_columns"], &imported["strays"]), (&json!(288), &json!([])));
    assert_eq!(imported["layout"], layouts(&[NETHER, END], Old));
    assert_ne!(dir.export("world", "as imported", &[]).ended(1)["warnings"], json!([]));
    dir.export("world", "out", &["--layout", "new"]).good();
    check_same(&dir.at("original"), &dir.at("out"));
    // As of a world that an older `cg` imported, too.
    dir.forget_layout("world");
    dir.export("world", "unrecorded", &[]).good();
    check_same(&dir.at("original"), &dir.at("unrecorded"));
}

#[test]
fn a_stray_of_another_dimension_does_not_win() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, SERVER) else { return };
    keep_dimensions(&save, &[NETHER, END]);
    copy(&save, &dir.at("original"));
    copy(&save.join("dimensions/minecraft/the_end/region"), &save.join("DIM-1/region"));
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["unreadable"], &report["imported_columns"]), (&json!([]), &json!(288)));
    let newest = |folder: &str| {
        let slots = slots(&save.join(folder).join("region/r.0.0.mca"));
        slots.values().map(|(time, _)| *time).max().expect("slots")
    };
    let live = Dimensions.folder(NETHER);
    assert_eq!(
        report["strays"],
        json!([{
            "dimension": NETHER, "folder": "DIM-1", "files": 1, "columns": 144, "newest": newest("DIM-1"),
            "live": { "folder": live, "files": 1, "columns": 144, "newest": newest(live) },
        }])
    );
    dir.export("world", "out", &[]).good();
    check_same(&dir.at("original"), &dir.at("out"));
    let taken = dir.import("save", "taken", &["--take-strays"]).good();
    assert_eq!(taken["imported_columns"], 432);
    dir.export("taken", "both", &[]).good();
    check_same(&save, &dir.at("both"));
}

#[test]
fn entities_of_strays_are_not_added() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, MAP) else { return };
    // Blocks are not the matter here, but for the one region that makes a side live.
    fs::remove_file(save.join("dimensions/minecraft/overworld/region/r.-3.2.mca")).expect("there");
    fs::remove_file(save.join("dimensions/minecraft/the_nether/region/r.-1.0.mca")).expect("there");
    copy(&save, &dir.at("original"));
    copy(&save.join("dimensions/minecraft/overworld/entities"), &save.join("entities"));
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["entities"], &report["rekeyed"]), (&json!(6), &json!([])));
    let [stray] = list(&report["strays"]) else { panic!("{report}") };
    assert_eq!(
        (&stray["dimension"], &stray["folder"], &stray["files"]),
        (&json!(OVERWORLD), &json!("."), &json!(1))
    );
    dir.export("world", "out", &[]).good();
    check_same(&dir.at("original"), &dir.at("out"));
}

#[test]
fn a_dimension_of_a_server_is_imported_by_its_own_folder() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, SERVER) else { return };
    let nether = Dimensions.folder(NETHER);
    for (world, folder, files) in [
        ("own", nether.to_owned(), other_files(&save.join(nether)).len()),
        ("regions", format!("{nether}/region"), 0),
    ] {
        let report = dir.import(save.join(folder), world, &[]).good();
        assert_eq!((&report["imported_columns"], &report["imported_files"]), (&json!(144), &json!(files)));
        let info = dir.dimensions(world);
        let names: Vec<_> = info.as_object().expect("dimensions").keys().collect();
        assert_eq!(names, [NETHER]);
    }
    dir.export("own", "out", &[]).good();
    check_same(&save.join(nether), &dir.at("out").join(nether));
    assert!(!dir.at("out/data").exists(), "its data are not the save's own");
}

#[test]
fn an_upgraded_save_replaces_the_save_before() {
    let dir = TestDir::new();
    let Some(after) = copied(&dir, SERVER) else { return };
    keep_dimensions(&after, &[NETHER, END]);
    // As it was before the game moved it.
    let before = dir.at("before");
    copy(&after, &before);
    move_back(&before);
    fs::write(before.join("level.dat"), level(OLD, "world")).expect("written");
    move_folder(&before.join("players/data"), &before.join("playerdata"));
    let gone = fs::read_dir(before.join("playerdata")).expect("there").count();
    dir.import("before", "world", &[]).good();
    copy(&dir.at("world"), &dir.at("kept"));
    let report = dir.import("save", "kept", &["--merge", "replace"]).ended(0);
    assert_eq!((&report["remaining_files"], &report["deleted_files"]), (&json!(gone), &json!({})));
    let was = json!({ "name": "world", "data_version": OLD });
    assert_eq!(
        report["replaced_level"],
        json!({ "was": was, "is": { "name": "world", "data_version": 4788 } })
    );
    let report = dir.import("save", "world", &["--merge", "replace", "--merge-files", "replace"]).ended(0);
    assert_eq!(report["deleted_files"], json!({ "playerdata": gone }));
    dir.export("world", "out", &[]).good();
    check_same(&after, &dir.at("out"));
}

#[test]
fn a_map_without_any_generated_chunk_is_a_save() {
    let dir = TestDir::new();
    let Some(save) = copied(&dir, MAP) else { return };
    for name in regions(&save) {
        fs::remove_file(save.join(name)).expect("there");
    }
    let (imported, _) = dir.round("save", &[]);
    assert_eq!((&imported["imported_columns"], &imported["imported_files"]), (&json!(0), &json!(48)));
    check_same(&save, &dir.at("out"));
}
