//! What a commit costs that checks values by their types, beside one that does not, in the same run.
//!
//! The worlds are in memory, so no disk hides the difference. Each commit saves chunks whose values all differ from the stored
//! ones and are all allowed.
//!
//! | group | what is allowed |
//! |---|---|
//! | values: save a chunk with 40 machines | 1.4 × a commit that does not check |
//! | values: save a chunk of 4,096 machines | 4 × the same: no real chunk has so many |
//! | values: put 64 entities | 1.2 × the same |
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::sync::Arc;

use cg_format::Dimension;
use cg_registry::PackManifest;
use cg_store::prelude::*;
use cg_store::verify::ValueCheck;
use criterion::{Criterion, criterion_group, criterion_main};

/// Machines with two numbers, an enum, a boolean and three slots; animals with health and a name.
const PACK: &str = r#"{ "pack": "mill", "version": "1", "namespaces": ["", "mill"],
    "components": [
        { "name": "mill:machine", "size": 14, "fields": [
            { "name": "stored", "width_bytes": 4, "type": { "unsigned": { "max": 1000000 } } },
            { "name": "heat", "width_bytes": 2, "type": { "signed": { "min": -100, "max": 5000 } } },
            { "name": "facing", "width_bytes": 1, "type": { "enum": ["north", "east", "south", "west"] } },
            { "name": "lit", "width_bytes": 1, "type": "bool" },
            { "name": "slots", "width_bytes": 6, "count": 3, "type": { "unsigned": { "max": 64 } } }] },
        { "name": "mill:health", "size": 4, "fields": [
            { "name": "health", "width_bytes": 4, "type": "float" }] },
        { "name": "mill:name", "size": "variable", "content": { "text": { "max_bytes": 64 } } }],
    "blocks": [{ "name": ":air", "opaque": false },
        { "name": "mill:rock", "states": { "kind": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] } },
        { "name": "mill:machine", "components": ["mill:machine"] }],
    "entities": ["mill:cow"], "dimensions": ["mill:home"] }"#;

/// The modes, and the name of each in the table.
const MODES: [(ValueCheck, &str); 3] =
    [(ValueCheck::Off, "ref: not checked"), (ValueCheck::Report, "report"), (ValueCheck::Refuse, "refuse")];

fn world(value_check: ValueCheck) -> World {
    let pack = PackManifest::from_json(PACK).expect("a manifest");
    let options = WorldOptions { value_check, ..WorldOptions::process() };
    World::builder().packs(&[pack]).options(&options).in_memory().expect("a world in memory")
}

fn at() -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0))
}

/// A chunk of eleven kinds of rock in which every nth block is a machine, and all machines differ.
fn chunk(world: &World, every: usize, version: u32) -> Arc<Chunk> {
    let catalog = world.catalog();
    let machine = catalog.block_id("mill:machine").expect("is registered");
    let rock = catalog.block_id("mill:rock[kind=a]").expect("is registered").get();
    let component = catalog.component_id("mill:machine").expect("is registered");
    let schema = catalog.current_schema();
    let mut chunk = Chunk::filled(BlockId::new(rock), &schema).expect("is registered");
    for (number, cell) in LocalPos::all().enumerate() {
        let kind = number as u64 / 7 % 11;
        let block = if number % every == 0 { machine } else { BlockId::new(rock + kind) };
        chunk.set_block(cell, block, &schema).expect("is registered");
        if block == machine {
            let mut bytes = [0; 14];
            bytes[..4].copy_from_slice(&(number as u32 * 200 + version).to_le_bytes());
            bytes[6] = (number % 4) as u8;
            bytes[7] = (number % 2) as u8;
            bytes[8] = (number % 65) as u8;
            chunk.set_component(CellLayer::base(cell), component, &bytes).expect("has it");
        }
    }
    Arc::new(chunk)
}

fn save(world: &World, chunk: Arc<Chunk>) {
    let saved = world.transaction(|tx| {
        tx.save(at(), chunk);
        Ok::<_, Error>(())
    });
    saved.expect("is allowed");
}

fn chunks(criterion: &mut Criterion) {
    let groups = [
        ("values: save a chunk with 40 machines", 103, " <= 1.4"),
        ("values: save a chunk of 4,096 machines", 1, " <= 4"),
    ];
    for (name, every, aim) in groups {
        let mut group = criterion.benchmark_group(name);
        for (mode, id) in MODES {
            let world = world(mode);
            let versions = [0, 1].map(|version| chunk(&world, every, version));
            let mut versions = versions.iter().cycle();
            let id = if mode == ValueCheck::Off { format!("{id}{aim}") } else { id.into() };
            group.bench_function(id, |bench| {
                bench.iter(|| {
                    let chunk = Arc::clone(versions.next().expect("endless"));
                    save(&world, chunk);
                });
            });
            assert_eq!(world.metrics().illegal_values, 0);
        }
        group.finish();
    }
}

fn entities(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("values: put 64 entities");
    for (mode, id) in MODES {
        let world = world(mode);
        let catalog = world.catalog();
        let [health, name] =
            ["mill:health", "mill:name"].map(|it| catalog.component_id(it).expect("is registered"));
        let kind = catalog.entity_type("mill:cow").expect("is registered");
        save(&world, chunk(&world, 103, 0));
        let mut moved = 0_u32;
        let id = if mode == ValueCheck::Off { format!("{id} <= 1.2") } else { id.into() };
        group.bench_function(id, |bench| {
            bench.iter(|| {
                moved += 1;
                let saved = world.transaction(|tx| {
                    for number in 0..64 {
                        let position = EntityPos::new(at().dimension, BlockPos::new(8, 0, 8), [0.5; 3])?;
                        let mut cow = Entity::new(kind, Owner::Chunk(at()), position);
                        let points = (moved % 20) as f32 + 1.0;
                        cow.set_component(health, points.to_le_bytes().to_vec()).expect("short");
                        cow.set_component(name, b"a cow with a name of its own".to_vec()).expect("short");
                        tx.put_entity(EntityId::new(uuid::Uuid::from_u128(number)), cow);
                    }
                    Ok::<_, Error>(())
                });
                saved.expect("is allowed")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, chunks, entities);
criterion_main!(benches);
