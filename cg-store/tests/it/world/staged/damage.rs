//! What a world with an intent says to whoever opens it, damaged or not.

use super::*;
use cg_format::staged::{Intent, PartWriter, StagedOp};
use cg_format::{Space, key};
use cg_store::engine::ReadView as _;
use expect_test::{Expect, expect};

/// A damaged block that no scan gets past lies where the intent does, and hides it from nobody who asks for it by its key.
#[test]
fn damage_before_an_intent_hides_no_commit() {
    let whole = World::temporary(&[], &limited(1 << 20)).expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    for commits in few() {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open =
            || World::over(below.clone(), uuid::Uuid::from_u128(5), |_| Ok(()), &limited(SMALL.batch_bytes));
        let world = open().expect("a world");
        let ids = begin(&world);
        fuse.set(commits);
        let changed = change(&world, &ids, 7, Durability::Process);
        assert!(changed.is_err(), "no commit is cut off behind its intent");
        drop((changed, world));
        fuse.set(i64::MAX);
        let intent = key::intent(below.last_commit().get());
        if below.get(Space::Intent, &intent).expect("reads").is_some() {
            below.spoil(Family::Index, intent);
            let world = open().expect("opens");
            assert_eq!(world.content_hash().expect("hashes"), whole.content_hash().expect("hashes"));
            assert_sound(&world);
            return;
        }
    }
}

/// A closed world that holds the intent of a commit and its two parts, and the rows of the object that they put.
fn with_intent(disk: &Disk) -> u64 {
    let world = disk.create(&[]);
    let seq = world.last_commit();
    drop(world);
    let seal = |row: &[u8], bytes: Vec<u8>| {
        Draft::plain(Codec::None, 0, move |out| out.extend(bytes)).seal(Space::Intent, row, seq)
    };
    let raw = disk.raw();
    let mut intent = Intent::default();
    for part in 0..2 {
        let mut writer = PartWriter::new();
        let object = cg_format::object::ObjectView { version: 0, bytes: Some(b"staged") };
        let name = format!("object/{part}");
        let row =
            Draft::plain(Codec::None, 0, |out| object.encode(out)).seal(Space::Object, name.as_bytes(), seq);
        writer.add(&StagedOp::Put { space: Space::Object, key: name.as_bytes(), row: &row });
        let bytes = writer.into_bytes();
        intent.add(&bytes);
        raw.put(Family::Index, key::staged(seq, part), &seal(&key::staged(seq, part), bytes));
    }
    let mut bytes = Vec::new();
    intent.encode(&mut bytes);
    raw.put(Family::Index, key::intent(seq), &seal(&key::intent(seq), bytes));
    seq
}

#[track_caller]
fn refused(disk: &Disk, open: impl FnOnce() -> Result<World<RocksEngine>, Error>, expected: Expect) {
    let before = disk.files();
    let error = open().expect_err("is refused");
    assert!(matches!(error, Error::Open(_)), "{error:?}");
    expected.assert_eq(&error.to_string());
    // An open leaves a line in RocksDB's own log.
    let data = |files: BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<_, _> {
        files
            .into_iter()
            .filter(|(path, _)| {
                !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LOG"))
            })
            .collect()
    };
    assert!(data(before) == data(disk.files()), "what is refused changes nothing");
}

#[test]
fn a_world_with_an_intent_is_carried_out_by_who_may_write_and_refused_to_who_may_not() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    refused(
        &disk,
        || World::open_read_only(disk.path(), &options()),
        expect![
            "commit 2 is not carried out to its end, and nothing may be written; open the world for writing once"
        ],
    );
    let world = disk.open(&[]);
    assert_eq!(world.last_commit(), seq);
    let listed = world.objects().list("object/", None, 9).expect("lists");
    assert_eq!(listed.entries.len(), 2);
    assert_nothing_is_left(&world);
    assert_sound(&world);
}

#[test]
fn damage_behind_an_intent_is_told_by_its_row() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    let part = key::staged(seq, 1);
    let row = disk.raw().get(Family::Index, part);
    disk.raw().flip(Family::Index, part, 60);
    refused(
        &disk,
        || World::open(disk.path(), &[], &options()),
        expect![
            "a commit is to be carried out, and row 04000000000000000200000001 of index is damaged: frame: checksum is 0x11bacab1, the bytes give 0xd5c4fff0: damaged, or stored under a wrong key (at byte 4); restore a checkpoint"
        ],
    );
    disk.raw().delete(Family::Index, part);
    refused(
        &disk,
        || World::open(disk.path(), &[], &options()),
        expect![
            "a commit is to be carried out, and row 04000000000000000200000001 of index is damaged: part 1 of 2 of commit 2 is missing; restore a checkpoint"
        ],
    );
    disk.raw().put(Family::Index, part, &row);
    disk.raw().flip(Family::Index, key::intent(seq), 30);
    refused(
        &disk,
        || World::open_read_only(disk.path(), &options()),
        expect![
            "a commit is to be carried out, and row 040000000000000002 of index is damaged: frame: checksum is 0x2ba6e2e1, the bytes give 0xdecd9fd7: damaged, or stored under a wrong key (at byte 4); restore a checkpoint"
        ],
    );
    disk.raw().flip(Family::Index, key::intent(seq), 30);
    assert_sound(&disk.open(&[]));
}

#[test]
fn parts_without_an_intent_are_no_damage_and_are_gone_when_the_world_was_open_for_writing() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    disk.raw().delete(Family::Index, key::intent(seq));
    disk.raw().flip(Family::Index, key::staged(seq, 1), 60);
    let world = World::open_read_only(disk.path(), &options()).expect("nothing is to be done");
    assert_sound(&world);
    drop(world);
    let world = disk.open(&[]);
    assert_nothing_is_left(&world);
    assert!(world.objects().list("object/", None, 9).expect("lists").entries.is_empty());
}

#[test]
fn an_intent_in_an_open_world_is_a_finding() {
    let world = in_memory();
    let mut bytes = Vec::new();
    Intent::default().encode(&mut bytes);
    plant(&world, [(Space::Intent, key::intent(9).to_vec(), Some(plain(&bytes)))]);
    assert_eq!(
        findings(&world),
        ["index: commit 9 is not carried out to its end; close the world and open it for writing"]
    );
}
