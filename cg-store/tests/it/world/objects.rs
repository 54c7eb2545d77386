//! Versioned objects: how they count, what is refused, and how they are listed.

use std::ops::ControlFlow;

use super::*;
use cg_format::Space;
use cg_store::StoreLimits;
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;
use expect_test::{Expect, expect};

over_both_engines! {
    every_change_is_one_version_more
    a_deleted_object_counts_on_until_it_is_forgotten
    a_cache_writes_the_versions_it_was_told
    versions_do_not_go_back_inside_a_transaction
    keys_that_no_object_can_have
    a_listing_goes_on_where_it_stopped
    deleted_objects_are_listed_for_who_asks
    objects_are_converted_to_a_new_key_in_one_commit
    who_read_an_object_that_changed_is_told
    blind_writes_count_each_other
    chunks_objects_and_properties_come_together_or_not_at_all
    a_damaged_object_is_neither_absent_nor_overwritten
}

#[track_caller]
fn bytes(world: &World, key: &str) -> Option<(i64, String)> {
    let object = world.objects().get(key).expect("reads");
    object.map(|object| (object.version, String::from_utf8(object.bytes.to_vec()).expect("text")))
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be absent")]
fn some(version: i64, text: &str) -> Option<(i64, String)> {
    Some((version, text.to_owned()))
}

/// A change is refused with a message, and nothing is written.
#[track_caller]
fn refused(world: &World, body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>, expected: Expect) {
    let before = rows(world);
    let error = world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(b"beside".to_vec()));
        body(tx)
    });
    expected.assert_eq(&error.expect_err("is refused").to_string());
    assert!(before == rows(world), "a refused transaction wrote something");
}

fn every_change_is_one_version_more(world: &World) {
    let objects = world.objects();
    assert_eq!((bytes(world, "a"), objects.version("a").expect("reads")), (None, None));
    assert_eq!(objects.put("a", *b"one").expect("puts"), 0);
    assert_eq!(objects.put("a", *b"two").expect("puts"), 1);
    let before = world.last_commit();
    assert_eq!(objects.put("a", *b"two").expect("puts"), 1, "nothing changed");
    assert_eq!(world.last_commit(), before, "and nothing was committed");
    assert_eq!(objects.put("a", *b"").expect("puts"), 2, "an empty object is one");
    assert_eq!(bytes(world, "a"), some(2, ""));
    // Twice in one transaction is one change, and the transaction sees what it will be.
    let seen = world.transaction(|tx| {
        tx.put_object("a", *b"three")?;
        tx.put_object("a", *b"four")?;
        let first = tx.object("a")?.expect("was put");
        tx.delete_object("a")?;
        assert_eq!(tx.object("a")?, None);
        tx.put_object("a", *b"five")?;
        Ok::<_, Error>((first.version, tx.object("a")?.expect("was put").version))
    });
    assert_eq!(seen.expect("commits").value, (3, 3));
    assert_eq!(bytes(world, "a"), some(3, "five"));
    assert_sound(world);
}

fn a_deleted_object_counts_on_until_it_is_forgotten(world: &World) {
    let objects = world.objects();
    for text in ["one", "two", "three"] {
        objects.put("a", text.as_bytes()).expect("puts");
        objects.put("stays", text.as_bytes()).expect("puts");
    }
    assert!(objects.delete("a").expect("deletes"));
    assert!(!objects.delete("a").expect("deletes"), "it is gone already");
    assert!(!objects.delete("never").expect("deletes"));
    assert_eq!((bytes(world, "a"), objects.version("a").expect("reads")), (None, None));
    assert_eq!(
        objects.put("a", *b"three").expect("puts"),
        3,
        "what was deleted is written anew, so it changed"
    );
    objects.delete("a").expect("deletes");
    assert_sound(world);

    world.tiers().purge_tombstones_before(world.last_commit()).expect("forgets");
    assert_eq!(
        objects.put("a", *b"x").expect("puts"),
        4,
        "the deletion is not older than the commit that is named"
    );
    objects.delete("a").expect("deletes");
    objects.put("b", *b"later").expect("puts");
    world.tiers().purge_tombstones_before(world.last_commit()).expect("forgets");
    assert_eq!(objects.put("a", *b"anew").expect("puts"), 0);
    assert_eq!(bytes(world, "stays"), some(2, "three"));
    assert_sound(world);
}

fn a_cache_writes_the_versions_it_was_told(world: &World) {
    let objects = world.objects();
    objects.put_at_version("a", 9, *b"nine").expect("puts");
    assert_eq!(bytes(world, "a"), some(9, "nine"));
    objects.put_at_version("a", 9, *b"nine again").expect("the same version may be told again");
    refused(
        world,
        |tx| tx.put_object_at_version("a", 5, *b"five"),
        expect!["object `a` is at version 9, and version 5 was to be written; versions do not go back"],
    );
    refused(
        world,
        |tx| {
            tx.put_object_at_version("a", 5, *b"five")?;
            tx.object("a").map(drop)
        },
        expect!["object `a` is at version 9, and version 5 was to be written; versions do not go back"],
    );
    refused(
        world,
        |tx| tx.put_object_at_version("a", -1, *b"x"),
        expect!["object `a` was to be written at version -1; versions count from 0"],
    );
    assert_eq!(bytes(world, "a"), some(9, "nine again"));
    // A cache that dropped its copy may fetch the same one again, but none that is older.
    objects.delete("a").expect("deletes");
    refused(
        world,
        |tx| tx.put_object_at_version("a", 8, *b"eight"),
        expect!["object `a` is at version 9, and version 8 was to be written; versions do not go back"],
    );
    objects.put_at_version("a", 9, *b"nine").expect("puts");
    objects.put_at_version("a", i64::MAX, *b"last").expect("puts");
    assert_eq!(bytes(world, "a"), some(i64::MAX, "last"));
    refused(
        world,
        |tx| tx.put_object("a", *b"one more"),
        expect!["object `a` is at version 2^63 - 1, and there is none above"],
    );
    assert_eq!(objects.put("a", *b"last").expect("no change"), i64::MAX);
    assert_sound(world);
}

fn versions_do_not_go_back_inside_a_transaction(world: &World) {
    let written = world.transaction(|tx| {
        tx.put_object_at_version("a", 10, *b"ten")?;
        tx.put_object("a", *b"ten")?;
        let same = tx.object("a")?.map(|object| object.version);
        tx.put_object("a", *b"more")?;
        tx.put_object_at_version("b", 20, *b"twenty")?;
        tx.delete_object("b")?;
        Ok::<_, Error>((same, tx.object("a")?.map(|object| object.version), tx.object("b")?))
    });
    assert_eq!(written.expect("commits").value, (Some(10), Some(11), None));
    assert_eq!(bytes(world, "a"), some(11, "more"));
    assert_eq!(bytes(world, "b"), None);
    assert_eq!(world.objects().put("b", *b"anew").expect("puts"), 21);
    refused(
        world,
        |tx| {
            tx.put_object_at_version("a", 30, *b"thirty")?;
            tx.delete_object("a")?;
            tx.put_object_at_version("a", 29, *b"twenty-nine")
        },
        expect!["object `a` is at version 30, and version 29 was to be written; versions do not go back"],
    );
    assert_sound(world);
}

fn keys_that_no_object_can_have(world: &World) {
    let long = [b'k'; 513];
    refused(
        world,
        |tx| tx.put_object([], *b"x"),
        expect!["the key of an object has 0 bytes, allowed are 1 to 512"],
    );
    refused(
        world,
        |tx| tx.put_object(long, *b"x"),
        expect!["the key of an object has 513 bytes, allowed are 1 to 512"],
    );
    refused(
        world,
        |tx| tx.delete_object(long),
        expect!["the key of an object has 513 bytes, allowed are 1 to 512"],
    );
    refused(
        world,
        |tx| tx.object(long).map(drop),
        expect!["the key of an object has 513 bytes, allowed are 1 to 512"],
    );
    for key in [&long[..512], &[0], &[0xff; 512]] {
        world.objects().put(key, *b"x").expect("puts");
        assert!(world.objects().get(key).expect("reads").is_some());
    }
    assert_sound(world);
}

fn a_listing_goes_on_where_it_stopped(world: &World) {
    let objects = world.objects();
    let keys = ["block/1/bricks", "block/1/lights", "block/2/bricks", "block/3/bricks", "block0", "a"];
    for (n, key) in keys.iter().enumerate() {
        objects.put(key, vec![7; n]).expect("puts");
    }
    objects.put("block/2/gone", *b"x").expect("puts");
    objects.delete("block/2/gone").expect("deletes");
    let all = |prefix: &str, max_count| {
        let (mut listed, mut pages, mut position) = (Vec::new(), 0, None);
        loop {
            let page = objects.list(prefix, position.as_ref(), max_count).expect("lists");
            pages += 1;
            listed.extend(
                page.entries.iter().map(|entry| (entry.key.to_string(), entry.version, entry.len_bytes)),
            );
            position = page.next;
            if position.is_none() {
                return (listed, pages);
            }
        }
    };
    let expected: Vec<_> =
        [("block/1/bricks", 0), ("block/1/lights", 1), ("block/2/bricks", 2), ("block/3/bricks", 3)]
            .map(|(key, len)| (key.to_owned(), 0, len))
            .into();
    for (max_count, pages) in [(1, 4), (2, 2), (3, 2), (4, 1), (100, 1), (0, 4)] {
        assert_eq!(all("block/", max_count), (expected.clone(), pages), "{max_count} at once");
    }
    assert_eq!(all("", 10).0.len(), keys.len());
    assert_eq!(all("c", 10), (Vec::new(), 1));
    // What is written after a position is listed, whether or not the object of the position is there.
    let page = objects.list("block/", None, 2).expect("lists");
    objects.delete("block/1/lights").expect("deletes");
    objects.put("block/1/lights2", *b"x").expect("puts");
    let next = objects.list("block/", page.next.as_ref(), 1).expect("lists");
    assert_eq!(next.entries[0].key, ObjectKey::new("block/1/lights2").expect("a key"));
}

/// A game with more kinds of brick writes each object under a new key, and deletes the old one.
fn deleted_objects_are_listed_for_who_asks(world: &World) {
    let objects = world.objects();
    for key in ["a/1", "a/2", "a/3", "b"] {
        objects.put(key, *b"12").expect("commits");
    }
    objects.put("a/2", *b"123").expect("commits");
    for key in ["a/2", "b"] {
        objects.delete(key).expect("commits");
    }
    let list = |position: Option<&ObjectKey>, max_count| {
        let page = objects.list_with_deleted("a/", position, max_count).expect("lists");
        let entries = page.entries.iter();
        let entries = entries.map(|it| (it.key.to_string(), it.version, it.len_bytes, it.is_deleted));
        (entries.collect::<Vec<_>>(), page.next)
    };
    let (first, next) = list(None, 2);
    assert_eq!(first, [("a/1".to_owned(), 0, 2, false), ("a/2".to_owned(), 1, 0, true)]);
    assert_eq!(next, Some(ObjectKey::new("a/2").expect("a key")));
    assert_eq!(list(next.as_ref(), 2), (vec![("a/3".to_owned(), 0, 2, false)], None));
    let shown = objects.list("a/", None, 9).expect("lists").entries;
    assert!(shown.len() == 2 && shown.iter().all(|entry| !entry.is_deleted));
    // Counted on, it is no longer deleted; forgotten, it is not listed.
    objects.put("a/2", *b"1").expect("commits");
    objects.delete("a/1").expect("commits");
    world.tiers().purge_tombstones_before(world.last_commit().next()).expect("purges");
    let expected = [("a/2".to_owned(), 2, 1, false), ("a/3".to_owned(), 0, 2, false)];
    assert_eq!(list(None, 9), (expected.to_vec(), None));
}

fn objects_are_converted_to_a_new_key_in_one_commit(world: &World) {
    let objects = world.objects();
    for (place, bricks) in [("32,64,32", "ab"), ("64,64,32", "c")] {
        objects.put(format!("block/{place}/bricks"), bricks.as_bytes()).expect("puts");
        objects.put(format!("block/{place}/lights"), *b"7").expect("puts");
    }
    let mut old = Vec::new();
    let walked = objects.for_each("block/", |found| {
        let (key, _, bricks) = found.expect("is sound");
        if let Some(place) = key.strip_suffix(b"/bricks") {
            let wide: Vec<u8> = bricks.iter().flat_map(|brick| [0, *brick]).collect();
            old.push((key.to_vec(), [place, b"/bigbricks"].concat(), wide));
        }
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(walked.expect("scans"), None);
    let before = world.last_commit();
    let converted = world.transaction(|tx| {
        for (old, new, wide) in &old {
            tx.put_object(new, wide.clone())?;
            tx.delete_object(old)?;
        }
        Ok::<_, Error>(())
    });
    assert_eq!(converted.expect("converts").seq, before.next());
    let listed = objects.list("", None, 10).expect("lists").entries;
    let listed: Vec<_> = listed.iter().map(|entry| (entry.key.to_string(), entry.len_bytes)).collect();
    let expected = [
        ("block/32,64,32/bigbricks", 4),
        ("block/32,64,32/lights", 1),
        ("block/64,64,32/bigbricks", 2),
        ("block/64,64,32/lights", 1),
    ];
    assert_eq!(listed, expected.map(|(key, len_bytes)| (key.to_owned(), len_bytes)));
    assert_eq!(bytes(world, "block/32,64,32/bigbricks"), some(0, "\0a\0b"));
    // A later kind of data has keys of its own, and is made where there is none.
    assert_eq!(objects.get("block/32,64,32/biome").expect("reads"), None);
    assert_sound(world);
}

fn who_read_an_object_that_changed_is_told(world: &World) {
    world.objects().put("a", *b"one").expect("puts");
    let error = world.transaction(|tx| {
        let one = tx.object("a")?.expect("is there");
        world.engine(); // another handle
        std::thread::scope(|scope| {
            scope.spawn(|| world.objects().put("a", *b"two").expect("puts"));
        });
        tx.put_object("b", one.bytes)
    });
    let key = ObjectKey::new("a").expect("a key");
    match error {
        Err(Error::Conflict { key: found }) => assert_eq!(found, ConflictKey::Object(key)),
        other => panic!("no conflict: {other:?}"),
    }
    assert_eq!((bytes(world, "a"), bytes(world, "b")), (some(1, "two"), None));
}

fn blind_writes_count_each_other(world: &World) {
    const THREADS: i64 = 4;
    const WRITES: i64 = 25;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for n in 0..WRITES {
                    let text = format!("{thread} {n}");
                    world.transaction(|tx| tx.put_object("a", text.as_bytes())).expect("is no conflict");
                }
            });
        }
    });
    assert_eq!(world.objects().version("a").expect("reads"), Some(THREADS * WRITES - 1));
}

fn chunks_objects_and_properties_come_together_or_not_at_all(world: &World) {
    let ids = Ids::register(world);
    let at = ids.at(1, 2, 3);
    refused(
        world,
        |tx| {
            tx.save(at, filled(world, ids.stone));
            tx.put_object("a", *b"one")?;
            tx.put_object_at_version("b", -1, *b"x")
        },
        expect!["object `b` was to be written at version -1; versions count from 0"],
    );
    let before = world.last_commit();
    world
        .transaction(|tx| {
            tx.save(at, filled(world, ids.stone));
            tx.put_object("a", *b"one")
        })
        .expect("commits");
    assert_eq!(world.last_commit(), before.next());
    assert_eq!(bytes(world, "a"), some(0, "one"));
    assert_sound(world);
}

fn a_damaged_object_is_neither_absent_nor_overwritten(world: &World) {
    let objects = world.objects();
    objects.put("a", *b"one").expect("puts");
    objects.put("b", *b"two").expect("puts");
    // State 9 is none.
    let wrong = [&1_u64.to_le_bytes()[..], &[0; 8], &[9]].concat();
    plant(world, [(Space::Object, b"a".to_vec(), Some(plain(&wrong)))]);
    let message = "object `a` is damaged (Object row 61): object: state is 9, allowed is 1 for here or 2 for deleted (at byte 16); run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`";
    assert_eq!(objects.get("a").expect_err("is damaged").to_string(), message);
    assert_eq!(objects.put("a", *b"x").expect_err("is damaged").to_string(), message);
    assert_eq!(objects.list("", None, 9).expect_err("is damaged").to_string(), message);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect_err("is damaged").to_string(), message);
    assert_eq!(bytes(world, "b"), some(0, "two"));
    let mut shown = Vec::new();
    let ended = objects.for_each("", |object| {
        shown
            .push(object.map(|(key, version, _)| (key.to_vec(), version)).map_err(|error| error.to_string()));
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!(ended.expect("scans"), None);
    assert_eq!(shown, [Err(message.to_owned()), Ok((b"b".to_vec(), 0))]);
    assert_eq!(
        findings(world),
        [
            "object: object `a`: object: state is 9, allowed is 1 for here or 2 for deleted (at byte 16); restore it from a checkpoint or set it aside with `cg quarantine`"
        ]
    );
    assert_eq!(world.tiers().census().expect("counts").damaged, 1);
    assert_eq!(world.tiers().census().expect("counts").objects, 1);
}

#[test]
fn an_object_of_exactly_the_limit_is_taken_and_a_byte_more_is_not() {
    let limits = StoreLimits { object_bytes: 64, ..StoreLimits::default() };
    let world = World::builder()
        .options(&WorldOptions { limits, ..options() })
        .in_memory()
        .expect("a world in memory");
    world.objects().put("a", [7; 64]).expect("fits");
    refused(
        &world,
        |tx| tx.put_object("b", [7; 65]),
        expect!["object `b` takes 65 bytes, the world's limit is 64; raise the limit or split it"],
    );
    world.raise_limits(StoreLimits { object_bytes: 65, ..limits }).expect("raises");
    world.objects().put("b", [7; 65]).expect("fits");
}

#[test]
fn a_world_is_of_one_application() {
    let disk = Disk::new();
    let signed = |text: &str| WorldOptions { signature: Some(text.into()), ..options() };
    let refused = |result: Result<World, Error>, expected: Expect| {
        let error = result.expect_err("is refused").to_string();
        expected.assert_eq(&error.replace(disk.root().to_str().expect("text"), "DIR"));
    };
    for text in ["", "two\nlines"] {
        let error = World::builder().options(&signed(text)).create(disk.path()).expect_err("is refused");
        assert!(matches!(error, Error::Open(OpenError::NotASignature { .. })), "{error}");
        assert!(!disk.path().exists(), "nothing was made");
    }
    refused(
        World::builder().options(&signed(&"x".repeat(257))).create(disk.path()).map_err(|error| {
            assert!(
                error.to_string().ends_with("it is 1 to 256 bytes without control characters"),
                "{error}"
            );
            Error::Closed
        }),
        expect!["the world is closed"],
    );
    drop(World::builder().options(&signed("castle builder 3")).create(disk.path()).expect("is created"));
    // Readable without opening.
    let file = cg_store::directory::WorldFile::read(&disk.path()).expect("reads");
    assert_eq!(file.signature.as_deref(), Some("castle builder 3"));
    let before = disk.files();
    refused(
        World::builder().options(&signed("castle builder 4")).open(disk.path()),
        expect!["DIR/world has the signature `castle builder 3`, and `castle builder 4` was asked for"],
    );
    refused(
        World::builder().options(&signed("castle builder 4")).open_read_only(disk.path()),
        expect!["DIR/world has the signature `castle builder 3`, and `castle builder 4` was asked for"],
    );
    refused(
        World::builder().options(&signed("castle builder 3")).create(disk.path()),
        expect!["DIR/world already holds files; a world is created in an empty or missing directory"],
    );
    assert!(before == disk.files(), "a refused open changed a byte");
    let world = World::builder().options(&signed("castle builder 3")).open(disk.path()).expect("opens");
    world.checkpoint(disk.root().join("copy"), cg_store::CheckpointFiles::Linked).expect("copies");
    drop(world);
    let copy =
        World::builder().options(&signed("castle builder 3")).open(disk.root().join("copy")).expect("opens");
    drop(copy);
    drop(disk.open(&[]));

    let unsigned = Disk::new();
    drop(unsigned.create(&[]));
    let error = World::builder()
        .options(&signed("castle builder 3"))
        .open(unsigned.path())
        .expect_err("is refused")
        .to_string();
    assert_eq!(
        error.replace(unsigned.root().to_str().expect("text"), "DIR"),
        "DIR/world has no signature, and `castle builder 3` was asked for"
    );
}

#[test]
fn more_objects_are_forgotten_than_fit_into_a_batch() {
    let engine = MemEngine::new().with_max_batch_bytes(4096);
    let world = World::builder().options(&options()).over(engine).expect("a world");
    let objects = world.objects();
    for n in 0..200 {
        let key = ObjectKey::new(format!("{n:0>64}")).expect("short");
        objects.put(&key, b"a".to_vec()).expect("puts");
        objects.delete(&key).expect("deletes");
    }
    let rows = |world: &World| {
        let usage = world.usage().expect("counts").families;
        usage.into_iter().find(|usage| usage.family == cg_format::key::Family::Object).map(|it| it.row_count)
    };
    assert_eq!(rows(&world), Some(200));
    let next = world.last_commit().next();
    assert_eq!(world.tiers().purge_tombstones_before(next).expect("forgets"), next);
    assert_eq!((rows(&world), world.tiers().tombstone_horizon()), (Some(0), next));
}
