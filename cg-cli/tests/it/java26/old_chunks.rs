//! Chunks of before 1.13, whose blocks are numbers: kept as bytes, and put back.

use cg_anvil::nbt;
use cg_store::prelude::*;
use serde_json::json;

use super::folder::{Slots, check_bytes, check_marks, check_same, marks, slots};
use super::save::{At, LATER, LIVE, OLD, OVERWORLD, Save};
use super::test_dir::{TestDir, list};
use crate::{held, worlds};

const REGION: &str = "region";
/// Beside a column, and in a region of their own.
const OLD_AT: [At; 3] = [(1, 0), (31, 31), (-40, 7)];
const TIME: u32 = 1_300_000_000;

/// A chunk as versions before 1.13 wrote it; the oldest say no version.
fn old_chunk((x, z): At, data_version: Option<i32>, noise: &[u8]) -> Vec<u8> {
    nbt::document(|root| {
        if let Some(data_version) = data_version {
            root.int("DataVersion", data_version);
        }
        root.compound("Level", |level| {
            level.int("xPos", x);
            level.int("zPos", z);
            level.byte("TerrainPopulated", 1);
            level.byte_array("noise", noise);
            let sections = level.compounds("Sections", [0, 3].iter(), |section, y| {
                section.byte("Y", *y);
                section.byte_array("Blocks", &vec![7; 4096]);
                section.byte_array("Data", &vec![0; 2048]);
                Ok::<_, nbt::TooLong>(())
            });
            sections.expect("short names");
            level.raw_compounds("Entities", [].into_iter());
        });
    })
}

/// A save with one column of today and old chunks around it.
fn make(save: &Save) {
    let versions = [None, Some(1343), Some(1450)];
    let old = OLD_AT.into_iter().zip(versions).map(|(at, version)| (at, old_chunk(at, version, &[]), TIME));
    let column = super::save::document(&super::save::column((0, 0), LIVE));
    save.level(OLD, "opened in every version").slots(REGION, old.chain([((0, 0), column, LIVE.time)]));
}

/// The old chunks of a save, by region.
fn old(dir: &TestDir, root: &str) -> [Slots; 2] {
    let of = |name: &str| {
        let path = dir.at(root).join(REGION).join(name);
        let mut slots = if path.exists() { slots(&path) } else { Slots::new() };
        slots.retain(|_, (time, _)| *time == TIME);
        slots
    };
    [of("r.0.0.mca"), of("r.-2.0.mca")]
}

#[test]
fn old_chunks_go_back_as_they_were() {
    let dir = TestDir::new();
    let save = dir.save("save");
    make(&save);
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!((&imported["old_slots"], &imported["imported_columns"]), (&json!(3), &json!(1)));
    assert_eq!((&imported["unreadable"], &imported["not_carried"]), (&json!([]), &json!([])));
    assert_eq!((&exported["old_slots"], &exported["not_exported"]), (&json!(3), &json!({})));
    check_same(save.path(), &dir.at("out"));
    for (before, after) in old(&dir, "save").iter().zip(&old(&dir, "out")) {
        check_bytes("old", before, after);
    }
    // They are in the order of any other content: what came out goes in the same way.
    dir.import("out", "again", &[]).good();
    assert_eq!(dir.hash("again"), dir.hash("world"));
    dir.export("world", "one", &["-d", OVERWORLD]).good();
    check_same(&save.path().join(REGION), &dir.at("one").join(REGION));
}

#[test]
fn what_is_said_of_old_chunks_names_their_number() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    let said = dir.cg("import", "save", &[crate::cmd::text(&dir.at("world"))]).good();
    assert!(!said.contains("open the save once"), "the game upgrades a chunk only when it loads it: {said}");
    assert!(said.lines().any(|line| line.contains('3') && line.contains("1.13")), "{said}");
}

#[test]
fn a_large_old_chunk_goes_back_beside_its_region() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(1_200_000)
    .collect();
    save.level(OLD, "large").slots(REGION, [((2, 2), old_chunk((2, 2), None, &noise), TIME)]);
    assert!(save.path().join(REGION).join("c.2.2.mcc").is_file());
    let (imported, _) = dir.round("save", &[]);
    assert_eq!(imported["old_slots"], 1);
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn a_damaged_slot_is_unreadable_as_ever() {
    let dir = TestDir::new();
    let save = dir.save("save");
    make(&save);
    let mut torn = old_chunk((3, 3), None, &[]);
    torn.truncate(torn.len() - 9);
    save.slots("DIM1/region", [((3, 3), torn, TIME)]);
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["old_slots"], &report["unreadable"][0]["slot"]), (&json!(3), &json!(99)));
    assert_eq!(list(&report["unreadable"]).len(), 1);
}

#[test]
fn a_file_of_old_chunks_alone_goes_back() {
    let Some(folder) = worlds::folder() else { return };
    let dir = TestDir::new();
    let file = "1.12.2_prismarine_r.0.-1.mca";
    let source = folder.join("mca_old").join(file);
    let (imported, exported) = dir.round(source.to_str().expect("text"), &[]);
    for report in [&imported, &exported] {
        assert_eq!(report["old_slots"], 105);
    }
    assert_eq!((&imported["unreadable"], &imported["imported_columns"]), (&json!([]), &json!(0)));
    check_bytes(file, &slots(&source), &slots(&dir.at("out/region/r.0.-1.mca")));
}

/// Stores a chunk of stone, or deletes the column's.
fn edit(dir: &TestDir, (x, z): At, is_stored: bool) {
    let world = held::open(&dir.at("world"));
    let overworld = world.registry().register_dimension(OVERWORLD).expect("registered");
    let [stone] = world.registry().register_blocks(["test:host"]).expect("registered");
    let done = world.transaction(|tx| {
        let at = ChunkAt::new(overworld, ChunkPos::new(i64::from(x), 4, i64::from(z)).expect("inside"));
        if is_stored {
            tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
        } else {
            tx.delete(at);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    done.expect("committed");
    world.close().expect("closed");
}

#[test]
fn blocks_that_were_stored_since_win() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).good();
    edit(&dir, (1, 0), true);
    edit(&dir, (-40, 7), true);
    let report = dir.export("world", "out", &[]).good();
    assert_eq!((&report["old_slots"], &report["columns"]), (&json!(1), &json!(3)));
    let marks = marks(&dir.at("out"));
    assert_eq!(marks.len(), 3, "{marks:?}");
    assert_eq!((&*marks[&(1, 0)], &*marks[&(-40, 7)]), ("host", "host"));
    let [first, second] = old(&dir, "out");
    assert_eq!((first.into_keys().collect::<Vec<_>>(), second.len()), (vec![1023], 0));
}

#[test]
fn a_readable_column_of_a_later_save_takes_their_place_for_good() {
    for has_blocks in [true, false] {
        let dir = TestDir::new();
        make(&dir.save("save"));
        let later = dir.save("later");
        let mut column = super::save::column((1, 0), LATER);
        if !has_blocks {
            // As the game begins one.
            column.sections.clear();
            column.left = None;
        }
        let column = super::save::document(&column);
        later.level(OLD, "later").slots(REGION, [((1, 0), column, LATER.time)]);
        dir.import("save", "world", &[]).good();
        let report = dir.import("later", "world", &["--merge", "replace"]).ended(0);
        assert_eq!((&report["old_slots"], &report["imported_columns"]), (&json!(0), &json!(1)));
        assert_eq!(dir.export("world", "out", &[]).good()["old_slots"], 2);
        assert_eq!(marks(&dir.at("out")).len(), 2);
        if has_blocks {
            // Nor do they come back when those blocks go.
            edit(&dir, (1, 0), false);
            assert_eq!(dir.export("world", "gone", &[]).good()["old_slots"], 2);
            check_marks(&dir.at("gone"), "live", &[(0, 0)]);
        }
        let [first, second] = old(&dir, "out");
        assert_eq!((first.into_keys().collect::<Vec<_>>(), second.len()), (vec![1023], 1));
    }
}

#[test]
fn blocks_of_the_world_are_kept_from_old_chunks() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "first").blocks("", LIVE, &OLD_AT);
    make(&dir.save("later"));
    dir.import("save", "world", &[]).good();
    dir.import("later", "world", &["--merge", "keep"]).ended(0);
    dir.export("world", "out", &[]).good();
    check_marks(&dir.at("out"), "live", &[OLD_AT[0], OLD_AT[1], OLD_AT[2], (0, 0)]);
}

#[test]
fn old_chunks_of_a_later_save_replace_those_of_the_world_or_not() {
    for (merge, kept) in [("replace", "later"), ("keep", "save")] {
        let dir = TestDir::new();
        for (name, noise) in [("save", 1), ("later", 2)] {
            let slot = (OLD_AT[0], old_chunk(OLD_AT[0], None, &[noise; 50]), TIME);
            dir.save(name).level(OLD, name).slots(REGION, [slot]);
        }
        dir.import("save", "world", &[]).good();
        dir.import("later", "world", &["--merge", merge]).ended(0);
        assert_eq!(dir.export("world", "out", &[]).good()["old_slots"], 1);
        check_same(&dir.at(kept), &dir.at("out"));
    }
}

#[test]
fn a_dimension_of_its_own_for_strays_keeps_old_chunks() {
    let dir = TestDir::new();
    let save = dir.save("save");
    make(&save);
    save.slots("dimensions/minecraft/overworld/region", [((7, 7), old_chunk((7, 7), None, &[]), TIME)]);
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["old_slots"], &report["strays"][0]["columns"]), (&json!(3), &json!(1)));
    let taken = dir.import("save", "taken", &["--take-strays"]).good();
    assert_eq!(taken["old_slots"], 4);
    dir.export("taken", "out", &[]).good();
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn an_old_chunk_that_the_world_keeps_is_kept_from_what_a_later_save_has_there() {
    for has_blocks in [true, false] {
        let dir = TestDir::new();
        make(&dir.save("save"));
        let later = dir.save("later");
        let mut column = super::save::column((1, 0), LATER);
        if !has_blocks {
            column.sections.clear();
            column.left = None;
        }
        let slots = [(1, 0), (2, 0)].map(|at| {
            let column = if at == (1, 0) { column.clone() } else { super::save::column(at, LATER) };
            (at, super::save::document(&column), LATER.time)
        });
        later.level(OLD, "later").slots(REGION, slots).points("", LATER, &[(1, 0)]);
        dir.import("save", "world", &[]).good();
        let report = dir.import("later", "world", &["--merge", "keep"]).ended(0);
        assert_eq!((&report["imported_columns"], &report["imported_chunks"]), (&json!(1), &json!(1)));
        assert_eq!(report["kept_chunks"], u64::from(has_blocks));
        assert_eq!(dir.export("world", "out", &[]).good()["old_slots"], 3);
        for (before, after) in old(&dir, "save").iter().zip(&old(&dir, "out")) {
            check_bytes("old", before, after);
        }
        assert_eq!(marks(&dir.at("out")).into_keys().collect::<Vec<_>>(), [(0, 0), (2, 0)]);
        assert!(!dir.at("out/poi").exists(), "those of another column");
    }
}

#[test]
fn old_chunks_that_the_world_keeps_are_not_counted() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).good();
    let report = dir.import("save", "world", &["--merge", "keep"]).ended(0);
    assert_eq!(report["old_slots"], 0);
    assert_eq!(dir.import("save", "world", &["--merge", "replace"]).ended(0)["old_slots"], 3);
}

#[test]
fn old_chunks_that_blocks_were_stored_over_are_counted_by_themselves() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).good();
    edit(&dir, (1, 0), true);
    edit(&dir, (-40, 7), true);
    let report = dir.export("world", "out", &[]).good();
    assert_eq!((&report["left_old_slots"], &report["old_slots"]), (&json!(2), &json!(1)));
    assert_eq!(report["changed_columns"], 0);
    let said = dir.cg("export", "world", &["--mca", crate::cmd::text(&dir.at("said"))]).good();
    let line = "columns of before 1.13 left out, because the world has blocks there: 2";
    assert!(said.lines().any(|said| said == line), "{said}");
    assert!(!said.contains("height maps"), "{said}");
}
