//! Points of interest of columns that have no blocks: they go back where the import met no column.

use cg_store::prelude::*;
use serde_json::json;

use super::folder::{check_bytes, check_same, slots};
use super::save::{At, LATER, LIVE, NETHER, OLD, OVERWORLD};
use super::test_dir::TestDir;
use crate::held;

/// With a column, without one in the same region, and in a region that has none.
const POINTS: [At; 3] = [(0, 0), (5, 0), (70, 70)];

/// One column, and points of interest there and elsewhere.
fn make(dir: &TestDir) {
    let save = dir.save("save");
    save.level(OLD, "points").blocks("", LIVE, &[(0, 0)]).points("", LIVE, &POINTS);
}

/// The slots of points of interest of an export's first region.
fn exported(dir: &TestDir, out: &str) -> Vec<u16> {
    let path = dir.at(out).join("poi/r.0.0.mca");
    if path.exists() { slots(&path).into_keys().collect() } else { vec![] }
}

#[test]
fn points_of_interest_without_blocks_go_back() {
    let dir = TestDir::new();
    make(&dir);
    let (_, report) = dir.round("save", &[]);
    assert_eq!((&report["columns"], &report["not_exported"]), (&json!(1), &json!({})));
    check_same(&dir.at("save"), &dir.at("out"));
    for region in ["r.0.0", "r.2.2"] {
        let path = |root| dir.at(root).join(format!("poi/{region}.mca"));
        check_bytes(region, &slots(&path("save")), &slots(&path("out")));
    }
}

#[test]
fn a_dimension_of_points_alone_goes_back() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "points").points("DIM-1", LIVE, &POINTS);
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!(imported["layout"][NETHER], "old");
    assert_eq!((&exported["files"], &exported["columns"]), (&json!(2), &json!(0)));
    check_same(save.path(), &dir.at("out"));
    dir.export("world", "one", &["-d", NETHER]).good();
    check_same(&save.path().join("DIM-1"), &dir.at("one/DIM-1"));
}

#[test]
fn points_of_a_column_that_was_deleted_stay_away() {
    let dir = TestDir::new();
    make(&dir);
    dir.import("save", "world", &[]).good();
    let world = held::open(&dir.at("world"));
    let overworld = world.catalog().dimension(OVERWORLD).expect("registered");
    let deleted = world.transaction(|tx| {
        tx.delete(ChunkAt::new(overworld, ChunkPos::constant(0, 4, 0)));
        Ok::<_, Error>(())
    });
    deleted.expect("committed");
    world.close().expect("closed");
    drop(world);
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(report["not_exported"], json!({ "points of interest of columns without blocks": 1 }));
    assert_eq!(exported(&dir, "out"), [5], "the game makes those of column 0 anew, or of none");
}

#[test]
fn points_are_not_those_of_blocks_that_a_later_save_brings() {
    let dir = TestDir::new();
    make(&dir);
    let later = dir.save("later");
    later.level(OLD, "later").blocks("", LATER, &[(5, 0), (70, 70)]).points("", LATER, &[(70, 70)]);
    dir.import("save", "world", &[]).good();
    dir.import("later", "world", &["--merge", "replace"]).ended(0);
    let report = dir.export("world", "out", &[]).good();
    assert_eq!(report["columns"], 3);
    assert_eq!(exported(&dir, "out"), [0], "the save that brought column 5 has none there");
    let path = |root| dir.at(root).join("poi/r.2.2.mca");
    check_bytes("later", &slots(&path("later")), &slots(&path("out")));
}

#[test]
fn an_object_that_holds_no_points_is_counted_and_makes_no_slot() {
    let dir = TestDir::new();
    make(&dir);
    dir.import("save", "world", &[]).good();
    let points = format!("minecraft/poi/{OVERWORLD}/r.0.0");
    let column = dir.at("column.nbt");
    std::fs::write(&column, super::save::document(&super::save::column((9, 9), LIVE))).expect("written");
    dir.cg("object put", "world", &[&format!("{points}/9/9"), "--from", crate::cmd::text(&column)]).good();
    dir.cg("object put", "world", &[&format!("{points}/6/6"), "--text", "garbage"]).good();
    let report = dir.export("world", "out", &[]).ended(1);
    let counted = report["not_exported"].as_object().expect("counts").values();
    assert_eq!(counted.map(|count| count.as_u64().expect("a number")).sum::<u64>(), 2, "{report}");
    assert_eq!(exported(&dir, "out"), [0, 5]);
}

#[test]
fn an_object_under_the_key_of_another_region_takes_no_slot_of_it() {
    let dir = TestDir::new();
    make(&dir);
    dir.import("save", "world", &[]).good();
    let prefix = format!("minecraft/poi/{OVERWORLD}/");
    let keys = dir.objects("world", &prefix);
    assert_eq!(keys.len(), 3, "{keys:?}");
    let whole = dir.at("points");
    let first = format!("{prefix}r.0.0/5/0");
    dir.cg("object get", "world", &[&first, "--to", crate::cmd::text(&whole)]).good();
    for key in ["r.0.0/900/900", "r.0.0/1/x", "r.0.0", "r.9999999999.0/1/1", "r.0.0/3/3/3", "../../../x/0/0"]
    {
        let key = format!("{prefix}{key}");
        dir.cg("object put", "world", &[&key, "--from", crate::cmd::text(&whole)]).good();
    }
    let done = dir.export("world", "out", &[]);
    assert!([0, 1].contains(&done.code), "{}", done.err);
    assert_eq!(exported(&dir, "out"), [0, 5]);
    check_same(&dir.at("save"), &dir.at("out"));
}

#[test]
fn points_of_a_save_without_blocks_there_do_not_replace_those_of_the_worlds_blocks() {
    for kind in ["poi", "entities"] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(OLD, "first").dimension("", LIVE, &[(0, 0), (5, 0)]);
        let later = dir.save("later");
        // Beside another column, and in slots of which one is the world's.
        later.level(OLD, "later").blocks("", LATER, &[(5, 0)]).points("", LATER, &[(0, 0), (5, 0), (9, 0)]);
        later.slots("entities", [((0, 0), slot_with_field(), LATER.time)]);
        dir.import("save", "world", &[]).good();
        let object = format!("minecraft/{kind}/{OVERWORLD}/r.0.0/0/0");
        let get = |to: &str| {
            let said = dir.cg("object get", "world", &[&object, "--to", crate::cmd::text(&dir.at(to))]);
            (said.code, std::fs::read(dir.at(to)).unwrap_or_default())
        };
        let before = get("before");
        let report = dir.import("later", "world", &["--merge", "replace"]).ended(0);
        assert_eq!((&report["imported_columns"], &report["unreadable"]), (&json!(1), &json!([])));
        assert_eq!(get("after"), before, "{kind}");
        dir.export("world", "out", &[]).good();
        let exported = slots(&dir.at("out/poi/r.0.0.mca"));
        assert_eq!(exported.keys().copied().collect::<Vec<_>>(), [0, 5, 9], "{kind}");
        assert_eq!(exported[&0], slots(&dir.at("save/poi/r.0.0.mca"))[&0]);
        assert_eq!(exported[&5], slots(&dir.at("later/poi/r.0.0.mca"))[&5]);
    }
}

/// A slot of `entities/` with a field of a mod and an entity.
fn slot_with_field() -> Vec<u8> {
    cg_anvil::nbt::document(|root| {
        root.int("DataVersion", super::save::NEW);
        root.int_array("Position", &[0, 0]);
        // It makes the world's chunk another.
        let pig = crate::maker::entity("minecraft:pig", [9, 9, 9, 9], [5.0, 70.0, 5.0], &[]);
        root.raw_compounds("Entities", [&pig[..]].into_iter());
        root.int("mod:flag", 4);
    })
}

#[test]
fn points_beside_entities_that_cannot_be_read_are_alone_all_the_same() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "points").blocks("", LIVE, &[(0, 0)]).points("", LIVE, &[(5, 0)]);
    save.slots("entities", [((5, 0), b"no NBT".to_vec(), LIVE.time)]);
    dir.import("save", "world", &[]).ended(1);
    dir.export("world", "out", &[]).good();
    assert_eq!(exported(&dir, "out"), [5]);
}
