//! Snapshots kept in a world, and the still view from which they are taken.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use cg_format::entity::Reason;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::Family;
use cg_format::{ChunkSource, EntitySource, Lookup, Space, key};
use cg_store::StoreLimits;
use cg_store::engine::{ALL_KEYS, Batch, EngineError, Level, MemEngine, ReadableExt as _};
use cg_store::prelude::*;
use cg_store::snapshots::{DamagedSnapshot, SavedSnapshot};
use cg_store::verify::VerifyDepth;

use super::{Disk, options, over_both_engines, plain, plant, rows};
use crate::surviving::{Fuse, Surviving};

over_both_engines! {
    a_snapshot_is_kept_listed_read_and_deleted
    names_are_taken_once_and_must_be_names
    of_two_that_are_kept_at_once_one_is_whole
    parts_without_a_head_are_no_snapshot_and_can_be_deleted
    parts_behind_the_end_of_what_is_kept_go
    a_damaged_part_is_said_where_it_is_needed
    what_is_missing_behind_a_sound_head_is_found
    a_reader_never_mixes_two_snapshots
    a_still_view_sees_no_later_commit
}

/// More than one part, and no two parts alike.
fn long() -> Vec<u8> {
    (0..5 << 19).map(|at: u32| (at / 1000 + at) as u8).collect()
}

fn value(world: &World, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = world.snapshots().open(name).expect("readable").expect("kept");
    reader.read_to_end(&mut bytes).expect("sound");
    assert_eq!(reader.len_bytes(), bytes.len() as u64);
    bytes
}

/// The snapshots, all of which are sound.
fn kept(world: &World) -> Vec<SavedSnapshot> {
    world.snapshots().list().expect("readable").into_iter().map(|kept| kept.expect("sound")).collect()
}

fn names(world: &World) -> Vec<(String, u64)> {
    kept(world).into_iter().map(|kept| (kept.name, kept.len_bytes)).collect()
}

fn a_snapshot_is_kept_listed_read_and_deleted(world: &World) {
    let hash = world.content_hash(cg_store::view::Area::World).expect("sound");
    let (long, huge) = (long(), vec![7; 17 << 20]);
    let seq = world.snapshots().save("long", &long).expect("room");
    world.snapshots().save("empty", &[]).expect("room");
    world.snapshots().save("huge", &huge).expect("room");
    world.snapshots().save("lon", b"a name that another begins with").expect("room");
    let expected = [("empty", 0), ("huge", 17 << 20), ("lon", 31), ("long", 5 << 19)];
    assert_eq!(names(world), expected.map(|(name, len)| (name.to_owned(), len)));
    assert_eq!(kept(world)[3].seq, seq);
    assert!(value(world, "long") == long && value(world, "huge") == huge);
    assert_eq!(value(world, "empty"), b"");

    let mut reader = world.snapshots().open("long").expect("readable").expect("kept");
    let mut four = [0; 4];
    reader.seek(SeekFrom::Start((1 << 20) - 2)).expect("a place");
    reader.read_exact(&mut four).expect("over the end of a part");
    assert_eq!(four, long[(1 << 20) - 2..][..4]);
    reader.seek(SeekFrom::End(-1)).expect("a place");
    assert_eq!(reader.read(&mut four).expect("one byte"), 1);
    assert_eq!(reader.read(&mut four).expect("the end"), 0);

    assert_eq!(
        world.content_hash(cg_store::view::Area::World).expect("sound"),
        hash,
        "snapshots are no content"
    );
    assert!(world.verify(VerifyDepth::Full, |_| {}).expect("readable").is_ok());
    assert!(world.snapshots().delete("long").expect("deletes"));
    assert!(!world.snapshots().delete("long").expect("there is none"));
    assert!(world.snapshots().open("long").expect("readable").is_none());
    assert_eq!(value(world, "lon"), b"a name that another begins with");
}

fn names_are_taken_once_and_must_be_names(world: &World) {
    world.snapshots().save("arena", b"first").expect("room");
    let error = world.snapshots().save("arena", b"second").unwrap_err();
    let expected = "the world keeps a snapshot `arena` already; delete it first, or choose another name";
    assert_eq!(error.to_string(), expected);
    assert_eq!(value(world, "arena"), b"first");
    for name in ["", "a\0b", &"x".repeat(256)] {
        let error = world.snapshots().save(name, b"").unwrap_err();
        let len = name.len();
        let expected = format!("a snapshot's name has 1 to 255 bytes, none of them zero; this one has {len}");
        assert_eq!(error.to_string(), expected);
    }
    world.snapshots().save(&"x".repeat(255), b"").expect("as long as a name may be");
}

fn put(world: &World, name: &str, part: u32, payload: &'static [u8]) {
    let mut batch = Batch::new();
    let row = Draft::plain(Codec::None, 0, |out| out.extend(payload));
    batch.put(Space::Snapshot, key::snapshot(name, part).expect("a name"), row, Stamp::Commit);
    world.engine().commit(batch, &[], Level::Process).expect("memory is left");
}

fn of_two_that_are_kept_at_once_one_is_whole(world: &World) {
    let values = [1, 2].map(|byte| vec![byte; 33 << 20]);
    for round in 0..4 {
        let name = format!("round {round}");
        let start = std::sync::Barrier::new(2);
        let kept = std::thread::scope(|scope| {
            let keep = |value| {
                let (start, name) = (&start, &name);
                scope.spawn(move || {
                    start.wait();
                    world.snapshots().save(name, value)
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
        assert!(world.snapshots().delete(&name).expect("deletes"));
    }
}

fn parts(world: &World) -> Vec<(String, u32)> {
    let mut parts = Vec::new();
    let scanned = world.engine().scan(Family::Snapshot, ALL_KEYS, |key, _| {
        let (name, part) = key::decode_snapshot(key).expect("a name");
        parts.push((name.to_owned(), part));
        ControlFlow::<()>::Continue(())
    });
    scanned.expect("readable");
    parts
}

fn parts_without_a_head_are_no_snapshot_and_can_be_deleted(world: &World) {
    put(world, "to\x1brn", 1, b"what lost its head");
    put(world, "to\x1brn", 9, b"and more");
    assert_eq!(names(world), []);
    assert!(world.snapshots().open("to\x1brn").expect("readable").is_none());
    let found = |depth| world.verify(depth, |_| {}).expect("readable").findings;
    assert_eq!(found(VerifyDepth::Quick), []);
    let found: Vec<_> =
        found(VerifyDepth::Full).into_iter().map(|finding| (finding.key, finding.what)).collect();
    let what = "it is a part of snapshot `to\\u{1b}rn`, which has no head and is not there; `cg snapshot delete` \
                removes what is left of it";
    assert_eq!(found, [(key::snapshot("to\x1brn", 1).expect("a name"), what.to_owned())]);
    assert!(world.snapshots().delete("to\x1brn").expect("deletes"));
    assert_eq!(parts(world), []);
    assert!(!world.snapshots().delete("to\x1brn").expect("there is none"));
}

fn parts_behind_the_end_of_what_is_kept_go(world: &World) {
    put(world, "torn", 1, b"what lost its head");
    put(world, "torn", 9, b"and more");
    put(world, "tornado", 1, b"another's");
    world.snapshots().save("torn", b"anew").expect("the name is free");
    assert_eq!(value(world, "torn"), b"anew");
    let left = [("torn", 0), ("torn", 1), ("tornado", 1)];
    assert_eq!(parts(world), left.map(|(name, part)| (name.to_owned(), part)));
}

/// The power goes at one commit after the other: of what is longer than a batch, all is kept or nothing.
#[test]
fn whichever_commit_is_the_last_a_snapshot_is_whole_or_leaves_nothing() {
    let limits = StoreLimits { batch_bytes: 3 << 20, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..options() };
    let long = || (0..6 << 18).map(|at: u32| at.to_le_bytes()).collect::<Vec<_>>().concat();
    let (mut without, mut with) = (0, 0);
    for commits in 0.. {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open = || World::builder().options(&options).over(below.clone());
        let world = open().expect("a world");
        fuse.set(commits);
        let kept = world.snapshots().save("long", &long());
        let is_burnt = fuse.is_burnt();
        assert_eq!(kept.is_ok(), !is_burnt, "{kept:?}");
        // Nobody is shown a head whose parts are still to come.
        match world.snapshots().open("long") {
            Ok(None) | Err(Error::Engine(_)) => assert!(is_burnt),
            Ok(Some(mut reader)) => {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).expect("all of it is there");
                assert!(read == long());
            }
            Err(error) => panic!("{error}"),
        }
        drop(world);
        fuse.set(i64::MAX);
        let world = open().expect("opens");
        let intents = rows(&world)
            .into_keys()
            .filter(|(family, key)| *family == Family::Index && key.first() == Some(&4));
        assert_eq!(intents.count(), 0, "{commits} commits");
        assert_eq!(world.verify(VerifyDepth::Full, |_| {}).expect("readable").findings, []);
        if parts(&world).is_empty() {
            without += 1;
            assert_eq!(with, 0, "what was kept is gone again");
            world.snapshots().save("long", &long()).expect("the name is free");
        } else {
            with += 1;
            let error = world.snapshots().save("long", b"other").expect_err("it is there").to_string();
            assert_eq!(
                error,
                "the world keeps a snapshot `long` already; delete it first, or choose another name"
            );
        }
        assert!(value(&world, "long") == long(), "{commits} commits");
        assert_eq!(world.metrics().stats.commits_staged, u64::from(without > 0 && with == 0));
        assert!(world.snapshots().delete("long").expect("deletes"));
        assert_eq!(parts(&world), []);
        if !is_burnt {
            break;
        }
    }
    assert!(without > 5 && with > 5, "{without} without, {with} with");
}

/// Callers that do not wait for the snapshot itself go on.
#[test]
fn commits_are_accepted_while_a_long_snapshot_is_written() {
    let steps: Arc<Mutex<Option<Receiver<()>>>> = Arc::default();
    let engine = MemEngine::new().with_fault({
        let steps = Arc::clone(&steps);
        move |_| {
            let _next = steps.lock().expect("no panic").as_ref().map(Receiver::recv);
            None
        }
    });
    let limits = StoreLimits { batch_bytes: 3 << 20, ..StoreLimits::default() };
    let options = WorldOptions { limits, durability: Durability::Fast, ..WorldOptions::default() };
    let world = World::builder().options(&options).over(engine).expect("a world in memory");
    let before = world.last_commit();
    let (step, next) = channel();
    *steps.lock().expect("no panic") = Some(next);
    thread::scope(|scope| {
        let keeping = scope.spawn(|| world.snapshots().save("long", &vec![7; 9 << 20]));
        while world.last_commit() == before {
            thread::yield_now();
        }
        let committed = world.transaction(|tx| {
            tx.set_property(Property::Time, Some(vec![1]));
            Ok::<_, Error>(())
        });
        committed.expect("is queued after it");
        assert_eq!(world.property(&Property::Time).expect("no damage"), Some(vec![1]));
        assert!(!keeping.is_finished(), "nothing of it is written yet");
        drop(step);
        keeping.join().expect("no panic").expect("room");
    });
    assert!(value(&world, "long") == vec![7; 9 << 20]);
}

#[test]
fn a_world_that_is_open_for_reading_refuses_and_reads_on() {
    let disk = Disk::new();
    let world = World::builder().options(&options()).create(disk.path()).expect("is created");
    world.snapshots().save("here", b"value").expect("room");
    world.close().expect("closes");
    drop(world);
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    let refused = [
        world.snapshots().save("other", b"value").map(drop),
        world.snapshots().delete("here").map(drop),
        world
            .transaction_at(Durability::Fast, |tx| {
                tx.set_property(Property::Time, Some(vec![1]));
                Ok::<_, Error>(())
            })
            .map(drop),
    ];
    for refused in refused {
        let error = refused.expect_err("nothing is written");
        assert!(matches!(error, Error::Engine(EngineError::OpenedReadOnly)), "{error}");
    }
    assert_eq!(names(&world), [("here".to_owned(), 5)]);
    assert_eq!(value(&world, "here"), b"value");
}

fn a_damaged_part_is_said_where_it_is_needed(world: &World) {
    world.snapshots().save("long", &long()).expect("room");
    let mut batch = Batch::new();
    batch.delete(Space::Snapshot, key::snapshot("long", 2).expect("a name"));
    world.engine().commit(batch, &[], Level::Process).expect("memory is left");
    let mut reader = world.snapshots().open("long").expect("readable").expect("kept");
    let mut first = vec![0; 1 << 20];
    reader.read_exact(&mut first).expect("the first part is sound");
    let error = reader.read(&mut first).unwrap_err();
    let expected = "part 2 of snapshot `long` is damaged (Snapshot row 6c6f6e670000000002): frame: a part needs 1048576 bytes and \
                    0 are left (at byte 0); restore it from a checkpoint";
    assert_eq!(error.to_string(), expected);
    put(world, "long", 0, b"no head");
    world.snapshots().save("after", b"sound").expect("room");
    world.snapshots().save("zero", &long()).expect("room");
    let listed = || {
        let shown = |kept: Result<SavedSnapshot, DamagedSnapshot>| match kept {
            Ok(kept) => format!("{}: {} bytes", kept.name, kept.len_bytes),
            Err(DamagedSnapshot { name, error }) => {
                assert!(matches!(error, Error::Corrupt(_)), "{error}");
                format!("{name:?} {error}")
            }
        };
        world.snapshots().list().expect("readable").into_iter().map(shown).collect::<Vec<_>>()
    };
    let head = "Some(\"long\") part 0 of snapshot `long` is damaged (Snapshot row 6c6f6e670000000000): frame: snapshot length \
                needs 8 bytes and 7 are left (at byte 24); restore it from a checkpoint";
    let after = "after: 5 bytes";
    let zero = format!("zero: {} bytes", long().len());
    assert_eq!(listed(), [after, head, &zero]);
    plant(world, [(Space::Snapshot, b"yyy".to_vec(), Some(plain(b"whatever")))]);
    let [first, second, third, fourth] = &listed()[..] else { panic!("{:?}", listed()) };
    assert_eq!([first, second, fourth], [after, head, &zero]);
    assert!(third.starts_with("None a snapshot is damaged (Snapshot row 797979): "), "{third}");
    plant(world, [(Space::Snapshot, b"yyy".to_vec(), None)]);
    assert!(
        world.snapshots().delete("zero").expect("deletes")
            && world.snapshots().delete("after").expect("deletes")
    );
    assert_eq!(listed(), [head]);
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("readable");
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!(
        finding.what,
        "frame: snapshot length needs 8 bytes and 7 are left (at byte 24); restore it from a checkpoint"
    );
}

fn remove(world: &World, name: &str, parts: &[u32]) {
    let mut batch = Batch::new();
    for part in parts {
        batch.delete(Space::Snapshot, key::snapshot(name, *part).expect("a name"));
    }
    world.engine().commit(batch, &[], Level::Process).expect("memory is left");
}

/// The findings of verification, each with the name and part that its key says.
fn found(world: &World) -> Vec<String> {
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("readable");
    let said = |finding: cg_store::verify::Finding| {
        let (name, part) = key::decode_snapshot(&finding.key).expect("a row of a snapshot");
        format!("{name} {part}: {}", finding.what)
    };
    report.findings.into_iter().map(said).collect()
}

fn what_is_missing_behind_a_sound_head_is_found(world: &World) {
    let value = vec![7; (4 << 20) + 1];
    for name in ["all", "beginning", "end", "gap", "middle", "nothing"] {
        world.snapshots().save(name, &value).expect("room");
    }
    assert_eq!(found(world), [""; 0]);
    remove(world, "beginning", &[1]);
    remove(world, "end", &[5]);
    remove(world, "middle", &[2, 3]);
    remove(world, "nothing", &[1, 2, 3, 4, 5]);
    let delete = "delete the rest of it with `cg snapshot delete`";
    let skip = "put back what is left of it with `cg snapshot restore --skip-damaged`";
    let expected = [
        ("beginning 1: part 1 is", "beginning", delete),
        ("end 5: part 5 is", "end", skip),
        ("middle 2: parts 2 to 3 are", "middle", skip),
        ("nothing 1: parts 1 to 5 are", "nothing", delete),
    ]
    .map(|(first, name, help)| {
        format!("{first} missing of snapshot `{name}`; restore it from a checkpoint, or {help}")
    });
    assert_eq!(found(world), expected);
    let quick = world.verify(VerifyDepth::Quick, |_| {}).expect("readable");
    assert!(quick.is_ok(), "a quick look decodes nothing");
    for name in ["beginning", "end", "middle", "nothing"] {
        assert!(world.snapshots().delete(name).expect("deletes"));
    }
    assert_eq!(found(world), [""; 0]);

    // Parts that are there and are not those of the head.
    put(world, "all", 5, b"longer than one byte, and newer");
    put(world, "all", 9, b"after the end");
    let seq = kept(world)[0].seq;
    let expected = [
        format!("all 5: it is newer than the head, which commit {seq} kept; restore it from a checkpoint"),
        "all 5: frame: the length of a part is 31, but the rest of the value implies 1 (at byte 0); restore it from a \
         checkpoint"
            .to_owned(),
        "all 9: it is part 9, and the head says 5; `cg snapshot delete` removes all of it".to_owned(),
    ];
    assert_eq!(found(world), expected);
}

fn a_reader_never_mixes_two_snapshots(world: &World) {
    let replaced = "snapshot `it` was deleted or kept anew while it was read; read it again";
    let begin = || {
        world.snapshots().save("it", &vec![1; 3 << 20]).expect("the name is free");
        let mut reader = world.snapshots().open("it").expect("readable").expect("kept");
        let mut some = vec![0; 1 << 20];
        reader.read_exact(&mut some).expect("the first part is sound");
        assert!(world.snapshots().delete("it").expect("deletes"));
        move || reader.read(&mut some).expect_err("it is gone").to_string()
    };
    let mut next = begin();
    assert_eq!(next(), replaced);
    world.snapshots().save("it", &vec![2; 3 << 20]).expect("the name is free");
    assert_eq!(next(), replaced, "of the other");
    assert!(world.snapshots().delete("it").expect("deletes"));
    let mut next = begin();
    world.snapshots().save("it", b"short").expect("the name is free");
    assert_eq!(next(), replaced, "of which there is no such part");
}

fn a_still_view_sees_no_later_commit(world: &World) {
    let dimension = world.registry().register_dimension("game:overworld").expect("new");
    let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).expect("new");
    let sheep = world.registry().register_entity("game:sheep").expect("new");
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
    world.cache().clear();
    let height = |entity: Option<Entity>| entity.expect("stored").position.block().y;
    world
        .read_view(|still| {
            put(stone, 2);
            let deleted = world.transaction(|tx| {
                tx.delete(at(1));
                tx.save(at(2), Chunk::filled(stone, &tx.catalog().current_schema())?);
                Ok::<_, Box<dyn std::error::Error>>(())
            });
            deleted.expect("memory is left");
            assert_eq!(blocks(still, at), [Some(air), Some(air), None, Some(air)]);
            assert_eq!(height(EntitySource::entity(still, id).expect("sound")), 1);
            Ok::<_, Error>(())
        })
        .expect("open");
    assert_eq!(blocks(world, at), [Some(stone), None, Some(stone), Some(stone)]);
    assert_eq!(height(world.entity(id).expect("sound")), 2);
}

/// The blocks of some chunks, one of which is asked for twice.
fn blocks(source: &dyn ChunkSource<Error = Error>, at: impl Fn(i64) -> ChunkAt) -> Vec<Option<BlockId>> {
    let found = source.lookup_many(&[at(0), at(1), at(2), at(0)]);
    let block = |found: Result<Lookup<std::sync::Arc<Chunk>>, _>| {
        found.expect("sound").here().map(|chunk| chunk.block(LocalPos::default()))
    };
    found.into_iter().map(block).collect()
}
