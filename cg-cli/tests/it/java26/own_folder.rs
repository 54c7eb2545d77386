//! The folder of a dimension, named by itself: it says which dimension it is.

use std::process::Command;

use serde_json::json;

use super::folder::{check_marks, check_same, other_files};
use super::save::{Dimensions, END, LATER, LIVE, NETHER, NEW, OLD, OVERWORLD, Old, Save, VANILLA, below};
use super::test_dir::TestDir;
use crate::cmd::text;

const FILES: [&str; 2] = ["data/minecraft/raids.dat", "paper-world.yml"];

/// Writes files of a dimension's folder.
fn add_files(save: &Save, folder: &str) {
    for name in FILES {
        save.file(&below(folder, name), folder);
    }
}

/// Of a save only one dimension arrives, with the files of its folder, which go back below it.
#[track_caller]
fn check_folder(folder: &str, dimension: &str) {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "around").file("data/minecraft/raids.dat", "of the save");
    save.dimension(folder, LIVE, &[(3, 4), (40, 4)]);
    add_files(&save, folder);
    for named in [folder.to_owned(), format!("{folder}/")] {
        let world = format!("world of {}", named.replace('/', "_"));
        let report = dir.import(save.path().join(&named), &world, &[]).good();
        assert_eq!((&report["imported_columns"], &report["entities"]), (&json!(2), &json!(1)), "{named}");
        assert_eq!((&report["imported_files"], &report["not_carried"]), (&json!(2), &json!([])), "{named}");
        let info = dir.dimensions(&world);
        assert_eq!(info.as_object().map(serde_json::Map::len), Some(1), "{named}: {info}");
        assert_eq!(info[dimension]["chunks"], 2, "{named}: {info}");
        let out = world.replace("world", "out");
        dir.export(&world, &out, &[]).good();
        let mut wanted = FILES.map(|name| below(folder, name));
        wanted.sort();
        assert_eq!(other_files(&dir.at(&out)), wanted, "{named}");
        check_same(&save.path().join(folder), &dir.at(&out).join(folder));
    }
}

#[test]
fn a_folder_below_dimensions_is_its_dimension() {
    check_folder("dimensions/minecraft/the_nether", NETHER);
    check_folder("dimensions/minecraft/the_end", END);
    check_folder("dimensions/minecraft/overworld", OVERWORLD);
    check_folder("dimensions/cc/void", "cc:void");
    check_folder("dimensions/twilight/forest/deep", "twilight:forest/deep");
}

#[test]
fn the_old_folders_are_their_dimensions() {
    check_folder("DIM-1", NETHER);
    check_folder("DIM1", END);
    check_folder("DIM7", "dim:7");
}

#[test]
fn regions_in_a_dimensions_folder_are_of_it() {
    for (folder, dimension) in [
        ("dimensions/minecraft/the_nether", NETHER),
        ("DIM-1", NETHER),
        ("DIM1", END),
        ("dimensions/cc/void", "cc:void"),
    ] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(OLD, "around").dimension(folder, LIVE, &[(3, 4), (40, 4)]);
        for (world, named, columns) in [("all", "region", 2), ("one", "region/r.1.0.mca", 1)] {
            let report = dir.import(save.path().join(folder).join(named), world, &[]).good();
            assert_eq!(report["imported_columns"], columns, "{folder}/{named}");
            assert_eq!((&report["entities"], &report["imported_files"]), (&json!(0), &json!(0)));
            let info = dir.dimensions(world);
            assert_eq!(info[dimension]["chunks"], columns, "{folder}/{named}: {info}");
            assert!(dimension == OVERWORLD || info.get(OVERWORLD).is_none(), "{info}");
        }
    }
}

#[test]
fn a_folder_is_known_by_its_own_path_too() {
    for folder in ["dimensions/minecraft/the_end", "DIM1", "DIM1/region"] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(NEW, "around").dimension(folder.trim_end_matches("/region"), LIVE, &[(3, 4)]);
        let output = Command::new(env!("CARGO_BIN_EXE_cg"))
            .args(["import", ".", text(&dir.at("world"))])
            .current_dir(save.path().join(folder))
            .output()
            .expect("cg is built with the tests");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(dir.dimensions("world")[END]["chunks"], 1, "{folder}");
    }
}

#[test]
fn a_save_that_is_called_like_a_dimension_is_a_save() {
    for name in ["DIM-1", "DIM1", "dimensions/minecraft/the_nether"] {
        let dir = TestDir::new();
        let save = dir.save(name);
        save.level(OLD, "a strange name").vanilla(Old, LIVE).file("data/raids.dat", "r");
        dir.import(name, "world", &[]).good();
        dir.export("world", "out", &[]).good();
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn folders_of_other_names_stay_what_they_were() {
    let dir = TestDir::new();
    dir.save("backup").blocks("", LIVE, &[(0, 0)]);
    for name in ["backup", "backup/region", "backup/region/r.0.0.mca"] {
        let world = name.replace('/', "_");
        dir.import(name, &format!("world of {world}"), &[]).good();
        assert_eq!(dir.dimensions(&format!("world of {world}"))[OVERWORLD]["chunks"], 1, "{name}");
    }
}

#[test]
fn a_dimension_replaces_only_itself_in_a_world() {
    for (folder, layout) in [("later/DIM-1", Old), ("later/dimensions/minecraft/the_nether", Dimensions)] {
        for part in ["", "/region", "/region/r.0.0.mca"] {
            let dir = TestDir::new();
            let save = dir.save("save");
            save.level(NEW, "first")
                .vanilla(Dimensions, LIVE)
                .file("data/minecraft/raids.dat", "of the save");
            let later = dir.save("later");
            later.level(OLD, "later").vanilla(layout, LATER);
            add_files(&later, layout.folder(NETHER));
            dir.import("save", "world", &[]).good();
            let report = dir.import(format!("{folder}{part}"), "world", &["--merge", "replace"]).ended(0);
            assert_eq!((&report["imported_columns"], &report["replaced_level"]), (&json!(1), &json!(null)));
            dir.export("world", "out", &[]).good();
            for (dimension, mark) in VANILLA.into_iter().zip(["live", "later", "live"]) {
                let columns: Vec<_> = super::folder::marks(&save.path().join(Dimensions.folder(dimension)))
                    .into_keys()
                    .collect();
                check_marks(&dir.at("out").join(Dimensions.folder(dimension)), mark, &columns);
            }
            for name in ["level.dat", "data/minecraft/raids.dat"] {
                let read = |root: &str| std::fs::read(dir.at(root).join(name)).expect("there");
                assert!(read("out") == read("save"), "{folder}{part}: {name} is the save's own");
            }
        }
    }
}

/// Imports a path as it is written, from inside a folder, into `world`; both paths are the system's.
#[track_caller]
fn import_from(folder: &std::path::Path, path: &str, world: &std::path::Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_cg"))
        .args(["import", path, text(world)])
        .current_dir(folder)
        .output()
        .expect("cg is built with the tests");
    assert!(output.status.success(), "{path}: {output:?}");
}

#[test]
fn a_path_that_leads_up_is_the_folder_that_it_leads_to() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let new = Dimensions.folder(NETHER);
    save.level(NEW, "around").dimension("DIM-1", LIVE, &[(3, 4)]).folder("elsewhere");
    save.dimension(new, LIVE, &[(3, 4)]);
    for (number, (from, path)) in [
        ("elsewhere", "../DIM-1"),
        ("elsewhere", "../DIM-1/region"),
        ("elsewhere", "../DIM-1/region/r.0.0.mca"),
        ("elsewhere", "../dimensions/minecraft/the_nether"),
        ("elsewhere", "../dimensions/minecraft/the_nether/region"),
        ("DIM-1/region", ".."),
        ("DIM-1/region", "../"),
        ("DIM-1/region", "../entities/../region"),
        ("DIM-1/region", "r.0.0.mca"),
        ("dimensions/minecraft/overworld", "../the_nether"),
    ]
    .into_iter()
    .enumerate()
    {
        save.folder(from);
        let world = format!("world {number}");
        import_from(&save.path().join(from), path, &dir.at(&world));
        let info = dir.dimensions(&world);
        assert_eq!(info.as_object().map(serde_json::Map::len), Some(1), "{from}: {path}: {info}");
        assert_eq!(info[NETHER]["chunks"], 1, "{from}: {path}: {info}");
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_leads_up_keeps_the_names_of_links() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "around").folder("elsewhere").dimension("DIM-1", LIVE, &[(3, 4)]);
    super::folder::move_folder(&save.path().join("DIM-1"), &dir.at("away/nether"));
    std::os::unix::fs::symlink(dir.at("away/nether"), save.path().join("DIM-1")).expect("a link");
    // The system follows a link before it goes up.
    dir.save("away").dimension("DIM1", LIVE, &[(3, 4), (5, 6)]);
    for (world, path, dimension, chunks) in [
        ("link", "../DIM-1", NETHER, 1),
        ("inside", "../DIM-1/region/..", NETHER, 1),
        ("beyond", "../DIM-1/../DIM1", END, 2),
    ] {
        import_from(&save.path().join("elsewhere"), path, &dir.at(world));
        let info = dir.dimensions(world);
        assert_eq!(info.as_object().map(serde_json::Map::len), Some(1), "{path}: {info}");
        assert_eq!(info[dimension]["chunks"], chunks, "{path}: {info}");
    }
}
