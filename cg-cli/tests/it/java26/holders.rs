//! Entities of one UUID in several dimensions: none is moved by an import of another dimension, and each has one place.

use std::path::Path;

use cg_anvil::import::{ImportError, ImportOptions, Merge, import};
use serde_json::json;

use super::folder::{check_same, copy};
use super::save::{At, Dimensions, END, LATER, LIVE, NETHER, NEW, OVERWORLD, VANILLA, column, document};
use super::test_dir::{TestDir, list};
use crate::{held, maker};

const AT: At = (3, 4);
const UUID: [i32; 4] = [7, 7, 7, 7];

/// An entity of this kind with the one UUID.
fn entity(kind: &str) -> Vec<u8> {
    maker::entity(kind, UUID, [50.0, 70.0, 70.0], &[])
}

/// A column that lists an entity itself.
fn with_entity(kind: &str) -> (At, Vec<u8>, u32) {
    let mut column = column(AT, LIVE);
    column.entities.push(entity(kind));
    (AT, document(&column), LIVE.time)
}

#[test]
fn another_dimension_takes_no_entity_of_those_that_are_there() {
    for merge in ["replace", "keep"] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(NEW, "server").vanilla(Dimensions, LIVE);
        // A server's copy of its own world.
        copy(save.path(), &dir.at("mining"));
        dir.import("save", "world", &[]).good();
        let options = ["--merge", merge, "--as-dimension", "multiverse:mining"];
        for run in 1..=2 {
            let report = dir.import("mining", "world", &options).ended(0);
            let arrived = u64::from(run == 1 || merge == "replace");
            assert_eq!(report["entities"], arrived, "{merge} {run}: {report}");
            let rekeyed = list(&report["rekeyed"]);
            assert_eq!(rekeyed.len(), 1, "{merge} {run}: {report}");
            assert_ne!(rekeyed[0]["was"], rekeyed[0]["is"]);
            let out = format!("out {run}");
            dir.export("world", &out, &[]).good();
            for dimension in VANILLA {
                let folder = Dimensions.folder(dimension);
                check_same(&save.path().join(folder), &dir.at(&out).join(folder));
            }
            let folder = Dimensions.folder(OVERWORLD);
            check_same(&dir.at("mining").join(folder), &dir.at(&out).join("dimensions/multiverse/mining"));
        }
    }
}

#[test]
fn strays_take_no_entity_of_what_is_live() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LATER);
    for folder in [Dimensions.folder(NETHER), "DIM-1"] {
        save.slots(&format!("{folder}/region"), [with_entity("minecraft:pig")]);
    }
    let options = ["--merge", "replace", "--take-strays"];
    let first = dir.import("save", "world", &["--take-strays"]).good();
    assert_eq!((&first["entities"], list(&first["rekeyed"]).len()), (&json!(5), 1), "{first}");
    let before = dir.hash("world");
    let second = dir.import("save", "world", &options).ended(0);
    assert_eq!((&second["entities"], &second["rekeyed"]), (&first["entities"], &first["rekeyed"]));
    assert_eq!(dir.hash("world"), before);
    // Into a world that has what is live alone.
    dir.import("save", "live", &[]).ended(1);
    let third = dir.import("save", "live", &options).ended(0);
    assert_eq!(third["rekeyed"], first["rekeyed"]);
    for world in ["world", "live"] {
        let out = format!("out of {world}");
        dir.export(world, &out, &[]).good();
        check_same(save.path(), &dir.at(out));
    }
}

/// A save that has one UUID in each of its dimensions, every time for another entity.
fn with_doubles(dir: &TestDir) {
    let save = dir.save("save");
    save.level(NEW, "doubles");
    for (dimension, kind) in VANILLA.into_iter().zip(["minecraft:pig", "minecraft:cow", "minecraft:bat"]) {
        save.slots(&format!("{}/region", Dimensions.folder(dimension)), [with_entity(kind)]);
    }
}

#[test]
fn doubles_of_one_save_stay_where_they_are() {
    for merge in ["replace", "keep"] {
        let dir = TestDir::new();
        with_doubles(&dir);
        let first = dir.import("save", "world", &[]).good();
        assert_eq!((&first["entities"], list(&first["rekeyed"]).len()), (&json!(3), 2), "{first}");
        let before = dir.hash("world");
        let second = dir.import("save", "world", &["--merge", merge]).ended(0);
        assert_eq!(second["rekeyed"], first["rekeyed"], "{merge}");
        assert_eq!(dir.hash("world"), before, "{merge}");
    }
}

/// Imports a save with a stop after every transaction; says how many runs it took.
fn import_in_steps(save: &Path, world: &Path) -> u32 {
    let world = held::open(world);
    let stop_after_transactions = Some(1);
    let options =
        ImportOptions { merge: Some(Merge::Replace), stop_after_transactions, ..ImportOptions::default() };
    for run in 1.. {
        match import(save, &world, &options, |_| {}) {
            Err(ImportError::Stopped(1)) => {}
            ended => {
                ended.expect("imported");
                world.close().expect("closed");
                return run;
            }
        }
    }
    unreachable!("an import ends")
}

#[test]
fn an_import_that_was_stopped_knows_whom_it_brought() {
    let dir = TestDir::new();
    with_doubles(&dir);
    dir.import("save", "world", &[]).good();
    let before = dir.hash("world");
    assert!(import_in_steps(&dir.at("save"), &dir.at("world")) > 3);
    assert_eq!(dir.hash("world"), before);
    let world = held::open(&dir.at("world"));
    let left = world
        .read_view(|view| view.for_each_property("minecraft:import", |_| std::ops::ControlFlow::Break(())));
    assert_eq!(left.expect("no damage"), None, "no progress is left");
    world.close().expect("closed");
    drop(world);
    dir.export("world", "out", &["-d", END]).good();
    check_same(&dir.at("save").join(Dimensions.folder(END)), &dir.at("out").join(Dimensions.folder(END)));
}
