//! Properties, objects and records in a segment's transaction, in one commit with its chunks.

use cg_format::RecordId;
use cg_format::record::Record;
use cg_layers::SegmentTransaction;
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;
use cg_store::verify::VerifyDepth;

use super::transfer::Crashing;
use super::*;

pub(super) fn id(n: u128) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(n))
}

pub(super) fn record(ids: &Ids, x: i64, what: u8) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(x, 3, 3), [0.5; 3]).expect("a point");
    Record::new(position, "game:sign", x, vec![what]).expect("short")
}

pub(super) fn property(text: &str) -> Property {
    Property::Named(name(text))
}

pub(super) fn within<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    at: ChunkAt,
    body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<(), Error>,
) -> Result<(), Error> {
    world.transaction(at, body)
}

/// The version and the first byte of an object.
pub(super) fn object<H: SegmentHome>(world: &SegmentedWorld<H>, key: &str) -> Option<(i64, u8)> {
    world.objects().get(key).expect("reads").map(|object| (object.version, object.bytes[0]))
}

pub(super) fn keys<H: SegmentHome>(world: &SegmentedWorld<H>, prefix: &str, page: usize) -> Vec<String> {
    let (mut found, mut position) = (Vec::new(), None);
    loop {
        let listed = world.objects().list(prefix, position.as_ref(), page).expect("lists");
        assert!(listed.next.is_none() || listed.entries.len() == page, "a page that is not the last is full");
        found.extend(listed.entries.iter().map(|entry| entry.key.to_string()));
        match listed.next {
            Some(next) => position = Some(next),
            None => return found,
        }
    }
}

/// How many keys the root names a segment of.
pub(super) fn place_count<H: SegmentHome>(world: &SegmentedWorld<H>) -> usize {
    let mut count = 0;
    let walked = world.root().read_view(|view| {
        view.for_each_property(":", |met| {
            let (name, _) = met.expect("reads");
            let of_place = [":object/", ":record/", ":property/", ":entity/"];
            count += usize::from(of_place.iter().any(|prefix| name.starts_with(prefix)));
            std::ops::ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    count
}

#[track_caller]
fn elsewhere<T: std::fmt::Debug>(refused: &Result<T, Error>, key: ConflictKey, home: Option<SegmentPos>) {
    let found = refused.as_ref().err().and_then(Error::layer::<SegmentError>);
    assert_eq!(found, Some(&SegmentError::Elsewhere { key, home }), "{refused:?}");
}

#[test]
fn an_object_a_record_a_property_and_a_chunk_are_one_commit() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let (here, there) = (ids.at(0, 0, 0), ids.at(40, 0, 0));
    save(&world, there, filled(world.root(), ids.stone));
    let written = world.transaction(here, |tx| {
        tx.save(here, filled(world.root(), ids.stone));
        tx.put_object("block/3,3,3/bricks", [7])?;
        tx.put_record(id(1), record(&ids, 3, 1));
        tx.set_property(property("game:rain"), Some(vec![1]));
        let read = tx.object("block/3,3,3/bricks")?.map(|object| object.version);
        Ok::<_, Error>((read, tx.record(id(1))?.is_some(), tx.property(&property("game:rain"))?))
    });
    assert_eq!(written.expect("commits"), (Some(0), true, Some(vec![1])));
    let before = world.segments().with(segment(&ids, 0), |world| Ok(world.last_commit())).expect("is open");
    within(&world, here, |tx| {
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)?;
        tx.put_object("block/3,3,3/bricks", [8])?;
        tx.put_record(id(1), record(&ids, 4, 2));
        tx.set_property(property("game:rain"), Some(vec![2]));
        Ok(())
    })
    .expect("commits");
    let root = world.root().last_commit();
    world
        .segments()
        .with(segment(&ids, 0), |alone| {
            assert_eq!(alone.last_commit().get(), before.get() + 1);
            Ok(())
        })
        .expect("is open");
    assert_eq!(world.root().last_commit(), root, "the root knows the keys");
    world.close().expect("closes");
    drop(world);

    let world = open(&disk);
    assert_eq!(object(&world, "block/3,3,3/bricks"), Some((1, 8)));
    assert_eq!(world.objects().version("block/3,3,3/bricks").expect("reads"), Some(1));
    assert_eq!(world.records().get(id(1)).expect("reads"), Some(record(&ids, 4, 2)));
    assert_eq!(world.property(&property("game:rain")).expect("reads"), Some(vec![2]));
    assert_eq!(world.objects().get("block").expect("reads"), None);
    assert!(
        world.root().objects().list("", None, 9).expect("lists").entries.is_empty(),
        "none is the root's"
    );
    world.close().expect("closes");
    drop(world);
    let verified = SegmentedWorld::verify(dir(&disk), VerifyDepth::Full, &options(), &[], |_| {});
    assert!(verified.as_ref().expect("verifies").is_ok(), "{verified:?}");

    let world = open(&disk);
    world.segments().delete(segment(&ids, 0)).expect("deletes");
    assert_eq!((object(&world, "block/3,3,3/bricks"), place_count(&world)), (None, 0));
    assert_eq!(world.records().get(id(1)).expect("reads"), None);
    within(&world, there, |tx| tx.put_object("block/3,3,3/bricks", [9])).expect("is free");
    assert_eq!(object(&world, "block/3,3,3/bricks"), Some((0, 9)), "its life ended with the segment");
}

/// The root's commit, the segment's creation, its commit: whichever of them does not come about.
#[test]
fn a_transaction_that_ends_at_any_commit_is_there_wholly_or_not_at_all() {
    for is_known in [false, true] {
        let mut ends = Vec::new();
        for commits in 0.. {
            let home = Crashing::new();
            let world = home.open(true);
            let ids = register(&world);
            let (at, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
            save(&world, there, filled(world.root(), ids.stone));
            let put = |world: &SegmentedWorld<Crashing>, to: u8, x: i64| {
                within(world, ids.at(x, 0, 0), |tx| {
                    let block = if to == 1 { ids.stone } else { ids.glass };
                    tx.save(ids.at(x, 0, 0), filled(world.root(), block));
                    tx.put_object("a", [to])?;
                    tx.put_record(id(1), record(&ids, 16 * x, to));
                    tx.set_property(property("game:a"), Some(vec![to]));
                    Ok(())
                })
            };
            if is_known {
                put(&world, 1, 0).expect("is the first");
            }
            home.fuse.set(commits);
            let done = put(&world, 2, 0);
            let is_burnt = home.fuse.is_burnt();
            assert_eq!(done.is_err(), is_burnt, "{done:?}");
            drop(world);

            let world = home.open(false);
            let shown = |world: &SegmentedWorld<Crashing>| {
                let kinds = [
                    object(world, "a").map(|(_, what)| what),
                    world.records().get(id(1)).expect("reads").map(|record| record.payload[0]),
                    world.property(&property("game:a")).expect("reads").map(|bytes| bytes[0]),
                    block(world, at).map(|block| if block == ids.stone { 1 } else { 2 }),
                ];
                assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{kinds:?} after {commits} commits");
                kinds[0]
            };
            let now = shown(&world);
            ends.push(now);
            // Whatever the crash left in the root, the keys are where they are, or free.
            let placed_elsewhere = put(&world, 2, 1 << 5);
            if now.is_some() {
                let home = Some(segment(&ids, 0));
                elsewhere(&placed_elsewhere, ConflictKey::Property("game:a".into()), home);
                put(&world, 2, 0).expect("is its own");
                assert_eq!(shown(&world), Some(2));
            } else {
                placed_elsewhere.expect("is free");
                assert_eq!(object(&world, "a"), Some((0, 2)));
            }
            if !is_burnt {
                break;
            }
        }
        let before = is_known.then_some(1);
        assert!(ends.len() > 1 && ends.iter().all(|end| [before, Some(2)].contains(end)), "{ends:?}");
        assert_eq!((ends[0], ends.last()), (before, Some(&Some(2))), "{ends:?}");
    }
}

#[test]
fn what_another_segment_has_is_neither_read_nor_put_nor_deleted() {
    let (world, ids) = in_memory();
    let (at, other) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    within(&world, at, |tx| {
        tx.put_object("a", [1])?;
        tx.put_record(id(1), record(&ids, 0, 1));
        tx.set_property(property("game:a"), Some(vec![1]));
        Ok(())
    })
    .expect("puts");
    let [of_object, of_record, of_property] = [
        ConflictKey::Object(ObjectKey::new("a").expect("a key")),
        ConflictKey::Record(id(1)),
        ConflictKey::Property("game:a".into()),
    ];
    let home = Some(segment(&ids, 0));
    elsewhere(&within(&world, other, |tx| tx.object("a").map(drop)), of_object.clone(), home);
    elsewhere(&within(&world, other, |tx| tx.put_object("a", [2])), of_object.clone(), home);
    elsewhere(&within(&world, other, |tx| tx.delete_object("a")), of_object, home);
    elsewhere(&within(&world, other, |tx| tx.record(id(1)).map(drop)), of_record.clone(), home);
    let put = |tx: &mut SegmentTransaction<'_, '_>| {
        tx.put_record(id(1), record(&ids, 256, 2));
        Ok(())
    };
    elsewhere(&within(&world, other, put), of_record.clone(), home);
    let delete = |tx: &mut SegmentTransaction<'_, '_>| {
        tx.delete_record(id(1));
        Ok(())
    };
    elsewhere(&within(&world, other, delete), of_record, home);
    let read = |tx: &mut SegmentTransaction<'_, '_>| tx.property(&property("game:a")).map(drop);
    elsewhere(&within(&world, other, read), of_property.clone(), home);
    for bytes in [Some(vec![2]), None] {
        let set = |tx: &mut SegmentTransaction<'_, '_>| {
            tx.set_property(property("game:a"), bytes);
            Ok(())
        };
        elsewhere(&within(&world, other, set), of_property.clone(), home);
    }
    assert_eq!(world.segments().list(), [segment(&ids, 0), segment(&ids, 1)]);
    assert_eq!((object(&world, "a"), place_count(&world)), (Some((0, 1)), 3));

    // A record is in the segment of its position.
    let outside = within(&world, other, |tx| {
        tx.put_record(id(2), record(&ids, 255, 1));
        Ok(())
    });
    let (first, second) = (segment(&ids, 1), segment(&ids, 0));
    let expected = Some(&SegmentError::TwoSegments { first, second });
    assert_eq!(outside.as_ref().err().and_then(Error::layer), expected, "{outside:?}");
    // The world's own properties are the root's. A host sets none of the engine's.
    for (set, expected) in [
        (Property::Seed, SegmentError::Elsewhere { key: ConflictKey::Property("seed".into()), home: None }),
        (property("cg:x"), SegmentError::Elsewhere { key: ConflictKey::Property("cg:x".into()), home: None }),
        (property(":segment"), SegmentError::EnginesProperty { property: ":segment".into() }),
    ] {
        let refused = within(&world, at, |tx| {
            tx.set_property(set, Some(vec![0; 8]));
            Ok(())
        });
        assert_eq!(refused.as_ref().err().and_then(Error::layer), Some(&expected), "{refused:?}");
    }
}

/// Worlds of before: their root has all objects, records and properties of hosts.
#[test]
fn what_the_root_has_stays_there_until_it_is_deleted() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    let written = world.root().transaction(|tx| {
        tx.put_object("a", [1])?;
        tx.put_record(id(1), record(&ids, 0, 1));
        tx.set_property(property("game:a"), Some(vec![1]));
        Ok::<_, Error>(())
    });
    written.expect("writes");
    assert_eq!(object(&world, "a"), Some((0, 1)));
    assert_eq!(world.records().get(id(1)).expect("reads"), Some(record(&ids, 0, 1)));
    assert_eq!(world.property(&property("game:a")).expect("reads"), Some(vec![1]));
    let of_object = ConflictKey::Object(ObjectKey::new("a").expect("a key"));
    elsewhere(&within(&world, at, |tx| tx.put_object("a", [2])), of_object.clone(), None);
    elsewhere(&within(&world, at, |tx| tx.object("a").map(drop)), of_object, None);
    world.root().objects().put("a", [2]).expect("writes");
    assert_eq!(object(&world, "a"), Some((1, 2)));
    let deleted = world.root().transaction(|tx| {
        tx.delete_object("a")?;
        tx.delete_record(id(1));
        tx.set_property(property("game:a"), None);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    within(&world, at, |tx| {
        tx.put_object("a", [3])?;
        tx.put_record(id(1), record(&ids, 0, 3));
        tx.set_property(property("game:a"), Some(vec![3]));
        Ok(())
    })
    .expect("is free");
    assert_eq!(object(&world, "a"), Some((2, 3)));
    assert_eq!(world.records().get(id(1)).expect("reads"), Some(record(&ids, 0, 3)));
    assert_eq!(world.named_properties("game:").expect("lists"), [(name("game:a"), vec![3])].into());
}

#[test]
fn a_key_that_came_into_the_root_after_its_segment_deleted_it_is_the_roots() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    let set = |value: Option<u8>| {
        within(&world, at, |tx| {
            tx.set_property(property("game:a"), value.map(|value| vec![value]));
            Ok(())
        })
    };
    set(Some(1)).expect("is free");
    set(None).expect("deletes");
    let written = world.root().transaction(|tx| {
        tx.set_property(property("game:a"), Some(vec![2]));
        Ok::<_, Error>(())
    });
    written.expect("writes");
    elsewhere(&set(Some(3)), ConflictKey::Property("game:a".into()), None);
    assert_eq!(world.property(&property("game:a")).expect("reads"), Some(vec![2]));
}
