//! Folders of dimensions that are links: what is in them belongs to the save.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::folder::{check_marks, check_same, other_files, paths};
use super::save::{Dimensions, END, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, below};
use super::test_dir::TestDir;

/// Moves a folder of a save elsewhere, and leaves a link.
fn link_away(dir: &TestDir, folder: &str) {
    let (place, away) = (dir.at("save").join(folder), dir.at("away").join(folder));
    super::folder::move_folder(&place, &away);
    symlink(away, place).expect("a link");
}

/// The links that an import left out.
fn left_out(report: &Value) -> Vec<String> {
    let listed = report["unreadable"].as_array().expect("a list").iter();
    let left_out =
        listed.filter(|lost| lost["reason"] == "left out: it is a link, and links are not followed");
    left_out.map(|lost| lost["file"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn linked_dimensions_come_with_their_files() {
    for (data_version, layout) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "linked").vanilla(layout, LIVE);
        for dimension in [NETHER, END] {
            let folder = layout.folder(dimension);
            save.file(&below(folder, "data/minecraft/raids.dat"), "r").file(&below(folder, "a/b/c.txt"), "c");
            link_away(&dir, folder);
        }
        let (imported, exported) = dir.round("save", &[]);
        assert_eq!((&imported["imported_files"], &imported["not_carried"]), (&json!(5), &json!([])));
        assert_eq!((&exported["columns"], &exported["other_files"]), (&json!(4), &json!(5)));
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn a_link_inside_a_linked_folder_is_not_followed() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "linked").vanilla(Dimensions, LIVE);
    dir.save("secret").file("passwords.txt", "secret").file("deep/keys.txt", "secret");
    let folder = Dimensions.folder(NETHER);
    save.file(&below(folder, "data/raids.dat"), "r");
    symlink(dir.at("secret"), save.path().join(folder).join("more")).expect("a link");
    symlink(dir.at("secret/passwords.txt"), save.path().join(folder).join("one.txt")).expect("a link");
    link_away(&dir, folder);
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!(imported["imported_files"], 2);
    assert_eq!(left_out(&imported), [below(folder, "more"), below(folder, "one.txt")]);
    dir.export("world", "out", &[]).good();
    assert_eq!(other_files(&dir.at("out")), [below(folder, "data/raids.dat"), "level.dat".to_owned()]);
}

#[test]
fn a_link_to_a_folder_without_regions_brings_nothing() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "linked").vanilla(Dimensions, LIVE).folder("dimensions/evil");
    dir.save("secret").file("passwords.txt", "secret").file("data/keys.dat", "secret");
    symlink(dir.at("secret"), save.path().join("dimensions/evil/etc")).expect("a link");
    symlink(dir.at("secret"), save.path().join("datapacks")).expect("a link");
    symlink(dir.at("secret/passwords.txt"), save.path().join("icon.png")).expect("a link");
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!(imported["imported_files"], 1);
    assert_eq!(left_out(&imported), ["datapacks", "dimensions/evil/etc", "icon.png"]);
    dir.export("world", "out", &[]).good();
    assert_eq!(other_files(&dir.at("out")), ["level.dat"]);
}

#[test]
fn links_in_a_circle_end() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "circle").vanilla(Dimensions, LIVE).file("dimensions/minecraft/overworld/x.txt", "x");
    for name in ["minecraft/loop", "minecraft/the_end/loop", "minecraft/overworld/data"] {
        symlink(save.path(), save.path().join("dimensions").join(name)).expect("a link");
    }
    symlink(save.path(), save.path().join("DIM-1")).expect("a link");
    symlink(save.path().join("dimensions"), save.path().join("dimensions/again")).expect("a link");
    let done = dir.import("save", "world", &[]);
    assert!([0, 1].contains(&done.code), "{}", done.err);
    assert_eq!(done.report["imported_columns"], 4, "{}", done.report);
    dir.export("world", "out", &[]).good();
    check_marks(&dir.at("out/dimensions/minecraft/overworld"), "live", &[(0, 0), (-1, 33)]);
    let copies = paths(&dir.at("out")).into_iter().filter(|name| name.ends_with("x.txt")).count();
    assert_eq!(copies, 1, "a file is there once");
}

#[test]
fn a_linked_side_is_a_stray_as_any() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension(
        "DIM-1",
        super::save::STRAY,
        &[(3, 4), (8, 8)],
    );
    link_away(&dir, "DIM-1");
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["strays"][0]["folder"], &report["imported_columns"]), (&json!("DIM-1"), &json!(4)));
    dir.export("world", "out", &[]).good();
    check_marks(&dir.at("out").join(Layout::Dimensions.folder(NETHER)), "live", &[(3, 4)]);
}

#[test]
fn names_that_the_game_cannot_have_go_out_where_they_came_in() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "names").dimension(Dimensions.folder(OVERWORLD), LIVE, &[(0, 0)]);
    for folder in ["dimensions/My Mod/Deep", "dimensions/mod/UPPER", "dimensions/mod/ok"] {
        save.dimension(folder, LIVE, &[(1, 1)]);
    }
    assert_eq!(dir.import("save", "world", &[]).good()["imported_columns"], 4);
    assert_eq!(dir.dimensions("world")["mod:ok"]["chunks"], 1);
    save.file("dimensions/mod/UPPER/region/r.0.0 (1).mca", "a copy");
    dir.import("save", "world", &["--merge", "keep"]).ended(0);
    for layout in ["as-imported", "old", "new"] {
        let report = dir.export("world", layout, &["--layout", layout]).ended(0);
        assert_eq!((&report["columns"], &report["not_exported"]), (&json!(4), &json!({})), "{layout}");
        for folder in ["dimensions/My Mod/Deep", "dimensions/mod/UPPER"] {
            check_marks(&dir.at(layout).join(folder), "live", &[(1, 1)]);
        }
    }
    check_same(save.path(), &dir.at("as-imported"));
}

#[test]
fn a_link_to_the_folder_of_a_dimension_brings_nothing_twice() {
    for (place, target) in [("DIM1", ""), ("DIM1/region", "/region")] {
        let dir = TestDir::new();
        let save = dir.save("save");
        let folder = Dimensions.folder(END);
        save.level(NEW, "linked").vanilla(Dimensions, LIVE).file(&below(folder, "data/raids.dat"), "r");
        let link = save.path().join(place);
        fs::create_dir_all(link.parent().expect("below the save")).expect("a folder");
        symlink(save.path().join(format!("{folder}{target}")), link).expect("a link");
        let imported = dir.import("save", "world", &[]).good();
        assert_eq!(
            (&imported["not_carried"], &imported["imported_files"]),
            (&json!([]), &json!(2)),
            "{place}"
        );
        assert_eq!((&imported["strays"], &imported["imported_columns"]), (&json!([]), &json!(4)), "{place}");
        dir.export("world", "out", &[]).good();
        assert!(!dir.at("out/DIM1").exists(), "{place}");
    }
}

#[test]
fn a_link_to_another_folder_of_the_save_brings_its_files() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "linked").vanilla(Old, LIVE).file("DIM1/data/raids.dat", "r");
    super::folder::move_folder(&save.path().join("DIM1"), &save.path().join("moved/end"));
    symlink(save.path().join("moved/end"), save.path().join("DIM1")).expect("a link");
    dir.import("save", "world", &[]).good();
    dir.export("world", "out", &[]).good();
    assert_eq!(fs::read(dir.at("out/DIM1/data/raids.dat")).expect("there"), b"r");
}
