//! Values that the types of their components do not allow: at commit, and those that are stored.

use super::*;
use cg_format::{ClusterTier, ComponentId, Space, key};
use cg_store::WriteBatch;
use cg_store::verify::{IllegalValue, ValueCheck, ValuePlace};
use expect_test::{Expect, expect};

/// A pack whose machines have a level of at most this, and whose crates hold stacks of at most 64.
fn pack(max: u8) -> PackManifest {
    let json = format!(
        r#"{{ "pack": "mill", "version": "{max}", "namespaces": ["", "mill"],
              "components": [
                {{ "name": "mill:level", "size": 2, "fields": [
                    {{ "name": "level", "width_bytes": 1, "type": {{ "unsigned": {{ "max": {max} }} }} }},
                    {{ "name": "facing", "width_bytes": 1, "type": {{ "enum": ["north", "east"] }} }}] }},
                {{ "name": "mill:stacks", "size": "variable", "content": {{ "list": {{ "max_items": 3, "fields": [
                    {{ "name": "count", "width_bytes": 1, "type": {{ "unsigned": {{ "min": 1, "max": 64 }} }} }}] }} }} }}],
              "blocks": [
                {{ "name": ":air", "opaque": false }},
                {{ "name": "mill:machine", "components": ["mill:level"] }},
                {{ "name": "mill:crate", "components": ["mill:stacks"] }}],
              "entities": ["mill:cow"], "dimensions": ["mill:home"] }}"#
    );
    PackManifest::from_json(&json).expect("a manifest")
}

fn checked(value_check: ValueCheck) -> WorldOptions {
    WorldOptions { value_check, ..options() }
}

fn world(value_check: ValueCheck) -> World {
    World::builder().packs(&[pack(5)]).options(&checked(value_check)).in_memory().expect("is created")
}

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(cg_format::Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

fn component(world: &World, name: &str) -> ComponentId {
    world.catalog().component_id(name).expect("is registered")
}

/// A chunk of one kind of block, with the bytes of one component in all of them.
fn of(world: &World, block: &str, name: &str, bytes: &[u8]) -> Chunk {
    let block = world.catalog().block_id(block).expect("is registered");
    let mut chunk = filled(world, block);
    for cell in LocalPos::all() {
        chunk.set_component(CellLayer::new(cell, 0), component(world, name), bytes).expect("has it");
    }
    chunk
}

fn cow(world: &World, name: &str, bytes: &[u8]) -> Entity {
    let catalog = world.catalog();
    let position = EntityPos::new(at(0).dimension, BlockPos::new(8, 0, 8), [0.5, 0.0, 0.5]);
    let kind = catalog.entity_type("mill:cow").expect("is registered");
    let mut cow = Entity::new(kind, Owner::Chunk(at(0)), position.expect("a position"));
    cow.set_component(component(world, name), bytes.to_vec()).expect("short");
    cow
}

#[track_caller]
fn put(world: &World, cow: Entity) {
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), cow);
        Ok::<_, Error>(())
    });
    put.expect("is allowed");
}

#[track_caller]
fn refused(world: &World, expected: Expect, body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>) {
    let before = rows(world);
    let error = world.transaction(body).expect_err("is refused");
    assert!(before == rows(world), "a refused transaction wrote something");
    expected.assert_eq(&error.to_string());
    assert!(matches!(error, Error::IllegalValue(_)));
}

#[test]
fn an_illegal_value_is_refused_with_its_place() {
    let world = world(ValueCheck::Refuse);
    save(&world, [(at(0), of(&world, "mill:machine", "mill:level", &[5, 1]))]);
    let place = CellLayer::new(LocalPos::new(3, 4, 5), 0);
    let level = component(&world, "mill:level");
    let expected = expect![
        "cell 3, 4, 5 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 6, allowed: 0 to 5"
    ];
    refused(&world, expected, |tx| tx.set_component(at(0), place, level, &[6, 0]));
    let expected = expect![
        "cell 3, 4, 5 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `facing` is 2, allowed: 0 `north`, 1 `east`"
    ];
    refused(&world, expected, |tx| tx.set_component(at(0), place, level, &[0, 2]));
    let expected = expect![
        "cell 0, 0, 0 (layer 0) of chunk 1, 0, 0 of dimension 0: component `mill:stacks` of pack `mill`: `[1].count` is 65, allowed: 1 to 64"
    ];
    let stacks = of(&world, "mill:crate", "mill:stacks", &[64, 65]);
    refused(&world, expected, |tx| {
        tx.save(at(1), stacks);
        Ok(())
    });
    let expected = expect![
        "entity 00000000-0000-0000-0000-000000000001: component `mill:stacks` of pack `mill` is 4 items, allowed: at most 3 items"
    ];
    let full = cow(&world, "mill:stacks", &[1; 4]);
    refused(&world, expected, |tx| {
        tx.put_entity(uuid(1), full);
        Ok(())
    });
    let most = cow(&world, "mill:stacks", &[1; 3]);
    put(&world, most);
    assert_eq!((world.metrics().illegal_values, world.registry().illegal_values()), (0, vec![]));
    assert!(world.registry().check(|_| {}).expect("checks").is_ok());
}

#[test]
fn a_submitted_batch_is_refused_for_an_illegal_value() {
    let world = world(ValueCheck::Refuse);
    let mut batch = WriteBatch::new();
    batch.save(at(0), of(&world, "mill:machine", "mill:level", &[6, 0]));
    let error = world.submit(batch).expect("is taken").wait().expect_err("is refused");
    expect![
        "cell 0, 0, 0 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 6, allowed: 0 to 5"
    ]
    .assert_eq(&error.to_string());
    assert!(world.load(at(0)).expect("loads").is_none());
}

#[test]
fn a_report_counts_all_and_keeps_the_first() {
    let world = world(ValueCheck::Report);
    save(&world, [(at(0), of(&world, "mill:machine", "mill:level", &[6, 0]))]);
    assert_eq!(world.metrics().illegal_values, 4096);
    let first = world.registry().illegal_values();
    assert_eq!(first.len(), 100);
    let IllegalValue { place, name, pack, breach } = &first[1];
    assert_eq!(*place, ValuePlace::Block { at: at(0), cell: CellLayer::new(LocalPos::new(0, 0, 1), 0) });
    assert_eq!((name.as_str(), pack.as_str()), ("mill:level", "mill"));
    assert_eq!(breach.to_string(), "`level` is 6, allowed: 0 to 5");
    assert!(world.load(at(0)).expect("loads").is_some());
}

#[test]
fn a_world_that_does_not_check_takes_everything() {
    let world = world(ValueCheck::Off);
    save(&world, [(at(0), of(&world, "mill:machine", "mill:level", &[6, 0]))]);
    assert_eq!((world.metrics().illegal_values, world.registry().illegal_values()), (0, vec![]));
    assert_eq!(world.registry().check(|_| {}).expect("checks").illegal, 4096);
}

#[test]
fn ten_thousand_stored_violations_are_counted_in_every_tier() {
    let disk = Disk::new();
    let world = disk.create(&[pack(9)]);
    let machine = |bytes: &[u8]| of(&world, "mill:machine", "mill:level", bytes);
    let chunks = [(at(0), machine(&[9, 0])), (at(4), machine(&[9, 1])), (at(16), machine(&[6, 0]))];
    save(&world, chunks.into_iter().chain([(at(32), machine(&[5, 0]))]));
    let cow = cow(&world, "mill:level", &[7, 0]);
    put(&world, cow);
    demote(&world, ClusterTier::L1, &[at(4)], false);
    demote(&world, ClusterTier::L2, &[at(16)], false);
    assert!(world.registry().check(|_| {}).expect("checks").is_ok());
    drop(world);
    // The next version of the pack allows less. The world opens, and the plan says it.
    let world = disk.open(&[pack(5)]);
    let report = world.registry().check(|_| {}).expect("checks");
    let counts: Vec<_> = report.checked.iter().map(|(what, count)| (*what, *count)).collect();
    assert_eq!(counts, [("chunks", 4), ("entities", 1)]);
    assert_eq!((report.illegal, report.first.len()), (3 * 4096 + 1, 100));
    assert_eq!((report.damaged, report.first_damaged), (0, vec![]));
    expect![
        "cell 0, 0, 0 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 9, allowed: 0 to 5"
    ]
    .assert_eq(&report.first[0].to_string());
}

#[test]
fn damaged_rows_are_counted_and_named_by_the_check() {
    let world = world(ValueCheck::Off);
    save(&world, [(at(0), of(&world, "mill:machine", "mill:level", &[6, 0]))]);
    let bad = |space, key: &[u8]| (space, key.to_vec(), Some(plain(b"no chunk, no entity")));
    plant(&world, [bad(Space::ChunkL0, &key::chunk(at(9))), bad(Space::Entity, &key::entity(uuid(7)))]);
    let report = world.registry().check(|_| {}).expect("checks");
    assert_eq!((report.illegal, report.damaged), (4096, 2));
    let [chunk, entity] = &report.first_damaged[..] else { panic!("{:?}", report.first_damaged) };
    expect!["chunk 9, 0, 0 of dimension 0 is damaged (ChunkL0 row 0000000000000000e00000000000000000000000000000000000000000000804): chunk header: format version is 7741253900696579950, and this release reads up to 1; use a newer release (at byte 0); run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`"].assert_eq(chunk);
    expect!["entity 00000000-0000-0000-0000-000000000007 is damaged (Entity row 00000000000000000000000000000007): entity: format version is 7741253900696579950, and this release reads up to 1; use a newer release (at byte 0); run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`"].assert_eq(entity);
}
