//! Lists of writes: all or none, and what they expect.

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{ChunkAt, EntityId};
use cg_host::{BlockEntity, Error, HostOptions, Saved, Writes};
use cg_store::objects::ObjectKey;
use cg_store::prelude::Property;
use cg_store::{Durability, ErrorKind, StoreLimits, World, WorldOptions};

use crate::maker::{CHEST, STONE, at, known, made, name, over, uniform};

#[test]
fn everything_of_a_list_is_one_commit() {
    let made = made();
    let before = made.host.world().last_commit().get();
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let stone = made.binding.block(STONE).expect("registered");
    let schema = made.host.world().catalog().current_schema();
    let key = ObjectKey::new(b"k").expect("a key");
    let mut writes = Writes::new();
    writes.column(&made.binding, uniform(at(made.at.dimension, 9, 9), &[STONE]), false).expect("it fits");
    writes.chunk(place, Chunk::filled(stone, &schema).expect("known"));
    writes.set_block(made.at.dimension, made.block(1, 1, 1), made.binding.block(CHEST).expect("registered"));
    writes.property(Property::Named(name("game:x")), Some(vec![1]));
    writes.object(key.clone(), Some(vec![2].into()));
    assert!(matches!(made.host.commit(&mut writes, Some(Durability::Process)), Ok(Saved::Changed(_))));
    assert!(writes.is_empty());
    let world = made.host.world();
    assert_eq!(world.last_commit().get(), before + 1);
    assert_eq!(world.load(place).expect("sound").expect("stored").kinds().len(), 2);
    assert_eq!(&*world.objects().get(&key).expect("sound").expect("stored").bytes, &[2][..]);
    assert!(made.host.load(&made.binding, at(made.at.dimension, 9, 9)).expect("sound").is_some());
    assert_eq!(made.host.commit(&mut writes, None).expect("nothing"), Saved::Unchanged);
}

#[test]
fn a_version_that_differs_is_a_conflict_and_keeps_the_list() {
    let made = made();
    made.save(&uniform(made.at, &[STONE]));
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let (_, version) = made.host.world().load_versioned(place).expect("sound").expect("stored");
    let chest = made.binding.block(CHEST).expect("registered");
    let mut writes = Writes::new();
    writes.expect_chunk(place, version.get() + 1);
    writes.set_block(made.at.dimension, made.block(0, 0, 0), chest);
    let error = made.host.commit(&mut writes, None).expect_err("another version");
    assert!(matches!(error, Error::Expected { found, expected, .. } if expected == found + 1));
    assert_eq!((error.kind(), error.place()), (ErrorKind::Conflict, Some(place)));
    assert!(!writes.is_empty());
    let mut writes = Writes::new();
    writes.expect_chunk(place, version.get());
    writes.expect_entity(EntityId::from_bytes([1; 16]), 0);
    writes.set_block(made.at.dimension, made.block(0, 0, 0), chest);
    made.host.commit(&mut writes, None).expect("as expected");
    let error = made.host.submit_writes(&mut {
        let mut writes = Writes::new();
        writes.expect_chunk(place, 1);
        writes
    });
    assert_eq!(error.expect_err("it cannot wait").kind(), ErrorKind::Invalid);
}

#[test]
fn one_chunk_over_the_limit_among_a_hundred_columns_stops_them_all() {
    let limits = StoreLimits { chunk_bytes: 10_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("memory");
    let made = over(world, HostOptions::default(), known(0));
    let mut writes = Writes::new();
    for x in 0..100 {
        let mut column = uniform(at(made.at.dimension, x, 0), &[CHEST]);
        if x == 49 {
            let corner = cg_format::BlockPos::new(49 * 16, -64, 0);
            column.block_entities.push(BlockEntity { at: corner, nbt: vec![0; 9990] });
        }
        writes.column(&made.binding, column, false).expect("it fits");
    }
    let error = made.host.commit(&mut writes, None).expect_err("one is too large");
    let place = error.place().expect("it names the chunk");
    assert_eq!((error.kind(), place.pos.x(), place.pos.y()), (ErrorKind::TooLarge, 49, -4));
    assert!(error.to_string().contains("chunk 49, -4, 0"), "{error}");
    for x in 0..100 {
        assert_eq!(made.host.load(&made.binding, at(made.at.dimension, x, 0)).expect("sound"), None);
    }
}

#[test]
fn a_raw_write_is_not_hidden_by_what_the_host_has_seen() {
    let made = made();
    let column = uniform(made.at, &[STONE]);
    made.save(&column);
    let mut writes = Writes::new();
    let chest = made.binding.block(CHEST).expect("registered");
    writes.set_block(made.at.dimension, made.block(0, 0, 0), chest);
    made.host.commit(&mut writes, None).expect("stored");
    // The column as it was is not what is stored: it wins.
    assert!(matches!(made.save(&column), Saved::Changed(_)));
    assert_eq!(made.load(), Some(column));
}

#[test]
fn chunks_cannot_be_submitted_and_entities_without_one_can() {
    let made = made();
    let mut writes = Writes::new();
    writes.delete_chunk(ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk()));
    assert_eq!(made.host.submit_writes(&mut writes).expect_err("a chunk").kind(), ErrorKind::Invalid);
    let mut writes = Writes::new();
    let position = EntityPos::new(made.at.dimension, made.block(0, 0, 0), [0.0; 3]).expect("fractions");
    let offline = Owner::Detached(Reason::new("offline").expect("short"));
    let kind = made.binding.kind(1).expect("registered");
    writes.put_entity(EntityId::from_bytes([1; 16]), Entity::new(kind, offline, position));
    assert_eq!(made.host.submit_writes(&mut writes).expect("no chunk"), Saved::Accepted);
    let mut writes = Writes::new();
    let component = made.host.world().catalog().component_id("minecraft:entity_nbt").expect("registered");
    writes.set_entity_component(EntityId::from_bytes([2; 16]), component, Some(vec![1]));
    let error = made.host.commit(&mut writes, None).expect_err("absent");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
