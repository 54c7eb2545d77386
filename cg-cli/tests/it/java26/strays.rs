//! Both layouts in one save: which side is live, and what is said of the other.

use std::fs;

use serde_json::{Value, json};

use super::folder::{check_marks, check_moved, check_same, regions};
use super::save::{
    At, Dimensions, END, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, STRAY, Save, VANILLA, below, moved,
};
use super::test_dir::{Done, TestDir, layouts, list, texts};

const LIVE_COLUMNS: [At; 2] = [(0, 0), (5, 5)];
/// In two regions, one place in common with what is live.
const STRAY_COLUMNS: [At; 3] = [(0, 0), (1, 0), (40, 0)];

/// Both sides of a dimension.
fn both(save: &Save, dimension: &str, live: Layout) {
    save.dimension(live.folder(dimension), LIVE, &LIVE_COLUMNS);
    save.dimension(live.other().folder(dimension), STRAY, &STRAY_COLUMNS);
}

fn shown(folder: &str) -> &str {
    if folder.is_empty() { "." } else { folder }
}

/// Entry of the strays of [`both`] in a report.
fn refused(dimension: &str, live: Layout) -> Value {
    json!({
        "dimension": dimension,
        "folder": shown(live.other().folder(dimension)),
        // Two of blocks, one of entities, one of points of interest.
        "files": 4,
        "columns": 3,
        "newest": STRAY.time + 2,
        "live": { "folder": shown(live.folder(dimension)), "files": 3, "columns": 2, "newest": LIVE.time + 1 },
    })
}

/// Of a save with strays only the live side arrives, and each stray side is named once.
#[track_caller]
fn check_refused(dir: &TestDir, dimensions: &[&str], live: Layout, files: u64) {
    let report = dir.import("save", "world", &[]).ended(1);
    let mut found = list(&report["strays"]).to_vec();
    found.sort_by_key(|stray| VANILLA.iter().position(|dimension| stray["dimension"] == *dimension));
    assert_eq!(found, dimensions.iter().map(|dimension| refused(dimension, live)).collect::<Vec<_>>());
    assert_eq!(
        (&report["unreadable"], &report["not_carried"], &report["rekeyed"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let columns = dimensions.len() * LIVE_COLUMNS.len();
    assert_eq!(
        (&report["imported_columns"], &report["entities"]),
        (&json!(columns), &json!(dimensions.len()))
    );
    assert_eq!(report["imported_files"], files);
    assert_eq!(report["layout"], layouts(dimensions, live));
    assert_eq!(dir.dimensions("world").as_object().map(serde_json::Map::len), Some(dimensions.len()));
    dir.export("world", "out", &[]).good();
    for dimension in dimensions {
        check_marks(&dir.at("out").join(live.folder(dimension)), "live", &LIVE_COLUMNS);
    }
    assert_eq!(regions(&dir.at("out")).len(), dimensions.len() * 3);
}

#[test]
fn where_both_layouts_have_regions_the_level_decides() {
    for (data_version, files, live) in [
        (Some(NEW), &[][..], Dimensions),
        (Some(4786), &[], Dimensions),
        (Some(OLD), &[], Old),
        (Some(4771), &["players/data/a.dat"], Old),
        (Some(4772), &["players/data/a.dat"], Dimensions),
        (Some(4785), &["data/minecraft/raids.dat"], Dimensions),
        (Some(4785), &["playerdata/a.dat"], Old),
        (None, &[], Old),
    ] {
        let dir = TestDir::new();
        let save = dir.save("save");
        both(&save, NETHER, live);
        for name in files {
            save.file(name, "a");
        }
        data_version.map(|data_version| save.level(data_version, "both"));
        check_refused(&dir, &[NETHER], live, files.len() as u64 + u64::from(data_version.is_some()));
    }
}

#[test]
fn each_dimension_has_its_own_strays() {
    for (data_version, live) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "both");
        for dimension in VANILLA {
            both(&save, dimension, live);
        }
        check_refused(&dir, &VANILLA, live, 1);
    }
}

#[test]
fn strays_are_said_in_one_line() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both");
    both(&save, NETHER, Dimensions);
    let said = dir.cg("import", "save", &[crate::cmd::text(&dir.at("world"))]);
    assert_eq!(said.code, 1, "{}", said.err);
    let all = said.out + &said.err;
    let lines: Vec<_> = all.lines().filter(|line| line.contains("DIM-1")).collect();
    let [line] = lines[..] else { panic!("{lines:#?}") };
    for word in [NETHER, "4", "3", "dimensions/minecraft/the_nether"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert!(!all.contains("met before"), "{all}");
}

#[test]
fn the_only_side_with_regions_is_live_whatever_the_level_says() {
    for (data_version, only) in [(NEW, Old), (OLD, Dimensions)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        // Files of the other side are none of its regions, and no stray.
        let folder = only.other().folder(NETHER);
        save.level(data_version, "moved").dimension(only.folder(NETHER), LIVE, &LIVE_COLUMNS);
        save.file(&below(folder, "data/raids.dat"), "r").folder(&below(folder, "region"));
        let report = dir.import("save", "world", &[]).good();
        assert_eq!((&report["strays"], &report["imported_columns"]), (&json!([]), &json!(2)));
        assert_eq!(report["layout"], layouts(&[NETHER], only));
        let exported = dir.export("world", "out", &[]).ended(1);
        assert_eq!(exported["columns"], 2);
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn entities_alone_do_not_make_a_side_live() {
    for (data_version, live) in [(NEW, Old), (OLD, Dimensions), (NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        let other = live.other().folder(NETHER);
        save.level(data_version, "both").dimension(live.folder(NETHER), LIVE, &LIVE_COLUMNS);
        save.entities(other, STRAY, &STRAY_COLUMNS).points(other, STRAY, &STRAY_COLUMNS);
        let report = dir.import("save", "world", &[]).ended(1);
        assert_eq!((&report["imported_columns"], &report["entities"]), (&json!(2), &json!(1)));
        assert_eq!(report["layout"], layouts(&[NETHER], live));
        let [stray] = list(&report["strays"]) else { panic!("{report}") };
        assert_eq!((&stray["folder"], &stray["files"]), (&json!(other), &json!(4)));
        assert_eq!(stray["live"]["folder"], live.folder(NETHER));
        dir.export("world", "out", &["--layout", "new"]).ended(0);
        let out = dir.at("out/dimensions/minecraft/the_nether");
        let wanted = super::folder::slots(&save.path().join(live.folder(NETHER)).join("entities/r.0.0.mca"));
        super::folder::check_slots(
            "entities",
            &wanted,
            &super::folder::slots(&out.join("entities/r.0.0.mca")),
        );
        assert_eq!(regions(&out).len(), 3);
    }
}

#[test]
fn where_no_side_has_blocks_the_level_decides() {
    for (data_version, live) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "both").entities(live.folder(END), LIVE, &LIVE_COLUMNS);
        save.entities(live.other().folder(END), STRAY, &STRAY_COLUMNS);
        let report = dir.import("save", "world", &[]).ended(1);
        assert_eq!((&report["entities"], &report["strays"][0]["dimension"]), (&json!(2), &json!(END)));
        assert_eq!(report["strays"][0]["folder"], live.other().folder(END));
        dir.export("world", "out", &[]).good();
        assert_eq!(regions(&dir.at("out")), [below(live.folder(END), "entities/r.0.0.mca")]);
    }
}

/// A folder of the save's own beside a live overworld: nothing of it is added.
#[track_caller]
fn check_root(kind: &str) -> Done {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").dimension(Dimensions.folder(OVERWORLD), LIVE, &LIVE_COLUMNS);
    // Of the same bytes as what is live: only the folder tells.
    super::folder::copy(&save.path().join(Dimensions.folder(OVERWORLD)).join(kind), &save.path().join(kind));
    let done = dir.import("save", "world", &[]);
    assert_eq!(done.report["entities"], 1, "{kind}: {}", done.report);
    let [stray] = list(&done.report["strays"]) else { panic!("{kind}") };
    assert_eq!((&stray["dimension"], &stray["folder"]), (&json!(OVERWORLD), &json!(".")), "{kind}");
    assert_eq!(stray["files"], 1, "{kind}");
    assert_eq!((&done.report["not_carried"], &done.report["rekeyed"]), (&json!([]), &json!([])), "{kind}");
    dir.export("world", "out", &[]).good();
    check_same(&save.path().join("dimensions"), &dir.at("out/dimensions"));
    assert!(!dir.at("out").join(kind).exists(), "{kind}");
    done
}

#[test]
fn entities_and_points_in_the_saves_own_folder_are_not_added() {
    for kind in ["entities", "poi", "region"] {
        check_root(kind).ended(1);
    }
}

#[test]
fn files_beside_strays_are_files_as_any() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").file("DIM-1/data/raids.dat", "r").file("DIM-1/region/notes.txt", "n");
    both(&save, NETHER, Dimensions);
    // A part of a region to which no slot points is a file too.
    save.file("DIM-1/region/c.1.0.mcc", "a column that is too large");
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["imported_files"], &report["not_carried"]), (&json!(4), &json!([])));
    assert_eq!(report["regions_as_files"], json!(["DIM-1/region/c.1.0.mcc"]));
    assert_eq!(list(&report["strays"]).len(), 1);
    dir.export("world", "out", &[]).good();
    assert_eq!(fs::read(dir.at("out/DIM-1/data/raids.dat")).expect("there"), b"r");
    assert_eq!(super::folder::paths(&dir.at("out/DIM-1")).len(), 3);
}

#[test]
fn a_save_that_an_older_export_wrote_comes_in_whole() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "exported").vanilla(Old, LIVE).file("players/data/a.dat", "a");
    for dimension in VANILLA {
        save.file(&below(Dimensions.folder(dimension), "data/minecraft/raids.dat"), dimension);
    }
    save.dimension("dimensions/test/moon", LIVE, &[(9, 9)]);
    let report = dir.import("save", "world", &[]).good();
    assert_eq!((&report["strays"], &report["imported_columns"]), (&json!([]), &json!(5)));
    assert_eq!((&report["entities"], &report["imported_files"]), (&json!(4), &json!(5)));
    assert_eq!(texts(&report["not_carried"]), [""; 0]);
    dir.export("world", "out", &["--layout", "new"]).good();
    check_moved(save.path(), &dir.at("out"), |name| moved(name, Old, Dimensions));
}

#[test]
fn a_side_of_which_no_slot_is_in_use_is_not_mentioned() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).file("DIM-1/data/raids.dat", "r");
    save.file("DIM-1/region/r.0.0.mca", [0; 8192]).file("DIM-1/entities/r.0.0.mca", "");
    let report = dir.import("save", "world", &[]).good();
    assert_eq!((&report["strays"], &report["not_carried"]), (&json!([]), &json!([])));
    assert_eq!(report["imported_files"], 2);
}
