//! A kept slot is dropped as soon as the world has something else at its place, and the export names it.

use cg_anvil::nbt::{self, CompoundWriter};
use cg_format::entity::EntityPos;
use cg_store::prelude::*;
use serde_json::Value;

use super::super::save::{At, OLD, OVERWORLD};
use super::super::test_dir::{TestDir, list};
use super::faults::{self, make, place, raw_slots, torn_columns};
use super::number;
use crate::{held, maker, worlds};

/// Stores a chunk of a host's own, or deletes the chunk.
fn edit(dir: &TestDir, (x, z): At, y: i64, is_stored: bool) {
    let world = held::open(&dir.at("world"));
    let overworld = world.registry().register_dimension(OVERWORLD).expect("registered");
    let [stone] = world.registry().register_blocks(["test:host"]).expect("registered");
    let done = world.transaction(|tx| {
        let at = ChunkAt::new(overworld, ChunkPos::new(i64::from(x), y, i64::from(z)).expect("inside"));
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

/// The places that an export dropped.
fn dropped(report: &Value) -> Vec<(String, At)> {
    let all = list(&report["dropped_slots"]).iter().map(|slot| {
        let number = |name: &str| slot[name].as_i64().expect("a number") as i32;
        (slot["folder"].as_str().expect("text").to_owned(), (number("x"), number("z")))
    });
    all.collect()
}

#[test]
fn a_changed_block_drops_the_slot_of_its_column_and_no_other() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    let imported = dir.import("save", "world", &[]).ended(1);
    let unread = place(torn_columns().len() + 2);
    // Another block, one more section, and blocks where none could be read.
    edit(&dir, (0, 0), 4, true);
    edit(&dir, (1, 0), 9, true);
    edit(&dir, unread, 4, true);
    let report = dir.export("world", "out", &[]).ended(1);
    // The points of interest beside the first are of other blocks too.
    let wanted = [(0, 0), (1, 0), unread].map(|at| ("region".to_owned(), at));
    let mut found = dropped(&report);
    assert_eq!(found.pop(), Some(("poi".to_owned(), (0, 0))), "{report}");
    assert_eq!(found, wanted, "{report}");
    assert_eq!(number(&report, "dropped_slot_count"), 4);
    assert_eq!(number(&report, "kept_slots"), number(&imported, "kept_slots") - 4);
    let (before, after) = (dir.at("save/region/r.0.0.mca"), dir.at("out/region/r.0.0.mca"));
    let (before, after) = (raw_slots(&before), raw_slots(&after));
    let same = before.iter().filter(|(slot, raw)| after.get(*slot) == Some(*raw)).count();
    assert_eq!(same, before.len() - 3);
    // What the world has is written.
    let columns = worlds::read(&dir.at("out/region/r.0.0.mca")).columns;
    let written =
        columns.iter().find(|(_, column)| (column.pos.x, column.pos.z) == unread).expect("it is there");
    assert_eq!(written.1.state(unread.0 * 16, 64, unread.1 * 16).map(|state| &**state), Some("test:host"));
    let said = dir.cg("export", "world", &["--mca", crate::cmd::text(&dir.at("said"))]);
    let line = format!(
        "{OVERWORLD} column (0, 0): its slot of region/ could not be read when it was imported (section 5: its indices take 255 words where 4 bits each take 256) and is dropped, because it was changed since"
    );
    assert!(said.out.lines().any(|said| said == line), "{}", said.out);
}

#[test]
fn a_change_that_was_taken_back_is_none() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    edit(&dir, (1, 0), 9, true);
    edit(&dir, (1, 0), 9, false);
    dir.export("world", "out", &[]).ended(0);
    super::check_raw(&dir, "save", "out");
}

#[test]
fn a_deleted_column_takes_its_slot_along() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    edit(&dir, (3, 0), 4, false);
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(dropped(&report), [("region".to_owned(), (3, 0))]);
    assert_eq!(raw_slots(&dir.at("out/region/r.0.0.mca")).get(&3), None);
    // So does pruning, which forgets it.
    let before = dir.objects("world", "minecraft/slot/").len();
    dir.cg("prune", "world", &["--box", "64", "-2048", "0", "79", "2047", "15", "--yes"]).good();
    assert_eq!(dir.objects("world", "minecraft/slot/").len(), before - 1);
    assert_eq!(dropped(&dir.export("world", "again", &[]).ended(1)), [("region".to_owned(), (3, 0))]);
    // Slots that could not be read at all go with their whole column: all is gone of a box around them.
    let prune = |top| dir.cg("prune", "world", &["--box", "0", "-2048", "0", "511", top, "511", "--yes"]);
    prune("2046").good();
    assert_ne!(dir.objects("world", "minecraft/slot"), [""; 0]);
    prune("2047").good();
    assert_eq!(dir.objects("world", "minecraft/slot"), [""; 0]);
}

#[test]
fn an_entity_that_moved_drops_the_slot_that_listed_it() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "entities").folder("region");
    let pig = maker::entity("minecraft:pig", [1, 2, 3, 4], [5.0, 70.0, 5.0], &[]);
    // In the column itself, as columns have them that are not generated to the end.
    let section = |out: &mut CompoundWriter<'_>| {
        out.byte("Y", 5);
        out.compound("block_states", |_| ());
    };
    let torn = faults::torn((2, 0), section, |root| root.raw_compounds("entities", [&pig[..]].into_iter()));
    faults::write(&save.path().join("region/r.0.0.mca"), &[faults::slot_of((2, 0), &torn)]);
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!((number(&imported, "kept_slots"), number(&imported, "entities")), (1, 1));
    assert_eq!(number(&dir.export("world", "out", &[]).ended(0), "kept_slots"), 1);
    let world = held::open(&dir.at("world"));
    let id = EntityId::new(uuid::Uuid::from_u128(0x0000_0001_0000_0002_0000_0003_0000_0004));
    let mut entity = world.entity(id).expect("sound").expect("there");
    let block = BlockPos::new(21, 70, 5);
    entity.position = EntityPos::new(entity.position.dimension(), block, [0.0; 3]).expect("a place");
    world
        .transaction(|tx| {
            tx.put_entity(id, entity);
            Ok::<_, Error>(())
        })
        .expect("committed");
    world.close().expect("closed");
    drop(world);
    let report = dir.export("world", "moved", &[]).ended(1);
    assert_eq!(dropped(&report), [("region".to_owned(), (2, 0))]);
}

#[test]
fn an_entity_that_came_to_a_slot_of_entities_drops_it() {
    let dir = TestDir::new();
    make(&dir.save("save"));
    dir.import("save", "world", &[]).ended(1);
    let pig = maker::entity("minecraft:pig", [1, 2, 3, 4], [500.0, 70.0, 500.0], &[]);
    let later = dir.save("later");
    let slot = nbt::document(|root| {
        root.int("DataVersion", super::super::save::NEW);
        root.int_array("Position", &[31, 31]);
        root.raw_compounds("Entities", [&pig[..]].into_iter());
    });
    later.level(OLD, "later").slots("entities", [((31, 31), slot, 7)]);
    // The save's slot can be read, so the one that could not is forgotten.
    dir.import("later", "world", &["--merge", "replace"]).ended(0);
    let key = format!("minecraft/slot-entities/{OVERWORLD}/r.0.0/31/31");
    assert!(!dir.objects("world", "minecraft/slot-entities").contains(&key), "{key}");
    let report = dir.export("world", "out", &[]).ended(0);
    assert_eq!(number(&report, "entities"), 1);
}
