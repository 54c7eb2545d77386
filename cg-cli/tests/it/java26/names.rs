//! Names of dimensions that look like other folders of a save, or that no folder can have.

use serde_json::json;

use super::folder::{check_marks, check_same};
use super::save::{Dimensions, LATER, LIVE, NEW, OVERWORLD};
use super::test_dir::{TestDir, texts};

#[test]
fn a_dimension_that_is_called_like_a_folder_of_a_save_comes_back() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "names").dimension(Dimensions.folder(OVERWORLD), LIVE, &[(0, 0)]);
    let names = ["data", "region", "entities", "poi", "data/deeper"];
    for name in names {
        save.dimension(&format!("dimensions/ns/{name}"), LIVE, &[(1, 1)]);
    }
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!((&imported["imported_columns"], &imported["not_carried"]), (&json!(6), &json!([])));
    assert_eq!((&exported["columns"], &exported["warnings"]), (&json!(6), &json!([])));
    check_same(save.path(), &dir.at("out"));
    for name in names {
        assert_eq!(dir.dimensions("world")[format!("ns:{name}")]["chunks"], 1);
        let world = format!("only {}", name.replace('/', "_"));
        dir.import(save.path().join("dimensions/ns").join(name), &world, &[]).good();
        assert_eq!(dir.dimensions(&world)[format!("ns:{name}")]["chunks"], 1, "{name}");
    }
}

#[test]
fn a_name_that_an_import_does_not_look_for_is_said() {
    let deep = "a:b/c/d/e/f/g/h/i/j";
    for name in ["a:b/region", "a:b/data", deep] {
        let dir = TestDir::new();
        dir.save("save").level(NEW, "save").blocks(Dimensions.folder(OVERWORLD), LATER, &[(3, 4)]);
        dir.import("save", "world", &["--as-dimension", name]).ended(0);
        let report = dir.export("world", "out", &[]).ended(1);
        let [warning] = texts(&report["warnings"])[..] else { panic!("{name}: {report}") };
        let folder = format!("dimensions/{}", name.replace(':', "/"));
        assert!(warning.contains(name) && warning.contains(&folder), "{warning}");
        check_marks(&dir.at("out").join(&folder), "later", &[(3, 4)]);
    }
    let dir = TestDir::new();
    dir.save("save").level(NEW, "save").blocks(Dimensions.folder(OVERWORLD), LATER, &[(3, 4)]);
    dir.import("save", "world", &["--as-dimension", "a:b/c/d/e/f/g/h/i"]).ended(0);
    assert_eq!(dir.export("world", "out", &[]).good()["warnings"], json!([]));
    assert_eq!(dir.import("out", "again", &[]).good()["imported_columns"], 1);
}

#[test]
fn a_name_that_is_too_long_for_a_folder_costs_only_its_dimension() {
    let long = format!("a:{}", "x".repeat(256));
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "save").dimension(Dimensions.folder(OVERWORLD), LIVE, &[(0, 0)]);
    let why = dir.import("save", "world", &["--as-dimension", &long]).refused();
    assert!(why.contains("no name of a dimension") && !dir.at("world").exists(), "{why}");
    dir.import("save", "world", &[]).good();
    let world = crate::held::open(&dir.at("world"));
    let dimension = world.registry().register_dimension(&long).expect("registered");
    let [stone] = world.registry().register_blocks(["test:host"]).expect("registered");
    let done = world.transaction(|tx| {
        use cg_store::prelude::*;
        let at = ChunkAt::new(dimension, ChunkPos::constant(0, 4, 0));
        tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    done.expect("committed");
    world.close().expect("closed");
    drop(world);
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(report["columns"], 1);
    let missed: Vec<_> = report["not_exported"].as_object().expect("counts").iter().collect();
    let [(what, count)] = missed[..] else { panic!("{report}") };
    assert!(what.contains("which no folder of a save can be named") && *count == 1, "{report}");
    check_same(save.path(), &dir.at("out"));
}
