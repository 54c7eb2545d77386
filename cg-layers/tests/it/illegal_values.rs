//! Values that the types of their components do not allow, in overlays and in segments.

use cg_layers::{Overlay, SegmentOptions, SegmentedWorld};
use cg_store::prelude::*;
use cg_store::verify::ValueCheck;
use expect_test::expect;

use crate::fixture::{Disk, options, save, uuid};

fn pack() -> PackManifest {
    let json = r#"{ "pack": "mill", "version": "1", "namespaces": ["", "mill"],
        "components": [{ "name": "mill:level", "size": 1, "fields": [
            { "name": "level", "width_bytes": 1, "type": { "unsigned": { "max": 5 } } }] }],
        "blocks": [{ "name": ":air", "opaque": false }, { "name": "mill:machine", "components": ["mill:level"] }],
        "entities": ["mill:cow"], "dimensions": ["mill:home"] }"#;
    PackManifest::from_json(json).expect("a manifest")
}

fn checked() -> WorldOptions {
    WorldOptions { value_check: ValueCheck::Refuse, ..options() }
}

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(cg_format::Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

fn machines(catalog: &cg_registry::Catalog) -> Chunk {
    let machine = catalog.block_id("mill:machine").expect("is registered");
    Chunk::filled(machine, &catalog.current_schema()).expect("is registered")
}

const PLACE: CellLayer = CellLayer::base(LocalPos::new(1, 2, 3));

#[test]
fn an_overlay_refuses_an_illegal_value() {
    let base = World::builder().packs(&[pack()]).options(&options()).in_memory().expect("a world");
    save(&base, [(at(0), machines(&base.catalog()))]);
    let overlay = Overlay::in_memory(base.clone(), &checked()).expect("a base like any other");
    let level = base.catalog().component_id("mill:level").expect("is registered");
    let error =
        overlay.transaction(|tx| tx.set_component(at(0), PLACE, level, &[6])).expect_err("is refused");
    expect!["cell 1, 2, 3 (layer 0) of chunk 0, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 6, allowed: 0 to 5"].assert_eq(&error.to_string());
    overlay.transaction(|tx| tx.set_component(at(0), PLACE, level, &[5])).expect("is allowed");
}

#[test]
fn a_segment_refuses_an_illegal_value() {
    let segments = SegmentOptions { side_chunks: 16, max_open: 2, world: checked() };
    let world = SegmentedWorld::in_memory(&[pack()], &segments).expect("a world");
    let catalog = world.root().catalog();
    let level = catalog.component_id("mill:level").expect("is registered");
    for x in [0, 16] {
        let saved = world.transaction(at(x), |tx| {
            tx.save(at(x), machines(&catalog));
            Ok::<_, Error>(())
        });
        saved.expect("is allowed");
        let error = world
            .transaction(at(x), |tx| tx.set_component(at(x), PLACE, level, &[6]))
            .expect_err("is refused");
        let expected = format!(
            "cell 1, 2, 3 (layer 0) of chunk {x}, 0, 0 of dimension 0: component `mill:level` of pack `mill`: `level` is 6, allowed: 0 to 5"
        );
        assert_eq!(error.to_string(), expected);
    }
    let position = EntityPos::new(at(0).dimension, BlockPos::new(8, 0, 8), [0.5; 3]).expect("a position");
    let mut cow =
        Entity::new(catalog.entity_type("mill:cow").expect("is registered"), Owner::Chunk(at(0)), position);
    let put = world.transaction(at(0), |tx| {
        tx.put_entity(uuid(1), cow.clone());
        Ok::<_, Error>(())
    });
    put.expect("is allowed");
    cow.owner = Owner::Chunk(at(16));
    cow.set_component(level, vec![6]).expect("short");
    let error = world.transfer_entities([(uuid(1), cow)]).expect_err("is refused");
    expect!["entity 00000000-0000-0000-0000-000000000001: component `mill:level` of pack `mill`: `level` is 6, allowed: 0 to 5"].assert_eq(&error.to_string());
}

/// A pack whose levels are at most this, and whose doors have declared states.
fn doors(max: u8) -> PackManifest {
    let json = format!(
        r#"{{ "pack": "mill", "version": "{max}", "namespaces": ["", "mill"],
        "components": [{{ "name": "mill:level", "size": 1, "fields": [
            {{ "name": "level", "width_bytes": 1, "type": {{ "unsigned": {{ "max": {max} }} }} }}] }}],
        "blocks": [{{ "name": ":air", "opaque": false }}, {{ "name": "mill:machine", "components": ["mill:level"] }},
            {{ "name": "mill:door", "states": {{ "open": ["false", "true"] }} }}],
        "dimensions": ["mill:home"] }}"#
    );
    PackManifest::from_json(&json).expect("a manifest")
}

#[test]
fn an_overlay_with_names_of_its_own_follows_the_packs_of_its_base() {
    let disk = Disk::new();
    let (world, arena) = (disk.root().join("world"), disk.root().join("arena"));
    let base = World::builder().packs(&[doors(5)]).options(&options()).create(&world).expect("a world");
    save(&base, [(at(0), machines(&base.catalog()))]);
    let overlay = Overlay::create(&arena, base.clone(), &checked()).expect("an empty directory");
    let own = Name::new("mill:lamp").expect("a name");
    let lamp = |overlay: &Overlay<World>, name| {
        let blocks = vec![cg_registry::BlockOffer::new(name)];
        overlay.register(&cg_registry::Registration { blocks, ..cg_registry::Registration::default() })
    };
    lamp(&overlay, own.clone()).expect("is registered");
    drop((overlay, base));
    for (max, level) in [(3, 4), (9, 10)] {
        let base = World::builder().packs(&[doors(max)]).options(&options()).open(&world).expect("a world");
        let overlay = Overlay::open(&arena, base.clone(), &checked()).expect("opens");
        assert!(overlay.catalog().expect("fits").block_id(own.as_str()).is_some());
        let component = base.catalog().component_id("mill:level").expect("is registered");
        let set = |level| overlay.transaction(|tx| tx.set_component(at(0), PLACE, component, &[level]));
        let error = set(level).expect_err("is refused").to_string();
        assert!(error.ends_with(&format!("`level` is {level}, allowed: 0 to {max}")), "{error}");
        set(max).expect("is allowed");
        let ajar = Name::new("mill:door[open=ajar]").expect("a name");
        let error = lamp(&overlay, ajar).expect_err("no pack declares it").to_string();
        assert!(error.contains("declared are open=false|true"), "{error}");
        lamp(&overlay, own.clone()).expect("is known");
    }
    // A merge registers the own names, and they end as the base's.
    let base = World::builder().packs(&[doors(2)]).options(&options()).open(&world).expect("a world");
    let overlay = Overlay::open(&arena, base.clone(), &options()).expect("opens");
    overlay.merge_into(&base).expect("merges");
    assert!(base.catalog().block_id(own.as_str()).is_some());
}
