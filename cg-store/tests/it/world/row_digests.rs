//! Digests of all rows of a scripted world, after each part of the script: the stored bytes of every way to write.
//!
//! A change of the code that changes no format leaves them as they are, over every engine. A change of a format changes
//! the families that it names, and no other.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use cg_format::record::Record;
use cg_format::{BlockBox, CellOrder, RecordId, Space, frame, key};
use cg_store::opacity::Keep;
use cg_store::{StoreLimits, WriteBatch};
use cg_tiering::GameTick;
use expect_test::{ExpectFile, expect_file};
use sha2::{Digest as _, Sha256};

use super::moves::{play, player};
use super::tier::noisy;
use super::*;

const MINUTE: u64 = 60 * GameTick::PER_SECOND;
const DAY: u64 = 24 * 60 * MINUTE;

/// The first byte of the key of a quarantined row.
const QUARANTINE: u8 = 3;

/// Small batches, so that the largest commit of the script is staged.
fn scripted(opacity: Keep) -> WorldOptions {
    let kind = 1 << 20;
    let limits = StoreLimits {
        chunk_bytes: kind,
        entity_bytes: kind,
        property_bytes: kind,
        object_bytes: kind,
        record_bytes: kind,
        batch_bytes: 100_000,
    };
    WorldOptions { opacity, deltas: true, limits, ..options() }
}

/// A part of the script. Each part writes over what the earlier ones left.
struct Part {
    name: &'static str,
    write: fn(&World, &Ids),
}

const SCRIPT: [Part; 13] = [
    Part { name: "transactions of chunks", write: chunks },
    Part { name: "edits of single blocks", write: edits },
    Part { name: "entities", write: entities },
    Part { name: "properties, objects and records", write: values },
    Part { name: "submitted batches", write: batches },
    Part { name: "boxes", write: boxes },
    Part { name: "a staged commit", write: staged },
    Part { name: "ticks of six minutes", write: six_minutes },
    Part { name: "ticks of a day, and a visitor", write: a_day },
    Part { name: "writes to clusters and moves up", write: ticks_up },
    Part { name: "demotion of everything", write: demotion },
    Part { name: "names, limits and the opacity map", write: registry },
    Part { name: "quarantine, snapshots and tombstones", write: upkeep },
];

fn in_one<T>(world: &World, write: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>) -> T {
    world.transaction(write).expect("commits").value
}

/// Stone with holes: a chunk that is worth a delta.
fn hills(world: &World, ids: &Ids, seed: u8) -> Chunk {
    let mut chunk = filled(world, ids.stone);
    let schema = world.catalog().current_schema();
    for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z() ^ seed).is_multiple_of(4)) {
        chunk.set_block(cell, ids.glass, &schema).expect("is registered");
    }
    let machine = LocalPos::new(seed % 16, 9, 9);
    chunk.set_block(machine, ids.machine, &schema).expect("is registered");
    chunk.set_component(machine.into(), ids.power, &[seed, 1, 2, 3]).expect("has it");
    chunk.set_component(machine.into(), ids.items, b"coal").expect("has it");
    chunk.push_layer(LocalPos::new(1, 1, seed % 16), ids.glass, &schema).expect("fits");
    chunk
}

fn row_of(ids: &Ids, x: RangeInclusive<i64>) -> impl Iterator<Item = ChunkAt> + use<'_> {
    x.map(|x| ids.at(x, 0, 0))
}

fn chunks(world: &World, ids: &Ids) {
    save(world, row_of(ids, 0..=11).zip(0..).map(|(at, seed)| (at, hills(world, ids, seed))));
    save(world, row_of(ids, 12..=40).zip(0..).map(|(at, cell)| (at, marked(world, ids, cell * 7))));
    save(world, row_of(ids, -20..=-1).zip(0..).map(|(at, seed)| (at, noisy(world, ids, seed))));
    let far = [(ChunkPos::MIN, ChunkPos::MAX), (ChunkPos::MAX, ChunkPos::MIN)];
    save(world, far.map(|(x, y)| (ids.at(x, y, x), filled(world, ids.glass))));
    save(world, [(ChunkAt::new(ids.nether, ChunkPos::constant(5, -3, 9)), hills(world, ids, 77))]);
    in_one(world, |tx| {
        tx.delete(ids.at(40, 0, 0));
        tx.delete(ids.at(500, 0, 0));
        tx.save_blocks(ids.at(39, 0, 0), filled(world, ids.stone))
    });
    let column = world.column(ids.overworld, 13, 0, -2..=2).expect("is sound");
    in_one(world, |tx| tx.save_column(ids.overworld, 13, 7, &column));
}

fn edits(world: &World, ids: &Ids) {
    for x in 0..6_i64 {
        let pos = ids.at(x, 0, 0).pos.block(LocalPos::new(5, 5, x as u8));
        in_one(world, |tx| tx.set_block(ids.overworld, pos, ids.machine));
        in_one(world, |tx| {
            tx.set_component(ids.at(x, 0, 0), pos.local().into(), ids.power, &[x as u8; 4])?;
            tx.set_side(ids.at(x, 0, 0), ids.light, Some(vec![x as u8; 60]))
        });
    }
    in_one(world, |tx| {
        let schema = tx.current_catalog().current_schema();
        tx.edit(ids.at(1, 0, 0), |chunk| chunk.set_block(LocalPos::new(0, 0, 0), ids.air, &schema))??;
        tx.set_side(ids.at(0, 0, 0), ids.light, None)
    });
}

fn entities(world: &World, ids: &Ids) {
    in_one(world, |tx| {
        for n in 1..20_u8 {
            let mut cow = ids.cow_in(ids.at(i64::from(n % 8), 0, 0));
            cow.set_component(ids.items, vec![n; usize::from(n)]).map_err(Error::from)?;
            tx.put_entity(uuid(n.into()), cow);
        }
        Ok(())
    });
    in_one(world, |tx| {
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(9, 0, 0)))?;
        tx.delete_entity(uuid(2));
        tx.delete(ids.at(3, 0, 0));
        Ok(())
    });
}

fn record_at(ids: &Ids, x: i64, text: &str) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(x, 7, -x), [0.5; 3]).expect("inside");
    Record::new(position, "game:mark", x, text.as_bytes().to_vec()).expect("is short")
}

fn record_id(n: u128) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(n))
}

fn values(world: &World, ids: &Ids) {
    in_one(world, |tx| {
        tx.set_property(Property::Seed, Some(vec![7; 8]));
        tx.set_property(Property::Named(name("game:rule")), Some(b"on".to_vec()));
        tx.set_property(Property::Named(name("game:other")), Some(b"off".to_vec()));
        for n in 0..12 {
            tx.put_object(format!("map/{n}"), vec![n; 70])?;
            tx.put_record(record_id(n.into()), record_at(ids, i64::from(n) * 100 - 500, "sign"));
        }
        tx.put_object_at_version("versioned", 40, vec![1; 9])
    });
    in_one(world, |tx| {
        tx.set_property(Property::Named(name("game:other")), None);
        tx.put_object("map/3", vec![99; 2])?;
        tx.delete_object("map/4")?;
        let to = EntityPos::new(ids.nether, BlockPos::new(1, 2, 3), [0.0; 3]).expect("inside");
        tx.move_record(record_id(5), to)?;
        tx.delete_record(record_id(6));
        Ok(())
    });
    let many = (100..160).map(|n| (record_id(n), record_at(ids, n as i64 * 3, "inserted")));
    assert_eq!(world.records().insert(many).expect("inserts"), 60);
}

fn batches(world: &World, ids: &Ids) {
    let mut batch = WriteBatch::new();
    batch.save(ids.at(50, 0, 0), hills(world, ids, 50));
    batch.save_blocks(ids.at(9, 0, 0), hills(world, ids, 51));
    batch.delete(ids.at(38, 0, 0));
    batch.set_block(ids.overworld, ids.at(4, 0, 0).pos.block(LocalPos::new(1, 2, 3)), ids.air);
    batch.set_side(ids.at(5, 0, 0), ids.light, Some(vec![8; 30]));
    let schema = world.catalog().current_schema();
    let glass = ids.glass;
    batch.edit(ids.at(6, 0, 0), move |chunk| {
        chunk.set_block(LocalPos::new(2, 2, 2), glass, &schema)?;
        Ok(())
    });
    let column = world.column(ids.overworld, 10, 0, -2..=2).expect("is sound");
    batch.save_column(ids.overworld, 10, 8, column).expect("is inside the world");
    world.submit(batch).expect("is taken").wait().expect("is accepted");

    let mut batch = WriteBatch::new();
    batch.move_entity(uuid(3), Owner::Chunk(ids.at(50, 0, 0)));
    let to = ids.cow_in(ids.at(11, 0, 0)).position;
    batch.edit_entity(uuid(4), move |cow| {
        cow.position = to;
        Ok(())
    });
    batch.put_entity(uuid(30), ids.cow_in(ids.at(7, 0, 0)));
    batch.delete_entity(uuid(5));
    batch.set_property(Property::Named(name("game:rule")), Some(b"maybe".to_vec()));
    batch.put_object("submitted", vec![1, 2, 3]).expect("the key is short");
    batch.delete_object("map/7").expect("the key is short");
    batch.put_record(record_id(7), record_at(ids, 7000, "submitted"));
    batch.delete_record(record_id(8));
    world.submit(batch).expect("is taken").wait().expect("is accepted");
}

fn boxes(world: &World, ids: &Ids) {
    let blocks = BlockBox::new(BlockPos::new(70, 3, 3), BlockPos::new(110, 12, 12));
    let count = 41 * 10 * 10;
    let values: Vec<usize> = (0..count).collect();
    in_one(world, |tx| {
        tx.write_box(ids.overworld, blocks, CellOrder::Yzx, &values, ids.air, |n| {
            [Some(ids.glass), Some(ids.stone), None][n % 3]
        })
    });
    let [from, to] = [30, 33].map(|x| ids.at(x, 0, 0).pos);
    assert_eq!(in_one(world, |tx| tx.delete_box(ids.overworld, ChunkBox::new(from, to))), 4);
}

fn staged(world: &World, ids: &Ids) {
    let before = world.metrics().stats;
    in_one(world, |tx| {
        for x in 0..60 {
            tx.save(ids.at(x, 3, 3), noisy(world, ids, 900 + x as u32));
            tx.put_object(format!("staged/{x}"), vec![x as u8; 50])?;
            tx.put_record(record_id(1000 + x as u128), record_at(ids, 16 * x, "staged"));
        }
        tx.delete_entity(uuid(6));
        Ok(())
    });
    let stats = world.metrics().stats - before;
    assert!(stats.commits_staged > 0, "{stats:?}");
}

fn six_minutes(world: &World, ids: &Ids) {
    for until in [1, 6 * MINUTE] {
        play(world, until, &[player(1, ids.overworld, 300, 300, 300)]);
    }
}

fn a_day(world: &World, ids: &Ids) {
    play(world, DAY, &[player(1, ids.overworld, 300, 300, 300)]);
    let visitor = [player(1, ids.overworld, 20 * 16, 0, 0)];
    play(world, DAY + 60 * MINUTE, &visitor);
}

fn ticks_up(world: &World, ids: &Ids) {
    world.cache().clear();
    let pos = |x| ids.at(x, 0, 0).pos.block(LocalPos::new(3, 3, 3));
    in_one(world, |tx| {
        for x in [-8, 0, 2, 10] {
            tx.set_block(ids.overworld, pos(x), ids.stone)?;
        }
        tx.delete(ids.at(-9, 0, 0));
        Ok(())
    });
    let here: Vec<_> = row_of(ids, -4..=8).collect();
    for n in 0..8 {
        world.cache().clear();
        drop(world.load_many(&here));
        play(world, DAY + (120 + n) * MINUTE, &[player(1, ids.overworld, 0, 0, 0)]);
    }
}

fn demotion(world: &World, ids: &Ids) {
    save(world, [(ids.at(-8, 0, 0), hills(world, ids, 3))]);
    world.tiers().demote_all(3 * DAY, |_| {}).expect("moves");
}

fn registry(world: &World, ids: &Ids) {
    world.registry().register_blocks(["game:brick", "game:sand"]).expect("registers");
    if world.opacity().is_kept() {
        world.registry().set_opacity(&[(ids.glass, true)].into()).expect("is stored");
        world.opacity().rebuild().expect("is rebuilt");
    }
    let limits = world.limits();
    world.raise_limits(StoreLimits { batch_bytes: limits.batch_bytes * 2, ..limits }).expect("raises");
    in_one(world, |tx| tx.set_block(ids.overworld, BlockPos::new(3, 3, 3), ids.glass));
    if world.opacity().is_kept() {
        world.opacity().fold(usize::MAX).expect("folds");
    }
}

fn upkeep(world: &World, ids: &Ids) {
    let damaged = ids.at(70, 0, 0);
    save(world, [(damaged, filled(world, ids.stone))]);
    world.cache().clear();
    plant(world, [(Space::ChunkL0, key::chunk(damaged).to_vec(), Some(plain(b"no chunk")))]);
    assert!(world.quarantine().chunk(damaged).expect("is taken away"));
    let long: Vec<u8> = (0..3_u32 << 18).map(|at| (at / 1000 + at) as u8).collect();
    world.snapshots().save("kept", &long).expect("is kept");
    world.snapshots().save("gone", &long).expect("is kept");
    assert!(world.snapshots().delete("gone").expect("is deleted"));
    let last = world.last_commit();
    world.tiers().purge_tombstones_before(last).expect("purges");
}

/// A world on disk that the script wrote.
pub(super) fn written_in_every_way(dir: &Path) -> World {
    let world = World::builder().options(&scripted(Keep::On)).create(dir).expect("the directory is empty");
    let ids = Ids::register(&world);
    for part in SCRIPT {
        (part.write)(&world, &ids);
    }
    world.flush().expect("is written");
    world
}

/// Runs the script. Returns the rows of each family after each part, as counts and digests.
fn digests(world: &World) -> String {
    let ids = Ids::register(world);
    let mut text = String::new();
    let mut last: BTreeMap<Family, String> = BTreeMap::new();
    for part in SCRIPT {
        (part.write)(world, &ids);
        world.flush().expect("is written");
        writeln!(text, "after {}, commit {}:", part.name, world.last_commit()).expect("a string grows");
        let mut families =
            Family::ALL.map(|family| (family, (0, Sha256::new()))).into_iter().collect::<BTreeMap<_, _>>();
        for ((family, key), mut row) in rows_of_any_opening(world) {
            if family == Family::Index && key[0] == QUARANTINE {
                // It holds the damaged row as it was, with its opening and checksum.
                for field in [4..8, 20..24] {
                    row[frame::LEN_BYTES..][field].fill(0);
                }
            }
            let (count, digest) = families.get_mut(&family).expect("every family");
            *count += 1;
            for bytes in [&key, &row] {
                digest.update((bytes.len() as u64).to_le_bytes());
                digest.update(bytes);
            }
        }
        for (family, (count, digest)) in families {
            let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            // Only the families that the part changed.
            if last.insert(family, digest.clone()).is_none_or(|before| before != digest) {
                writeln!(text, "{:>15} {count:>4} {digest}", family.name()).expect("a string grows");
            }
        }
    }
    assert_sound(world);
    text
}

#[track_caller]
fn assert_digests(opacity: Keep, expected: &ExpectFile) {
    let options = scripted(opacity);
    let builder = || World::builder().options(&options);
    let in_memory = digests(&builder().in_memory().expect("a world in memory"));
    let disk = Disk::new();
    let on_disk = digests(&builder().create(disk.path()).expect("is created"));
    assert_eq!(in_memory, on_disk, "the engines hold different rows");
    expected.assert_eq(&in_memory);
}

#[test]
fn every_way_to_write_stores_the_same_rows_with_an_opacity_map() {
    assert_digests(Keep::On, &expect_file!["row_digests/with_map.txt"]);
}

#[test]
fn every_way_to_write_stores_the_same_rows_without_an_opacity_map() {
    assert_digests(Keep::Off, &expect_file!["row_digests/without_map.txt"]);
}
