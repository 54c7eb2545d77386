//! Snapshots kept in a world, and the still view from which they are taken.

use std::io::{Read as _, Seek as _, SeekFrom};

use cg_format::entity::Reason;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{ChunkSource, EntitySource, Lookup, Space, key};
use cg_store::VerifyDepth;
use cg_store::engine::{Batch, Engine, Level};
use cg_store::prelude::*;

use super::over_both_engines;

over_both_engines! {
    a_snapshot_is_kept_listed_read_and_deleted
    names_are_taken_once_and_must_be_names
    of_two_that_are_kept_at_once_one_is_whole
    parts_without_a_head_are_no_snapshot
    a_damaged_part_is_said_where_it_is_needed
    a_still_view_sees_no_later_commit
}

/// More than one part, and no two parts alike.
fn long() -> Vec<u8> {
    (0..5 << 19).map(|at: u32| (at / 1000 + at) as u8).collect()
}

fn value<E: Engine>(world: &World<E>, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = world.snapshot(name).expect("readable").expect("kept");
    reader.read_to_end(&mut bytes).expect("sound");
    assert_eq!(reader.len_bytes(), bytes.len() as u64);
    bytes
}

fn names<E: Engine>(world: &World<E>) -> Vec<(String, u64)> {
    world.snapshots().expect("readable").into_iter().map(|kept| (kept.name, kept.len_bytes)).collect()
}

fn a_snapshot_is_kept_listed_read_and_deleted<E: Engine>(world: &World<E>) {
    let hash = world.content_hash().expect("sound");
    let (long, huge) = (long(), vec![7; 17 << 20]);
    let seq = world.keep_snapshot("long", &long).expect("room");
    world.keep_snapshot("empty", &[]).expect("room");
    world.keep_snapshot("huge", &huge).expect("room, in two commits");
    world.keep_snapshot("lon", b"a name that another begins with").expect("room");
    let expected = [("empty", 0), ("huge", 17 << 20), ("lon", 31), ("long", 5 << 19)];
    assert_eq!(names(world), expected.map(|(name, len)| (name.to_owned(), len)));
    assert_eq!(world.snapshots().expect("readable")[3].seq, seq);
    assert!(value(world, "long") == long && value(world, "huge") == huge);
    assert_eq!(value(world, "empty"), b"");

    let mut reader = world.snapshot("long").expect("readable").expect("kept");
    let mut four = [0; 4];
    reader.seek(SeekFrom::Start((1 << 20) - 2)).expect("a place");
    reader.read_exact(&mut four).expect("over the end of a part");
    assert_eq!(four, long[(1 << 20) - 2..][..4]);
    reader.seek(SeekFrom::End(-1)).expect("a place");
    assert_eq!(reader.read(&mut four).expect("one byte"), 1);
    assert_eq!(reader.read(&mut four).expect("the end"), 0);

    assert_eq!(world.content_hash().expect("sound"), hash, "snapshots are no content");
    assert!(world.verify(VerifyDepth::Full, |_| {}).expect("readable").is_ok());
    assert!(world.delete_snapshot("long").expect("deletes"));
    assert!(!world.delete_snapshot("long").expect("there is none"));
    assert!(world.snapshot("long").expect("readable").is_none());
    assert_eq!(value(world, "lon"), b"a name that another begins with");
}

fn names_are_taken_once_and_must_be_names<E: Engine>(world: &World<E>) {
    world.keep_snapshot("arena", b"first").expect("room");
    let error = world.keep_snapshot("arena", b"second").unwrap_err();
    let expected = "the world keeps a snapshot `arena` already; delete it first, or choose another name";
    assert_eq!(error.to_string(), expected);
    assert_eq!(value(world, "arena"), b"first");
    for name in ["", "a\0b", &"x".repeat(256)] {
        let error = world.keep_snapshot(name, b"").unwrap_err();
        let len = name.len();
        let expected = format!("a snapshot's name has 1 to 255 bytes, none of them zero; this one has {len}");
        assert_eq!(error.to_string(), expected);
    }
    world.keep_snapshot(&"x".repeat(255), b"").expect("as long as a name may be");
}

fn put<E: Engine>(world: &World<E>, name: &str, part: u32, payload: &'static [u8]) {
    let mut batch = Batch::new();
    let row = Draft::plain(Codec::None, 0, |out| out.extend(payload));
    batch.put(Space::Snapshot, key::snapshot(name, part).expect("a name"), row, Stamp::Commit);
    world.engine().commit(batch, &[], Level::Process).expect("memory is left");
}

fn of_two_that_are_kept_at_once_one_is_whole<E: Engine>(world: &World<E>) {
    // Three commits each, which fall between each other.
    let values = [1, 2].map(|byte| vec![byte; 33 << 20]);
    for round in 0..4 {
        let name = format!("round {round}");
        let start = std::sync::Barrier::new(2);
        let kept = std::thread::scope(|scope| {
            let keep = |value| {
                let (start, name) = (&start, &name);
                scope.spawn(move || {
                    start.wait();
                    world.keep_snapshot(name, value)
                })
            };
            let [first, second] = &values;
            [keep(first), keep(second)].map(|thread| thread.join().expect("no panic"))
        });
        let [winner] = [0, 1].into_iter().filter(|which| kept[*which].is_ok()).collect::<Vec<_>>()[..] else {
            panic!("one of them is kept: {kept:?}")
        };
        let error = kept[1 - winner].as_ref().expect_err("the other is not").to_string();
        let said =
            format!("the world keeps a snapshot `{name}` already; delete it first, or choose another name");
        assert_eq!(error, said);
        assert!(value(world, &name) == values[winner], "round {round}: not what {winner} kept");
        assert!(world.delete_snapshot(&name).expect("deletes"));
    }
}

fn parts_without_a_head_are_no_snapshot<E: Engine>(world: &World<E>) {
    put(world, "torn", 1, b"what a killed process left");
    put(world, "torn", 9, b"and more");
    assert_eq!(names(world), []);
    assert!(world.snapshot("torn").expect("readable").is_none());
    assert!(!world.delete_snapshot("torn").expect("there is none"));
    world.keep_snapshot("torn", b"anew").expect("the name is free");
    assert_eq!(value(world, "torn"), b"anew");
    assert!(world.delete_snapshot("torn").expect("deletes"));
    let engine = world.engine();
    let left = engine.get(Space::Snapshot, &key::snapshot("torn", 9).expect("a name"));
    assert!(left.expect("readable").is_none(), "deleting takes every part");
}

fn a_damaged_part_is_said_where_it_is_needed<E: Engine>(world: &World<E>) {
    world.keep_snapshot("long", &long()).expect("room");
    let mut batch = Batch::new();
    batch.delete(Space::Snapshot, key::snapshot("long", 2).expect("a name"));
    world.engine().commit(batch, &[], Level::Process).expect("memory is left");
    let mut reader = world.snapshot("long").expect("readable").expect("kept");
    let mut first = vec![0; 1 << 20];
    reader.read_exact(&mut first).expect("the first part is sound");
    let error = reader.read(&mut first).unwrap_err();
    let expected = "part 2 of snapshot `long` is damaged (Snapshot row 6c6f6e670000000002): frame: a part needs 1 bytes and 0 are \
                    left (at byte 0); restore it from a checkpoint";
    assert_eq!(error.to_string(), expected);
    put(world, "long", 0, b"no head");
    let error = world.snapshots().unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("readable");
    assert!(report.is_ok(), "a frame is sound whatever it holds: {report:?}");
}

fn a_still_view_sees_no_later_commit<E: Engine>(world: &World<E>) {
    let dimension = world.register_dimension("game:overworld").expect("new");
    let [air, stone] = world.register_blocks([":air", "game:stone"]).expect("new");
    let sheep = world.register_entity("game:sheep").expect("new");
    let at = |x| ChunkAt::new(dimension, ChunkPos::constant(x, 0, 0));
    let id = EntityId::from_bytes([3; 16]);
    let put = |block, height| {
        let put = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            tx.save(at(0), Chunk::filled(block, &schema)?);
            tx.save(at(1), Chunk::filled(block, &schema)?);
            let place = EntityPos::new(dimension, BlockPos::new(0, height, 0), [0.0; 3])?;
            tx.put_entity(id, Entity::new(sheep, Owner::Detached(Reason::new("away")?), place));
            Ok::<_, Box<dyn std::error::Error>>(())
        });
        put.expect("memory is left");
    };
    put(air, 1);
    world.forget_chunks();
    let height = |entity: Option<Entity>| entity.expect("stored").position.block().y;
    world
        .still(|still| {
            put(stone, 2);
            let deleted = world.transaction(|tx| {
                tx.delete(at(1));
                tx.save(at(2), Chunk::filled(stone, &tx.catalog().current_schema())?);
                Ok::<_, Box<dyn std::error::Error>>(())
            });
            deleted.expect("memory is left");
            assert_eq!(blocks(still, at), [Some(air), Some(air), None, Some(air)]);
            assert_eq!(height(EntitySource::entity(still, id).expect("sound")), 1);
        })
        .expect("open");
    assert_eq!(blocks(world, at), [Some(stone), None, Some(stone), Some(stone)]);
    assert_eq!(height(world.entity(id).expect("sound")), 2);
}

/// What stands in some chunks, one of which is asked for twice.
fn blocks(source: &dyn ChunkSource<Error = Error>, at: impl Fn(i64) -> ChunkAt) -> Vec<Option<BlockId>> {
    let found = source.lookup_many(&[at(0), at(1), at(2), at(0)]);
    let block = |found: Result<Lookup<std::sync::Arc<Chunk>>, _>| {
        found.expect("sound").here().map(|chunk| chunk.block(LocalPos::default()))
    };
    found.into_iter().map(block).collect()
}
