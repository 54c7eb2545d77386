//! The content hash: the same for the same content, however it came about, and another one after any change.

use super::*;
use cg_format::{BlockArea, ClusterTier};
use cg_store::verify::ContentHash;

over_both_engines! {
    it_does_not_depend_on_order_tier_or_history
    every_kind_of_change_changes_it
    a_part_is_hashed_by_its_own_content
    an_area_of_several_boxes_counts_each_chunk_once
}

/// The content of the tests, written in one of two orders.
fn build(world: &World, ids: &Ids, reversed: bool) {
    let schema = world.catalog().current_schema();
    let mut chunks: Vec<_> = (0..12_i64)
        .map(|n| {
            let mut chunk = marked(world, ids, n as u16 * 300);
            let cell = LocalPos::new(n as u8, 3, 3);
            chunk.set_block(cell, ids.machine, &schema).expect("is registered");
            chunk.set_component(cell.into(), ids.power, &[n as u8, 0, 0, 1]).expect("has it");
            chunk.set_component(cell.into(), ids.items, b"coal").expect("has it");
            chunk.push_layer(LocalPos::new(1, 1, n as u8), ids.glass, &schema).expect("fits");
            chunk.set_side(ids.light, vec![n as u8; 5]);
            (ids.at(n * 3 - 20, n, -n), chunk)
        })
        .collect();
    if reversed {
        chunks.reverse();
        for (at, chunk) in chunks.iter().cloned() {
            save(world, [(at, filled(world, ids.stone))]);
            save(world, [(at, chunk)]);
        }
    } else {
        save(world, chunks.iter().cloned());
    }
    let mut cow = ids.cow_in(chunks[0].0);
    let home = if reversed { chunks[11].0 } else { chunks[0].0 };
    cow.owner = Owner::Chunk(home);
    cow.position = ids.cow_in(home).position;
    cow.set_component(ids.items, b"bell".to_vec()).expect("short");
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), cow);
        tx.set_property(Property::Seed, Some(vec![7; 8]));
        tx.set_property(Property::Named(name("game:rule")), Some(b"on".to_vec()));
        Ok::<_, Error>(())
    });
    put.expect("puts");
}

#[track_caller]
fn hash(world: &World) -> ContentHash {
    world.content_hash(cg_store::view::Area::World).expect("hashes")
}

fn it_does_not_depend_on_order_tier_or_history(world: &World) {
    let ids = Ids::register(world);
    build(world, &ids, false);
    let expected = hash(world);

    // Another world, whose names were registered the other way round and beside others.
    let twin = in_memory();
    let mut backwards = registration();
    backwards.components.insert(0, ComponentOffer::fixed(name("other:unused"), 9));
    backwards.components.reverse();
    backwards.blocks.reverse();
    backwards.dimensions.reverse();
    backwards.entities.insert(0, name("other:pig"));
    backwards.sides.insert(0, name("other:biomes"));
    twin.registry().register(&backwards).expect("registers");
    let other = Ids::of(&twin);
    assert!(other.stone != ids.stone && other.cow != ids.cow && other.overworld != ids.overworld);
    assert!(other.power != ids.power && other.light != ids.light);
    build(&twin, &other, true);
    assert_eq!(hash(&twin), expected);

    let all: Vec<_> = (0..12_i64).map(|n| other.at(n * 3 - 20, n, -n)).collect();
    demote(&twin, ClusterTier::L1, &all[..5], true);
    demote(&twin, ClusterTier::L2, &all[7..], false);
    assert_eq!(hash(&twin), expected);
    twin.opacity().fold(usize::MAX).expect("folds");
    twin.registry().register_blocks(["other:late"]).expect("registers");
    save(&twin, [(other.at(100, 0, 0), filled(&twin, other.stone))]);
    assert_ne!(hash(&twin), expected);
    let deleted = twin.transaction(|tx| {
        tx.delete(other.at(100, 0, 0));
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    assert_eq!(hash(&twin), expected, "what is deleted leaves no trace");
}

/// A change and its name.
type Change<'c> = (&'static str, &'c dyn Fn(&mut Transaction<'_>) -> Result<(), Error>);

fn every_kind_of_change_changes_it(world: &World) {
    let ids = Ids::register(world);
    build(world, &ids, false);
    let (at, other) = (ids.at(-20, 0, 0), ids.at(-17, 1, -1));
    let machine: CellLayer = LocalPos::new(0, 3, 3).into();
    let changes: &[Change<'_>] = &[
        ("a block", &|tx| {
            tx.set_block(ids.overworld, at.pos.block(LocalPos::new(9, 9, 9)), ids.stone).map(drop)
        }),
        ("a component", &|tx| tx.set_component(at, machine, ids.power, &[0, 0, 0, 9])),
        ("a component of variable size", &|tx| tx.set_component(at, machine, ids.items, b"coalcoal")),
        ("a layer", &|tx| {
            let schema = world.catalog().current_schema();
            tx.edit(at, |chunk| chunk.push_layer(LocalPos::new(2, 2, 2), ids.glass, &schema))?.map(drop)?;
            Ok(())
        }),
        ("side data", &|tx| tx.set_side(at, ids.light, Some(vec![1, 2]))),
        ("no side data", &|tx| tx.set_side(at, ids.light, None)),
        ("a reference", &|tx| tx.move_entity(uuid(1), Owner::Chunk(other)).map(drop)),
        ("an entity's component", &|tx| {
            let mut cow = tx.entity(uuid(1))?.expect("is there");
            cow.set_component(ids.items, b"drum".to_vec()).expect("short");
            tx.put_entity(uuid(1), cow);
            Ok(())
        }),
        ("an entity's position", &|tx| {
            let mut cow = tx.entity(uuid(1))?.expect("is there");
            cow.position =
                EntityPos::new(ids.overworld, cow.position.block(), [0.25, 0.0, 0.5]).expect("a position");
            tx.put_entity(uuid(1), cow);
            Ok(())
        }),
        ("a new entity", &|tx| {
            tx.put_entity(uuid(2), ids.cow_in(at));
            Ok(())
        }),
        ("an entity that is gone", &|tx| {
            tx.delete_entity(uuid(2));
            Ok(())
        }),
        ("a property", &|tx| {
            tx.set_property(Property::Seed, Some(vec![8; 8]));
            Ok(())
        }),
        ("a property of a mod", &|tx| {
            tx.set_property(Property::Named(name("game:rule")), Some(b"off".to_vec()));
            Ok(())
        }),
        ("no property", &|tx| {
            tx.set_property(Property::Seed, None);
            Ok(())
        }),
        ("a new chunk", &|tx| {
            tx.save(ids.at(77, 0, 0), filled(world, ids.air));
            Ok(())
        }),
        ("the same chunk elsewhere", &|tx| {
            tx.delete(ids.at(77, 0, 0));
            tx.save(ids.at(77, 0, 1), filled(world, ids.air));
            Ok(())
        }),
        ("the same chunk in another dimension", &|tx| {
            tx.delete(ids.at(77, 0, 1));
            tx.save(ChunkAt::new(ids.nether, ChunkPos::constant(77, 0, 1)), filled(world, ids.air));
            Ok(())
        }),
    ];
    let mut seen = vec![hash(world)];
    for (what, change) in changes {
        world.transaction(change).expect("commits");
        let now = hash(world);
        let same = seen.iter().position(|before| *before == now);
        // The second cow came and went: that state was there before.
        let expected = (*what == "an entity that is gone").then(|| seen.len() - 2);
        assert_eq!(same, expected, "{what}");
        seen.push(now);
    }
    assert_sound(world);
}

fn an_area_of_several_boxes_counts_each_chunk_once(world: &World) {
    let ids = Ids::register(world);
    build(world, &ids, false);
    let cow = ids.at(-20, 0, 0).pos.min_block();
    let put = world.transaction(|tx| {
        let position = EntityPos::new(ids.overworld, cow, [0.0; 3])?;
        let record = cg_format::record::Record::new(position, "sign", 0, b"here".to_vec())?;
        tx.put_record(cg_format::RecordId::from_bytes([9; 16]), record);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    put.expect("puts");
    let hash = |area: &BlockArea| {
        world.content_hash(cg_store::view::Area::Blocks(ids.overworld, area)).expect("hashes")
    };
    let slab =
        |min: i64, max: i64| BlockBox::new(BlockPos::new(min, -400, -400), BlockPos::new(max, 400, 400));
    let whole = hash(&slab(-400, 400).into());
    let area = ChunkBox::new(ChunkPos::constant(-25, -25, -25), ChunkPos::constant(25, 25, 25));
    let of_chunks = world.content_hash(cg_store::view::Area::Box(ids.overworld, area)).expect("hashes");
    assert_eq!(whole, of_chunks);
    // Parts that meet inside a chunk, that overlap, and that stand in another order.
    let parts = [slab(-400, -266), slab(-265, 7), slab(-2, 400), slab(-2, -2)];
    assert_eq!(hash(&BlockArea::union(parts)), whole);
    assert_eq!(hash(&BlockArea::union(parts.into_iter().rev().chain(parts))), whole);
    assert_ne!(hash(&BlockArea::union(parts.into_iter().skip(1))), whole, "a part is not the whole");
    let nothing = hash(&BlockArea::union([]));
    assert_eq!(nothing, hash(&slab(40_000, 40_001).into()), "no box is not everywhere");
    assert_ne!(nothing, whole);
    assert_eq!(hash(&BlockArea::everywhere()), whole);
}

fn a_part_is_hashed_by_its_own_content(world: &World) {
    let ids = Ids::register(world);
    build(world, &ids, false);
    let part = |min: i64, max: i64| {
        let area = ChunkBox::new(ChunkPos::constant(min, -20, -20), ChunkPos::constant(max, 20, 20));
        world.content_hash(cg_store::view::Area::Box(ids.overworld, area)).expect("hashes")
    };
    let (inside, all, nothing) = (part(-20, 0), part(-100, 100), part(50, 60));
    assert!(inside != all && inside != nothing);
    save(world, [(ids.at(5, 0, 0), filled(world, ids.stone))]);
    assert_eq!((part(-20, 0), part(50, 60)), (inside, nothing));
    assert_ne!(part(-100, 100), all);
    assert_eq!(part(-100, 100), part(-20, 13));

    // The entities of its chunks belong to it, others do not.
    let (home, far) = (ids.at(-20, 0, 0), ids.at(13, 11, -11));
    let cow = world.entity(uuid(1)).expect("reads").expect("is there");
    assert_eq!(cow.owner, Owner::Chunk(home));
    let put = |id, entity: &Entity| {
        let put = world.transaction(|tx| {
            tx.put_entity(id, entity.clone());
            Ok::<_, Error>(())
        });
        put.expect("puts");
    };
    let before = part(-20, 0);
    let mut other = cow.clone();
    other.set_component(ids.items, b"drum".to_vec()).expect("short");
    put(uuid(1), &other);
    let drummer = part(-20, 0);
    assert_ne!(drummer, before, "what an entity holds");
    assert_eq!(
        part(-19, 13),
        {
            put(uuid(1), &cow);
            part(-19, 13)
        },
        "of another box"
    );
    assert_eq!(part(-20, 0), before);
    put(uuid(2), &ids.cow_in(far));
    put(
        uuid(3),
        &cow.clone().owned_by(Owner::Detached(cg_format::entity::Reason::new("cargo").expect("short"))),
    );
    assert_eq!(part(-20, 0), before, "neither of another chunk nor of none");
    // Wherever it stands: it goes with its owner.
    put(uuid(1), &cow.clone().owned_by(Owner::Chunk(far)));
    let without = part(-20, 0);
    assert!(without != before && without != drummer);
    assert_sound(world);
}

#[test]
fn it_survives_reopening() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    build(&world, &Ids::register(&world), false);
    let expected = hash(&world);
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(hash(&world), expected);
    drop(world);
    assert_eq!(
        hash(&World::builder().options(&options()).open_read_only(disk.path()).expect("opens")),
        expected
    );
}
