//! Values that go from one segment to another, and places that the root does not know.

use cg_layers::SegmentTransaction;
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;
use cg_store::verify::VerifyDepth;

use super::values::{id, keys, object, property, record, within};
use super::*;

/// Clients keep the versions that they have seen.
#[test]
fn versions_count_on_in_another_segment() {
    let (world, ids) = in_memory();
    let [a, b] = [ids.at(0, 0, 0), ids.at(16, 0, 0)];
    world.root().objects().put("old", [1]).expect("puts");
    world.root().objects().put("old", [2]).expect("puts");
    world.root().objects().delete("old").expect("deletes");
    let read = world.transaction(a, |tx| {
        tx.put_object("old", [3])?;
        tx.object("old")
    });
    let version = read.expect("commits").map(|object| object.version);
    assert_eq!((version, object(&world, "old")), (Some(2), Some((2, 3))));

    within(&world, a, |tx| tx.put_object("k", [1])).expect("puts");
    within(&world, a, |tx| tx.put_object("k", [2])).expect("puts");
    within(&world, a, |tx| tx.delete_object("k")).expect("deletes");
    assert_eq!(object(&world, "k"), None);
    let back = within(&world, b, |tx| tx.put_object_at_version("k", 0, [9]));
    assert!(
        matches!(&back, Err(Error::VersionGoesBack { stored: 1, offered: 0, .. })),
        "another segment has deleted version 1: {back:?}"
    );
    // It has the place now, and no value. An overlay counts on too.
    let found = world.find_object(&ObjectKey::new("k").expect("a key")).expect("reads").here();
    assert_eq!(found.map(|(object, _)| (object.version, object.bytes)), Some((1, None)));
    // Nor has a third one that comes to nothing.
    let c = ids.at(32, 0, 0);
    let back = within(&world, c, |tx| tx.put_object_at_version("k", 0, [9]));
    assert!(matches!(&back, Err(Error::VersionGoesBack { stored: 1, .. })), "{back:?}");
    within(&world, b, |tx| tx.put_object("k", [3])).expect("is free");
    within(&world, b, |tx| tx.put_object("k", [4])).expect("puts");
    assert_eq!(object(&world, "k"), Some((3, 4)));
    within(&world, b, |tx| tx.delete_object("k")).expect("deletes");
    // The first segment's own row is older.
    within(&world, a, |tx| tx.put_object("k", [5])).expect("is free");
    assert_eq!(object(&world, "k"), Some((4, 5)));
    assert_eq!(keys(&world, "", 1), ["k", "old"]);
}

/// A power cut may take a deletion back that is not synced, and must not take it back once another segment has the key.
#[test]
fn a_deletion_is_synced_before_another_segment_gets_the_key() {
    let mut options = segments();
    options.world.durability = Durability::Balanced;
    let disk = Disk::new();
    let world = SegmentedWorld::create(dir(&disk), &[], &options).expect("an empty directory");
    let ids = register(&world);
    let [a, b] = [ids.at(0, 0, 0), ids.at(16, 0, 0)];
    for at in [a, b] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    within(&world, a, |tx| tx.put_object("k", [1])).expect("puts");
    put(&world, 1, ids.cow_in(a));
    let is_synced = || {
        let with = world.segments().with(segment(&ids, 0), |world| Ok(world.metrics()));
        let metrics = with.expect("is open");
        metrics.last_synced == metrics.last_commit
    };
    let delete = |tx: &mut SegmentTransaction<'_, '_>| {
        tx.delete_object("k")?;
        tx.delete_entity(uuid(1));
        Ok(())
    };
    within(&world, a, delete).expect("deletes");
    assert!(!is_synced(), "or this shows nothing");
    within(&world, b, |tx| tx.put_object("k", [2])).expect("is free");
    assert!(is_synced());
    within(&world, a, |tx| tx.put_object("other", [1])).expect("puts");
    put(&world, 2, ids.cow_in(a));
    within(&world, a, |tx| {
        tx.delete_entity(uuid(2));
        Ok(())
    })
    .expect("deletes");
    assert!(!is_synced(), "or this shows nothing");
    put(&world, 2, ids.cow_in(b));
    assert!(is_synced());
}

/// A root that was put back from a copy does not know what was put since.
#[test]
fn what_the_root_does_not_know_is_found_and_accepted() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let [a, b] = [ids.at(0, 0, 0), ids.at(16, 0, 0)];
    for at in [a, b] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    within(&world, a, |tx| tx.put_object("gone", [1])).expect("puts");
    within(&world, a, |tx| {
        tx.delete_object("gone")?;
        tx.put_object("kept", [1])
    })
    .expect("puts");
    // By hand, as if the root lacked it.
    let by_hand = |segment, n: u8| {
        let put = |world: &World| {
            world.transaction(|tx| {
                tx.put_object("twice", [n])?;
                tx.put_record(id(u128::from(n)), record(&ids, 256 * (i64::from(n) - 1), n));
                tx.set_property(property("game:twice"), Some(vec![n]));
                Ok::<_, Error>(())
            })
        };
        world.segments().with(segment, |world| put(world).map(drop)).expect("puts");
    };
    by_hand(segment(&ids, 0), 1);
    by_hand(segment(&ids, 1), 2);
    assert_eq!(object(&world, "twice"), None, "it is not found");
    world.close().expect("closes");
    drop(world);
    let verify = || {
        let report = SegmentedWorld::verify(dir(&disk), VerifyDepth::Full, &options(), &[], |_| {});
        report.expect("verifies").findings
    };
    let findings = verify();
    let expected = |what: String, x: i64| {
        format!(
            "{what} is in segment {x} 0 0 of dimension 0, and the root names no segment; take what is there by `cg segments accept`"
        )
    };
    let both = [0, 1].map(|x| {
        [
            expected("property `game:twice`".into(), x),
            expected("object `twice`".into(), x),
            expected(format!("record {}", id(x as u128 + 1)), x),
        ]
    });
    assert_eq!(findings, both.concat());

    let world = open(&disk);
    let accepted = world.segments().accept().expect("accepts");
    let [twice, of_property] = [
        ConflictKey::Object(ObjectKey::new("twice").expect("a key")),
        ConflictKey::Property("game:twice".into()),
    ];
    assert_eq!(accepted.doubled, [of_property.clone(), twice.clone()]);
    let records = [1, 2].map(|n| ConflictKey::Record(id(n)));
    assert_eq!(accepted.moved, [vec![of_property, twice], records.to_vec()].concat());
    assert_eq!(accepted.gone, [], "the version of a deleted object counts on");
    assert_eq!((object(&world, "twice"), object(&world, "kept")), (Some((0, 1)), Some((0, 1))));
    within(&world, b, |tx| tx.put_object("gone", [2])).expect("is free");
    assert_eq!(object(&world, "gone"), Some((1, 2)));
    world.close().expect("closes");
    drop(world);
    assert_eq!(verify(), Vec::<String>::new());
}
