//! Merges go by column: one that the world keeps stays whole, one that is replaced goes whole, and damage locks nothing.

use cg_anvil::column::{Blocks, Column, Section};
use cg_anvil::nbt;
use cg_format::{Space, key};
use cg_store::prelude::*;
use serde_json::{Value, json};

use super::folder::{marks, slots};
use super::save::{At, LATER, LIVE, Mark, OLD, OVERWORLD, Save, column, document};
use super::test_dir::{TestDir, list};
use super::unfinished::is_unfinished;
use crate::{held, maker, worlds};

const AT: At = (0, 0);

/// A column with sections at these heights, and this status.
fn column_of(mark: Mark, heights: &[i32], status: &str) -> Column {
    let mut column = column(AT, mark);
    let section = |y: &i32| {
        let blocks = Some(Blocks::uniform(&format!("test:{}", mark.name)));
        Section { blocks, ..Section::new(*y) }
    };
    column.sections = heights.iter().map(section).collect();
    column.carried = nbt::payload(|out| out.string("Status", status).expect("short"));
    column
}

/// A save of one column, with an entity and a point of interest in it.
fn save_of(dir: &TestDir, name: &str, mark: Mark, heights: &[i32], status: &str) -> Save {
    let save = dir.save(name);
    save.level(OLD, name).slots("region", [(AT, document(&column_of(mark, heights, status)), mark.time)]);
    save.entities("", mark, &[AT]).points("", mark, &[AT]);
    save
}

/// The heights of the sections with blocks, the status, and the entities of an export's column.
fn exported(dir: &TestDir, out: &str) -> (Vec<i32>, String, usize) {
    let read = worlds::read(&dir.at(out).join("region/r.0.0.mca"));
    let [(_, column)] = &read.columns[..] else { panic!("{} columns", read.columns.len()) };
    let heights = column.sections.iter().filter(|section| section.blocks.is_some()).map(|section| section.y);
    let entities = dir.at(out).join("entities/r.0.0.mca");
    let count = if entities.exists() { worlds::read(&entities).entities[0].1.entities.len() } else { 0 };
    (heights.collect(), column.status().unwrap_or_default(), count)
}

/// Counts of chunks in a report: new, replaced, unchanged, removed, kept.
fn chunks(report: &Value) -> [u64; 5] {
    ["new", "replaced", "unchanged", "removed", "kept"]
        .map(|what| report[format!("{what}_chunks")].as_u64().unwrap_or_else(|| panic!("{what}: {report}")))
}

#[test]
fn all_of_a_replaced_column_goes() {
    let dir = TestDir::new();
    save_of(&dir, "save", LIVE, &[-4, 4, 19], "minecraft:full");
    let later = dir.save("later");
    // Without entities and points: those of the world's column go with it.
    let column = document(&column_of(LATER, &[4, 5], "minecraft:full"));
    later.level(OLD, "later").slots("region", [(AT, column, LATER.time)]);
    dir.import("save", "world", &[]).good();
    let report = dir.import("later", "world", &["--merge", "replace"]).ended(0);
    assert_eq!(chunks(&report), [1, 1, 0, 2, 0], "{report}");
    dir.export("world", "out", &[]).good();
    assert_eq!(exported(&dir, "out"), (vec![4, 5], "minecraft:full".into(), 0));
    assert!(!dir.at("out/poi").exists(), "they belonged to the column that went");
    // What is imported again changes nothing.
    let before = dir.hash("world");
    let report = dir.import("later", "world", &["--merge", "replace"]).ended(0);
    assert_eq!((chunks(&report), dir.hash("world")), ([0, 0, 2, 0, 0], before));
    let text = dir.cg("import", "later", &[crate::cmd::text(&dir.at("world")), "--merge", "replace"]);
    let line = "chunks: new 0, replaced 0, unchanged 2, removed 0";
    assert!(text.out.lines().any(|said| said == line), "{}", text.out);
}

#[test]
fn chunks_of_a_host_that_no_save_can_have_go_too() {
    let dir = TestDir::new();
    save_of(&dir, "save", LIVE, &[4], "minecraft:full");
    dir.import("save", "world", &[]).good();
    edit(&dir, 1_000_000);
    let report = dir.import("save", "world", &["--merge", "replace"]).ended(0);
    assert_eq!(chunks(&report), [0, 0, 1, 1, 0], "{report}");
}

/// Stores a chunk of a host's own in the column.
fn edit(dir: &TestDir, y: i64) {
    let world = held::open(&dir.at("world"));
    let overworld = world.registry().register_dimension(OVERWORLD).expect("registered");
    let [stone] = world.registry().register_blocks(["test:host"]).expect("registered");
    let done = world.transaction(|tx| {
        let at = ChunkAt::new(overworld, ChunkPos::new(0, y, 0).expect("inside"));
        tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    done.expect("committed");
    world.close().expect("closed");
}

#[test]
fn a_column_of_which_the_world_has_any_part_is_kept_whole() {
    for part in ["chunk", "record"] {
        let dir = TestDir::new();
        save_of(&dir, "save", LIVE, &[-4, 4, 19], "minecraft:full");
        let begun = dir.save("begun");
        begun.level(OLD, "begun").blocks("", LATER, &[(9, 9)]);
        if part == "record" {
            let column = document(&column_of(LATER, &[], "minecraft:structure_starts"));
            begun.slots("region", [(AT, column, LATER.time)]);
        }
        dir.import("begun", "world", &[]).good();
        if part == "chunk" {
            edit(&dir, 9);
        }
        dir.export("world", "before", &[]).good();
        let report = dir.import("save", "world", &["--merge", "keep"]).ended(0);
        assert_eq!((chunks(&report), &report["imported_columns"]), ([0, 0, 0, 0, 3], &json!(0)), "{part}");
        assert_eq!((&report["entities"], &report["kept_entities"]), (&json!(0), &json!(1)), "{part}");
        dir.export("world", "out", &[]).good();
        let region = "region/r.0.0.mca";
        assert_eq!(slots(&dir.at("out").join(region)), slots(&dir.at("before").join(region)), "{part}");
        assert!(!dir.at("out/poi").exists() && !dir.at("out/entities").exists(), "{part}");
    }
}

/// Takes a chunk of the column out of the world.
fn delete(dir: &TestDir, y: i64) {
    let world = held::open(&dir.at("world"));
    let overworld = world.registry().register_dimension(OVERWORLD).expect("registered");
    let done = world.transaction(|tx| {
        tx.delete(ChunkAt::new(overworld, ChunkPos::new(0, y, 0).expect("inside")));
        Ok::<_, Error>(())
    });
    done.expect("committed");
    world.close().expect("closed");
}

#[test]
fn a_kept_column_gets_the_chunks_that_it_lacks_if_the_others_are_the_saves() {
    for y in [-4, 19] {
        let dir = TestDir::new();
        save_of(&dir, "save", LIVE, &[-4, 4, 19], "minecraft:full");
        dir.import("save", "world", &[]).good();
        let hash = || dir.hash("world");
        let sound = hash();
        delete(&dir, y);
        let report = dir.import("save", "world", &["--merge", "keep"]).ended(0);
        assert_eq!(chunks(&report), [1, 0, 0, 0, 2], "{y}: {report}");
        assert_eq!(hash(), sound, "{y}");
        // Of a column that was changed since it stays away.
        delete(&dir, y);
        edit(&dir, 4);
        let changed = hash();
        let report = dir.import("save", "world", &["--merge", "keep"]).ended(0);
        assert_eq!(chunks(&report), [0, 0, 0, 0, 3], "{y}: {report}");
        assert_eq!(hash(), changed, "{y}");
    }
}

#[test]
fn finished_terrain_takes_the_place_of_a_column_that_was_begun() {
    let dir = TestDir::new();
    save_of(&dir, "begun", LIVE, &[-4], "minecraft:structure_starts");
    save_of(&dir, "save", LATER, &[4], "minecraft:full");
    dir.import("begun", "world", &[]).good();
    dir.import("save", "world", &["--merge", "replace"]).ended(0);
    dir.export("world", "out", &[]).good();
    assert_eq!(exported(&dir, "out"), (vec![4], "minecraft:full".into(), 1));
}

#[test]
fn a_column_that_is_torn_replaces_none() {
    let dir = TestDir::new();
    save_of(&dir, "save", LIVE, &[4, 5], "minecraft:full");
    dir.import("save", "world", &[]).good();
    let before = dir.hash("world");
    let later = dir.save("later");
    let mut torn = column_of(LATER, &[4], "minecraft:full");
    torn.sections.push(Section {
        left: Some(nbt::payload(|out| {
            // A palette of states without a name.
            out.compound("block_states", |out| {
                out.raw_compounds("palette", [&nbt::payload(|_| ())[..]].into_iter());
            });
        })),
        ..Section::new(5)
    });
    later.level(OLD, "save").slots("region", [(AT, document(&torn), LATER.time)]);
    let report = dir.import("later", "world", &["--merge", "replace"]).ended(1);
    assert_eq!((chunks(&report), &report["imported_columns"]), ([0, 0, 0, 0, 1], &json!(0)), "{report}");
    assert_eq!(list(&report["unreadable"]).len(), 1, "{report}");
    assert_eq!(dir.hash("world"), before);
    // Where the world has none, half of it is better than nothing.
    let report = dir.import("later", "new", &[]).ended(1);
    assert_eq!(chunks(&report), [1, 0, 0, 0, 0], "{report}");
}

#[test]
fn what_is_damaged_in_the_world_stays_and_locks_no_import() {
    let chunk = key::chunk(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 4, 0))).to_vec();
    let leftovers = format!("minecraft/column/{OVERWORLD}/r.0.0/0/0").into_bytes();
    let pig = key::entity(EntityId::new(uuid::Uuid::from_u64_pair(1 << 32, 0))).to_vec();
    for (space, row) in [(Space::ChunkL0, chunk), (Space::Object, leftovers), (Space::Entity, pig)] {
        for merge in ["keep", "replace"] {
            let dir = TestDir::new();
            save_of(&dir, "save", LIVE, &[4, 5], "minecraft:full");
            save_of(&dir, "later", LATER, &[4, 5], "minecraft:full").blocks("", LATER, &[AT, (1, 0)]);
            dir.import("save", "world", &[]).good();
            dir.spoil("world", space, &row);
            let problems = |dir: &TestDir| dir.cg("verify", "world", &["--json"]).json()["problems"].clone();
            let before = problems(&dir);
            assert_ne!(before, json!([]), "{space:?}");
            let report = dir.import("later", "world", &["--merge", merge]);
            let (code, report) = (report.code, report.report);
            assert!(!is_unfinished(&dir.at("world")), "{space:?} {merge}");
            assert_eq!(report["imported_columns"], 1, "{space:?} {merge}: {report}");
            // What is kept is not looked at any further.
            let is_met = merge == "replace" || space == Space::Object;
            assert_eq!(code, i32::from(is_met), "{space:?} {merge}: {report}");
            assert_eq!(list(&report["unreadable"]).len(), usize::from(is_met), "{space:?} {merge}: {report}");
            if is_met {
                let reason = report["unreadable"][0]["reason"].as_str().expect("text");
                let begun = "the world keeps its column (0, 0), of which a part is damaged: ";
                assert!(reason.starts_with(begun), "{reason}");
            }
            assert_eq!(problems(&dir), before, "{space:?} {merge}");
            let _other_damage = dir.export("world", "out", &[]);
            assert_eq!(marks(&dir.at("out")).get(&(1, 0)).map(String::as_str), Some("later"));
        }
    }
}

#[test]
fn an_entity_of_the_world_that_is_damaged_stays_and_locks_no_import() {
    let dir = TestDir::new();
    let pig = maker::entity("minecraft:pig", [7, 7, 7, 7], [5.0, 70.0, 5.0], &[]);
    let with_pig = |at: At, mark: Mark| {
        let mut column = column(at, mark);
        column.entities = vec![pig.clone()];
        (at, document(&column), mark.time)
    };
    dir.save("save").level(OLD, "save").slots("region", [with_pig((0, 0), LIVE)]);
    // The same one, listed in a column that the world does not have.
    dir.save("later").level(OLD, "later").slots("region", [with_pig((5, 0), LATER)]);
    let id = uuid::Uuid::from_u64_pair(7 << 32 | 7, 7 << 32 | 7);
    for merge in ["keep", "replace"] {
        let _other = std::fs::remove_dir_all(dir.at("world"));
        dir.import("save", "world", &[]).good();
        dir.spoil("world", Space::Entity, &key::entity(EntityId::new(id)));
        let report = dir.import("later", "world", &["--merge", merge]).ended(1);
        assert!(!is_unfinished(&dir.at("world")), "{merge}");
        assert_eq!((&report["imported_columns"], &report["entities"]), (&json!(1), &json!(0)), "{merge}");
        let reason = report["unreadable"][0]["reason"].as_str().expect("text");
        assert!(
            reason.starts_with(&format!("the world keeps its entity {id}, which is damaged: ")),
            "{reason}"
        );
    }
}
