//! One world in several folders: a server's `world_nether` and `world_the_end`, and worlds of plugins.

use std::fs;

use serde_json::json;

use super::folder::{check_marks, check_same, other_files, paths};
use super::save::{
    Dimensions, END, LATER, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, STRAY, VANILLA, below, level,
};
use super::test_dir::{TestDir, layouts};

const OTHERS: [(&str, &str); 2] = [(NETHER, "_nether"), (END, "_the_end")];

/// The folders of a server: the overworld in the first, and in each of the others one dimension beside files that are
/// not the world's.
fn make(dir: &TestDir, name: &str, layout: Layout) {
    let data_version = if layout == Old { OLD } else { NEW };
    let first = dir.save(name);
    first.level(data_version, name).dimension(layout.folder(OVERWORLD), LIVE, &[(0, 0)]);
    first.file("data/raids.dat", "of the world").file("paper-world.yml", "of the world").file("uid.dat", "1");
    for (dimension, ending) in OTHERS {
        let save = dir.save(&format!("{name}{ending}"));
        save.level(data_version, ending).dimension(layout.folder(dimension), LATER, &[(0, 0), (1, 1)]);
        save.file("paper-world.yml", ending).file("uid.dat", ending).file("data/raids.dat", ending);
        save.file(&below(layout.folder(dimension), "data/raids.dat"), ending);
        save.file(&below(layout.folder(dimension), "paper-world.yml"), ending);
    }
}

#[test]
fn of_the_second_and_third_folder_only_their_dimension_is_taken() {
    for layout in [Old, Dimensions] {
        for (name, merge) in [("world", "replace"), ("world", "keep"), ("survival", "replace")] {
            let dir = TestDir::new();
            make(&dir, name, layout);
            let first = dir.import(name, "it", &[]).good();
            assert_eq!((&first["left_files"], &first["imported_files"]), (&json!(0), &json!(4)));
            for (dimension, ending) in OTHERS {
                let report = dir.import(format!("{name}{ending}"), "it", &["--merge", merge]).ended(0);
                let what = format!("{name}{ending} {merge} {layout:?}: {report}");
                assert_eq!(
                    (&report["left_files"], &report["imported_files"]),
                    (&json!(4), &json!(2)),
                    "{what}"
                );
                assert_eq!(report["replaced_level"], json!(null), "{what}");
                assert_eq!(
                    (&report["imported_columns"], &report["entities"]),
                    (&json!(2), &json!(1)),
                    "{what}"
                );
                assert_eq!(report["layout"], layouts(&[dimension], layout), "{what}");
            }
            let exported = dir.export("it", "out", &[]).good();
            assert_eq!(exported["layout"], layouts(&VANILLA, layout));
            // One save of all three.
            let wanted = dir.at("wanted");
            super::folder::copy(&dir.at(name), &wanted);
            for (dimension, ending) in OTHERS {
                let folder = layout.folder(dimension);
                super::folder::copy(&dir.at(format!("{name}{ending}")).join(folder), &wanted.join(folder));
            }
            check_same(&wanted, &dir.at("out"));
        }
    }
}

#[test]
fn the_layout_of_the_first_folder_decides() {
    // A server that was upgraded, and an old backup of its nether.
    let dir = TestDir::new();
    make(&dir, "world", Dimensions);
    let backup = dir.save("backup/world_nether");
    backup.level(OLD, "world_nether").dimension("DIM-1", LATER, &[(0, 0)]);
    dir.import("world", "it", &[]).good();
    dir.import("backup/world_nether", "it", &["--merge", "replace"]).ended(0);
    let exported = dir.export("it", "out", &[]).good();
    assert_eq!(exported["layout"], layouts(&[OVERWORLD, NETHER], Dimensions));
    check_marks(&dir.at("out/dimensions/minecraft/the_nether"), "later", &[(0, 0)]);
    assert_eq!(fs::read(dir.at("out/level.dat")).expect("there"), level(NEW, "world"));
}

#[test]
fn a_save_with_an_overworld_is_taken_whole() {
    let dir = TestDir::new();
    make(&dir, "world", Old);
    let whole = dir.save("other");
    whole.level(OLD, "other").vanilla(Old, LATER).file("uid.dat", "2");
    dir.import("world", "it", &[]).good();
    let report = dir.import("other", "it", &["--merge", "replace"]).ended(0);
    assert_eq!((&report["left_files"], &report["imported_files"]), (&json!(0), &json!(2)));
    assert_eq!(report["replaced_level"]["is"]["name"], "other");
}

/// Imports a save's overworld as a dimension of a plugin into the world of another.
#[track_caller]
fn check_as(layout: Layout, merge: &str) {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "server").vanilla(Dimensions, LIVE).file("uid.dat", "1").file("players/data/a.dat", "a");
    let mining = dir.save("mining");
    let folder = layout.folder(OVERWORLD);
    mining.level(if layout == Old { OLD } else { NEW }, "mining").vanilla(layout, LATER);
    mining.file("uid.dat", "2").file("players/data/a.dat", "other").file("paper-world.yml", "mining");
    dir.import("save", "world", &[]).good();
    let options = ["--merge", merge, "--as-dimension", "multiverse:mining"];
    let report = dir.import("mining", "world", &options).ended(0);
    assert_eq!(
        (&report["imported_columns"], &report["entities"]),
        (&json!(2), &json!(1)),
        "{layout:?} {merge}"
    );
    assert_eq!((&report["replaced_level"], &report["strays"]), (&json!(null), &json!([])));
    let exported = dir.export("world", "out", &[]).good();
    assert_eq!(
        (&exported["columns"], &exported["layout"]["multiverse:mining"]),
        (&json!(6), &json!("dimensions"))
    );
    let out = dir.at("out/dimensions/multiverse/mining");
    for kind in ["region", "entities", "poi"] {
        check_same(&mining.path().join(folder).join(kind), &out.join(kind));
    }
    // Nothing else of the world is another.
    for dimension in VANILLA {
        let folder = Dimensions.folder(dimension);
        check_same(&save.path().join(folder), &dir.at("out").join(folder));
    }
    for name in other_files(save.path()) {
        let read = |root: &str| fs::read(dir.at(root).join(&name)).expect("there");
        assert!(read("save") == read("out"), "{name}");
    }
}

#[test]
fn an_overworld_becomes_another_dimension() {
    for layout in [Old, Dimensions] {
        for merge in ["keep", "replace"] {
            check_as(layout, merge);
        }
    }
}

#[test]
fn an_overworld_becomes_the_only_dimension_of_a_new_world() {
    let dir = TestDir::new();
    dir.save("save").level(NEW, "mining").vanilla(Dimensions, LIVE);
    let report = dir.import("save", "world", &["--as-dimension", "multiverse:mining"]).ended(0);
    assert_eq!(report["imported_columns"], 2);
    let info = dir.dimensions("world");
    assert_eq!(info.as_object().map(serde_json::Map::len), Some(1), "{info}");
    assert_eq!(info["multiverse:mining"], json!({ "chunks": 2, "layout": "dimensions" }));
}

#[test]
fn strays_of_an_overworld_do_not_come_along() {
    let dir = TestDir::new();
    dir.save("save").level(NEW, "both").vanilla(Dimensions, LIVE).dimension("", STRAY, &[(0, 0), (9, 9)]);
    let report = dir.import("save", "world", &["--as-dimension", "multiverse:mining"]).ended(1);
    assert_eq!((&report["imported_columns"], &report["strays"][0]["folder"]), (&json!(2), &json!(".")));
}

#[test]
fn a_dimension_that_no_folder_can_be_named_leads_nowhere() {
    for name in ["../evil:x", "a:../../evil", "a:b/../c", "", ":", "a:", ":b", "/abs:x", "a:b\u{1b}[2J"] {
        let dir = TestDir::new();
        dir.save("save").level(NEW, "save").vanilla(Dimensions, LIVE);
        let done = dir.import("save", "world", &["--as-dimension", name]);
        if done.code == 2 {
            let why = done.refused();
            assert!(!why.contains('\u{1b}') && !dir.at("world").exists(), "{name:?}: nothing was made");
        } else {
            done.ended(0);
            fs::create_dir_all(dir.at("a/b/c")).expect("a folder");
            let report = dir.export("world", "a/b/c/out", &[]).ended(1);
            assert_eq!(
                (&report["columns"], report["not_exported"] == json!({})),
                (&json!(0), false),
                "{name:?}"
            );
            assert!(paths(&dir.at("a")).iter().all(|path| path.starts_with("b/c/out/")), "{name:?}");
        }
    }
}

#[test]
fn strays_that_are_taken_do_not_make_a_whole_save_of_a_dimension() {
    let dir = TestDir::new();
    make(&dir, "world", Old);
    let nether = dir.at("world_nether");
    dir.save("world_nether").dimension(Dimensions.folder(NETHER), STRAY, &[(9, 9)]);
    dir.import("world", "it", &[]).good();
    let options = ["--merge", "replace", "--merge-files", "replace", "--take-strays"];
    let report = dir.import(&nether, "it", &options).ended(0);
    assert_eq!((&report["replaced_level"], &report["deleted_files"]), (&json!(null), &json!({})));
    assert_eq!((&report["left_files"], &report["imported_files"]), (&json!(4), &json!(2)));
    assert_eq!((&report["imported_columns"], &report["not_carried"]), (&json!(3), &json!([])));
    assert_eq!(report["strays"], json!([]));
    dir.export("it", "out", &[]).good();
    for name in other_files(&dir.at("world")) {
        let read = |root: &str| fs::read(dir.at(root).join(&name)).expect("there");
        assert!(read("world") == read("out"), "{name}");
    }
    check_marks(&dir.at("out/DIM-1"), "later", &[(0, 0), (1, 1)]);
    check_marks(&dir.at("out").join(Dimensions.folder(NETHER)), "stray", &[(9, 9)]);
}

#[test]
fn strays_are_not_taken_of_a_save_that_becomes_one_dimension() {
    let dir = TestDir::new();
    dir.save("save").level(NEW, "both").vanilla(Dimensions, LIVE).dimension("", STRAY, &[(0, 0), (9, 9)]);
    let options = ["--take-strays", "--as-dimension", "multiverse:mining"];
    let why = dir.import("save", "world", &options).refused();
    assert!(why.contains("--take-strays") && why.contains("--as-dimension"), "{why}");
    assert!(!dir.at("world").exists(), "nothing was made");
}

#[test]
fn the_folder_of_a_server_is_refused_with_the_commands_that_import_it() {
    use crate::cmd::{run, text};
    for layout in [Old, Dimensions] {
        let dir = TestDir::new();
        make(&dir, "server/world", layout);
        let (server, world) = (dir.at("server"), dir.at("it"));
        let said = run(&["import", text(&server), text(&world)]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
        assert!(!world.exists(), "nothing was made");
        let commands: Vec<_> = said.err.split('`').filter(|part| part.starts_with("cg import ")).collect();
        assert_eq!(commands.len(), 3, "{}", said.err);
        for command in commands {
            let args: Vec<_> = command.split(' ').skip(1).collect();
            let imported = run(&args);
            assert_eq!((imported.code, imported.err.as_str()), (0, ""), "{command}: {}", imported.out);
        }
        let exported = dir.export("it", "out", &[]).good();
        assert_eq!(exported["layout"], layouts(&VANILLA, layout));
    }
}
