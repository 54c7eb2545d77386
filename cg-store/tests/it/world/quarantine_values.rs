//! Damaged objects and records that are quarantined, and records whose rows do not agree.

use super::records::{id, record};
use super::*;
use cg_format::record::Record;
use cg_format::{RecordId, Space, key};
use cg_store::layer::values::{self, ValueKind};
use cg_store::records::RecordQuery;

over_both_engines! {
    an_object_that_is_set_aside_is_kept_and_its_key_is_free
    a_record_that_is_set_aside_is_kept_and_its_id_is_free
    a_record_whose_place_was_lost_is_found_again
    of_a_record_in_two_leaves_the_later_one_stays
    an_older_record_that_stays_is_a_change
    a_place_without_its_record_goes
}

fn an_object_that_is_set_aside_is_kept_and_its_key_is_free(world: &World) {
    let objects = world.objects();
    objects.put("a", *b"one").expect("puts");
    objects.put("a", *b"two").expect("puts");
    objects.put("b", *b"other").expect("puts");
    plant(world, [(Space::Object, b"a".to_vec(), Some(plain(b"spoilt")))]);
    assert!(matches!(objects.put("a", *b"three"), Err(Error::Corrupt(_))));
    assert!(!world.quarantine().object("b").expect("a sound one stays"));
    assert!(!world.quarantine().object("c").expect("an absent one too"));
    assert!(matches!(world.quarantine().object(""), Err(Error::ObjectKey { len_bytes: 0 })));
    assert_eq!(world.quarantine().list().expect("lists"), []);
    let spoilt = world.transaction(|tx| {
        // Who has looked at it is told.
        assert!(matches!(tx.object("a"), Err(Error::Corrupt(_))));
        std::thread::scope(|scope| scope.spawn(|| world.quarantine().object("a")).join().expect("no panic"))?;
        tx.put_object("b", *b"changed")?;
        Ok::<_, Error>(())
    });
    assert!(matches!(spoilt, Err(Error::Conflict { .. })), "{spoilt:?}");
    assert!(!world.quarantine().object("a").expect("once is enough"));
    let quarantined = world.quarantine().list().expect("lists");
    let [copy] = &quarantined[..] else { panic!("one copy: {quarantined:?}") };
    assert_eq!((copy.space, &copy.key[..], copy.commit), (Space::Object, &b"a"[..], world.last_commit()));
    assert!(copy.bytes.ends_with(b"spoilt"));
    assert_eq!(objects.get("a").expect("is absent"), None);
    assert_eq!(objects.put("a", *b"four").expect("puts"), 0);
    assert_sound(world);
}

/// A record of two in one leaf, with the key of its row.
fn two_records(world: &World, ids: &Ids) -> (Record, Vec<u8>) {
    let here = record(ids.overworld, [1.0; 3], "sign", 1);
    put(world, 1, &here);
    put(world, 2, &here);
    let leaf = world.records().shape().leaf(ids.overworld, BlockPos::new(1, 1, 1));
    (here, key::record(&leaf, id(1)))
}

#[track_caller]
fn put(world: &World, n: u128, record: &Record) {
    let put = world.transaction(|tx| {
        tx.put_record(id(n), record.clone());
        Ok::<_, Error>(())
    });
    put.expect("puts");
}

/// How often a query over everything near the origin meets a record.
fn met(world: &World, ids: &Ids, id: RecordId) -> usize {
    let all = BlockBox::new(BlockPos::new(-999, -999, -999), BlockPos::new(999, 999, 999));
    let found = world.records().in_leaves(&RecordQuery::new(ids.overworld, all)).expect("reads");
    found.into_iter().filter(|(found, _)| *found == id).count()
}

fn a_record_that_is_set_aside_is_kept_and_its_id_is_free(world: &World) {
    let ids = Ids::register(world);
    let (here, row) = two_records(world, &ids);
    assert!(!world.quarantine().record(id(1)).expect("a sound one stays"));
    assert!(!world.quarantine().record(id(9)).expect("an absent one too"));
    plant(world, [(Space::Record, row.clone(), Some(plain(b"spoilt")))]);
    let refused = world.transaction(|tx| {
        tx.put_record(id(1), record(ids.overworld, [200.0; 3], "sign", 2));
        Ok::<_, Error>(())
    });
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    assert!(world.quarantine().record(id(1)).expect("quarantines"));
    assert!(!world.quarantine().record(id(1)).expect("once is enough"));
    let quarantined = world.quarantine().list().expect("lists");
    let copies: Vec<_> = quarantined.iter().map(|copy| (copy.space, copy.key.clone())).collect();
    let place = key::record_place(id(1)).to_vec();
    assert_eq!(copies, [(Space::Record, row), (Space::RecordPlace, place)]);
    assert_eq!(world.records().get(id(1)).expect("is absent"), None);
    assert_eq!(world.records().get(id(2)).expect("reads"), Some(here.clone()));
    assert_sound(world);
    put(world, 1, &here);
    assert_eq!(met(world, &ids, id(1)), 1);
    assert_sound(world);
}

fn a_record_whose_place_was_lost_is_found_again(world: &World) {
    let ids = Ids::register(world);
    let (here, _) = two_records(world, &ids);
    let place = key::record_place(id(1)).to_vec();
    for lost in [None, Some(plain(b"spoilt"))] {
        let copies = world.quarantine().list().expect("lists").len() + usize::from(lost.is_some());
        plant(world, [(Space::RecordPlace, place.clone(), lost)]);
        assert_ne!(world.records().get(id(1)).ok(), Some(Some(here.clone())), "nobody finds it");
        assert!(world.quarantine().record(id(1)).expect("finds it"));
        assert_eq!(world.records().get(id(1)).expect("reads"), Some(here.clone()));
        assert_eq!(world.quarantine().list().expect("lists").len(), copies);
        assert_sound(world);
    }
    put(world, 1, &record(ids.overworld, [200.0; 3], "sign", 2));
    assert_eq!(met(world, &ids, id(1)), 1, "it is moved, not doubled");
}

fn of_a_record_in_two_leaves_the_later_one_stays(world: &World) {
    let ids = Ids::register(world);
    let (_, row) = two_records(world, &ids);
    plant(world, [(Space::RecordPlace, key::record_place(id(1)).to_vec(), None)]);
    let later = record(ids.overworld, [200.0; 3], "sign", 2);
    put(world, 1, &later);
    assert_eq!(met(world, &ids, id(1)), 2, "nobody knew of the first");
    assert!(world.quarantine().record(id(1)).expect("puts it right"));
    assert_eq!(met(world, &ids, id(1)), 1);
    assert_eq!(world.records().get(id(1)).expect("reads"), Some(later));
    let quarantined = world.quarantine().list().expect("lists");
    let [copy] = &quarantined[..] else { panic!("one copy: {quarantined:?}") };
    assert_eq!((copy.space, &copy.key), (Space::Record, &row));
    assert_sound(world);
}

/// Who knows the later one, by its commit, must hear that it is another one now.
fn an_older_record_that_stays_is_a_change(world: &World) {
    let ids = Ids::register(world);
    let (here, _) = two_records(world, &ids);
    plant(world, [(Space::RecordPlace, key::record_place(id(1)).to_vec(), None)]);
    put(world, 1, &record(ids.overworld, [200.0; 3], "sign", 2));
    let leaf = world.records().shape().leaf(ids.overworld, BlockPos::new(200, 200, 200));
    plant(world, [(Space::Record, key::record(&leaf, id(1)), Some(plain(b"spoilt")))]);
    assert!(world.quarantine().record(id(1)).expect("puts it right"));
    assert_eq!(world.records().get(id(1)).expect("reads"), Some(here));
    let found = world.read_view(|view| {
        let found = values::values(view, ValueKind::Records, &[id(1).to_bytes()]);
        Ok::<_, Error>(found.into_iter().next().expect("one was asked for")?.expect("is stored").0)
    });
    assert_eq!(found.expect("reads"), world.last_commit());
    assert_sound(world);
}

fn a_place_without_its_record_goes(world: &World) {
    let ids = Ids::register(world);
    let (_, row) = two_records(world, &ids);
    plant(world, [(Space::Record, row, None)]);
    assert!(matches!(world.records().get(id(1)), Err(Error::Corrupt(_))));
    assert!(world.quarantine().record(id(1)).expect("quarantines"));
    assert_eq!(world.records().get(id(1)).expect("is absent"), None);
    assert_sound(world);
}

/// Bytes that nothing compresses.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..700).map(|_| next()).collect()
}

#[test]
fn deletions_are_forgotten_past_a_damaged_block() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let objects = world.objects();
    for end in ["a", "z"] {
        objects.put(end, *b"one").expect("puts");
        objects.put(end, *b"two").expect("puts");
        assert!(objects.delete(end).expect("deletes"));
    }
    for n in 0..1000 {
        objects.put(format!("n{n:04}"), noise(n)).expect("puts");
    }
    world.engine().flush().expect("writes a file");
    world.close().expect("closes");
    drop((objects, world));
    let files = disk.files();
    let largest = files.iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "sst"));
    let (path, bytes) = largest.max_by_key(|(_, bytes)| bytes.len()).expect("there are files");
    assert!(bytes.len() > 700 * 1000, "the objects are in one file of {} bytes", bytes.len());
    let mut bytes = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(path, bytes).expect("writes");

    let world = disk.open(&[]);
    world.tiers().purge_tombstones_before(world.last_commit()).expect("forgets what it can read");
    for end in ["a", "z"] {
        assert_eq!(world.objects().put(end, *b"three").expect("puts"), 0, "its version is forgotten");
    }
    // Last, as a snapshot that is given back has RocksDB compact old files, which ends its writing at a damaged block.
    let mut damaged = 0;
    let shown = world.objects().for_each("n", |object| {
        damaged += usize::from(object.is_err());
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert_eq!((shown.expect("goes on after it"), damaged), (None, 1));
}
