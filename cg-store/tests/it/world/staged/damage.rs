//! Messages to the opener of a world with an intent, damaged or not.

use super::*;
use cg_format::staged::{Intent, PartWriter, StagedOp};
use cg_format::{Space, key};
use cg_store::OpenError;
use cg_store::engine::Readable as _;
use cg_store::quarantine::SalvagedCommit;
use expect_test::{Expect, expect};

/// A damaged block that no scan gets past lies where the intent does, and hides it from nobody who asks for it by its key.
#[test]
fn damage_before_an_intent_hides_no_commit() {
    let whole = World::builder().options(&limited(1 << 20)).in_memory().expect("a world in memory");
    change(&whole, &begin(&whole), 7, Durability::Process).expect("commits");
    for commits in few() {
        let fuse = Fuse::new();
        let below = Surviving::new(&fuse);
        let open = || World::builder().options(&limited(SMALL.batch_bytes)).over(below.clone());
        let world = open().expect("a world");
        let ids = begin(&world);
        fuse.set(commits);
        let changed = change(&world, &ids, 7, Durability::Process);
        assert!(changed.is_err(), "no commit is cut off after its intent");
        drop((changed, world));
        fuse.set(i64::MAX);
        let intent = key::intent(below.last_commit().get());
        if below.get(Space::Intent, &intent).expect("reads").is_some() {
            below.spoil(Family::Index, intent);
            let world = open().expect("opens");
            assert_eq!(
                world.content_hash(cg_store::view::Area::World).expect("hashes"),
                whole.content_hash(cg_store::view::Area::World).expect("hashes")
            );
            assert_sound(&world);
            return;
        }
    }
}

/// A closed world that holds the intent of a commit and its two parts, and the rows of the object that they put.
fn with_intent(disk: &Disk) -> u64 {
    let world = disk.create(&[]);
    let seq = world.last_commit().get();
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
fn refused(disk: &Disk, open: impl FnOnce() -> Result<World, Error>, expected: Expect) {
    let before = disk.files();
    let error = open().expect_err("is refused");
    assert!(matches!(error, Error::Open(_)), "{error:?}");
    expected.assert_eq(&error.to_string());
    assert!(before == disk.files(), "what is refused changes nothing");
}

#[test]
fn a_world_with_an_intent_is_carried_out_by_who_may_write_and_refused_to_who_may_not() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    refused(
        &disk,
        || World::builder().options(&options()).open_read_only(disk.path()),
        expect![
            "commit 2 is not rolled forward to its end, and nothing may be written; open the world for writing once"
        ],
    );
    let world = disk.open(&[]);
    assert_eq!(world.last_commit().get(), seq);
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
        || World::builder().options(&options()).open(disk.path()),
        expect![
            "a commit is to be rolled forward, and row 04000000000000000200000001 of index is damaged: frame: checksum is 0x11bacab1, the bytes give 0xd5c4fff0: damaged, or stored under a wrong key (at byte 4); restore a checkpoint, or set the damaged part of the commit aside"
        ],
    );
    disk.raw().delete(Family::Index, part);
    refused(
        &disk,
        || World::builder().options(&options()).open(disk.path()),
        expect![
            "a commit is to be rolled forward, and row 04000000000000000200000001 of index is damaged: part 1 of 2 of commit 2 is missing; restore a checkpoint, or set the damaged part of the commit aside"
        ],
    );
    disk.raw().put(Family::Index, part, &row);
    disk.raw().flip(Family::Index, key::intent(seq), 30);
    refused(
        &disk,
        || World::builder().options(&options()).open_read_only(disk.path()),
        expect![
            "a commit is to be rolled forward, and row 040000000000000002 of index is damaged: frame: checksum is 0x2ba6e2e1, the bytes give 0xdecd9fd7: damaged, or stored under a wrong key (at byte 4); restore a checkpoint, or set the damaged part of the commit aside"
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
    let world =
        World::builder().options(&options()).open_read_only(disk.path()).expect("nothing is to be done");
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
        ["index: commit 9 is not rolled forward to its end; close the world and open it for writing"]
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn set_aside(disk: &Disk) -> Option<SalvagedCommit> {
    World::builder().options(&options()).salvage_commit(disk.path()).expect("the files are sound")
}

/// The remains of [`with_intent`] after damage to one row: its objects, the reports, and the quarantined rows.
#[track_caller]
fn left(damage: impl FnOnce(&Disk, u64), expected: Expect) {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    damage(&disk, seq);
    let error = World::builder().options(&options()).open(disk.path()).expect_err("is refused");
    assert!(matches!(error, Error::Open(OpenError::DamagedCommit { .. })), "{error:?}");
    let SalvagedCommit { rolled_forward_parts, lost } = set_aside(&disk).expect("is damaged");
    assert_eq!(set_aside(&disk), None, "it was done");
    let as_stored = WorldOptions { opacity: cg_store::opacity::Keep::AsStored, ..options() };
    let world = World::builder().options(&as_stored).open(disk.path()).expect("opens");
    assert_eq!(world.last_commit().get(), seq);
    assert!(!world.opacity().is_kept(), "a chunk may be there without its patch");
    assert_nothing_is_left(&world);
    assert_sound(&world);
    let listed = world.objects().list("object/", None, 9).expect("lists").entries;
    let keys: Vec<_> = listed.iter().map(|entry| entry.key.to_string()).collect();
    let kept = world.quarantine().list().expect("lists");
    let kept = kept
        .iter()
        .map(|copy| format!("{:?} of commit {}, {} bytes", copy.space, copy.commit, copy.bytes.len()));
    let kept: Vec<_> = kept.collect();
    let lost: Vec<_> = lost.iter().map(|(row, what)| format!("{}: {what}", hex(row))).collect();
    let kept = kept.join(", ");
    let (keys, lost) = (keys.join(", "), lost.join("; "));
    expected.assert_eq(&format!("{rolled_forward_parts} rolled forward: {keys}; lost {lost}; kept {kept}"));
}

#[test]
fn what_is_sound_of_a_damaged_commit_is_carried_out_and_the_rest_is_kept() {
    left(
        |disk, seq| disk.raw().flip(Family::Index, key::staged(seq, 1), 60),
        expect![
            "1 rolled forward: object/0; lost 04000000000000000200000001: frame: checksum is 0x11bacab1, the bytes give 0xd5c4fff0: damaged, or stored under a wrong key (at byte 4); kept Intent of commit 2, 90 bytes"
        ],
    );
    left(
        |disk, seq| disk.raw().delete(Family::Index, key::staged(seq, 0)),
        expect![
            "1 rolled forward: object/1; lost 04000000000000000200000000: it is missing; kept Intent of commit 2, 0 bytes"
        ],
    );
    left(
        |disk, seq| disk.raw().flip(Family::Index, key::intent(seq), 30),
        expect![
            "2 rolled forward: object/0, object/1; lost 040000000000000002: frame: checksum is 0x2ba6e2e1, the bytes give 0xdecd9fd7: damaged, or stored under a wrong key (at byte 4); kept Intent of commit 2, 41 bytes"
        ],
    );
    // Sound parts that are not those that the intent sums: the last one is of another writer.
    left(
        |disk, seq| {
            let row = key::staged(seq, 1);
            let bytes = PartWriter::new().into_bytes();
            let draft = Draft::plain(Codec::None, 0, move |out| out.extend(bytes));
            disk.raw().put(Family::Index, row, &draft.seal(Space::Intent, &row, seq));
        },
        expect![
            "2 rolled forward: object/0; lost 040000000000000002: its parts are sound and not those that it sums; kept Intent of commit 2, 41 bytes"
        ],
    );
}

/// A part after the last that counts, as a commit leaves it that was cut off under the same number.
fn plant_stranger(disk: &Disk, seq: u64) {
    let object = cg_format::object::ObjectView { version: 0, bytes: Some(b"never was") };
    let row = Draft::plain(Codec::None, 0, |out| object.encode(out)).seal(Space::Object, b"object/2", seq);
    let mut writer = PartWriter::new();
    writer.add(&StagedOp::Put { space: Space::Object, key: b"object/2", row: &row });
    let part = key::staged(seq, 2);
    let draft = Draft::plain(Codec::None, 0, |out| out.extend(writer.into_bytes()));
    disk.raw().put(Family::Index, part, &draft.seal(Space::Intent, &part, seq));
}

#[test]
fn parts_that_an_intent_does_not_count_are_never_carried_out() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    plant_stranger(&disk, seq);
    assert_eq!(set_aside(&disk), None, "what counts is sound");
    disk.raw().flip(Family::Index, key::staged(seq, 1), 60);
    let SalvagedCommit { rolled_forward_parts, lost } = set_aside(&disk).expect("is damaged");
    assert_eq!((rolled_forward_parts, lost.len()), (1, 1));
    let world = disk.open(&[]);
    let listed = world.objects().list("object/", None, 9).expect("lists").entries;
    assert_eq!(listed.iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>(), ["object/0"]);
    assert_nothing_is_left(&world);
}

/// Opening a world whose parts cannot be listed issues their numbers again.
#[test]
fn parts_behind_damage_that_never_counted_are_gone_once_the_world_was_open_for_writing() {
    let fuse = Fuse::new();
    let below = Surviving::new(&fuse);
    let open = || World::builder().options(&limited(SMALL.batch_bytes)).over(below.clone());
    let world = open().expect("a world");
    let ids = begin(&world);
    let next = world.last_commit().get() + 1;
    fuse.set(3);
    change(&world, &ids, 7, Durability::Process).expect_err("is cut off before its intent");
    drop(world);
    fuse.set(i64::MAX);
    assert!(below.get(Space::Intent, &key::staged(next, 1)).expect("reads").is_some(), "parts are there");
    below.spoil(Family::Index, key::staged(next, 0));
    drop(open().expect("opens"));
    for part in 0..4 {
        assert!(below.get(Space::Intent, &key::staged(next, part)).expect("reads").is_none(), "{part}");
    }
}

#[test]
fn a_commit_of_a_newer_release_is_no_damage() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    let row = key::staged(seq, 1);
    let draft = Draft::plain(Codec::None, 0, |out| out.push(2));
    disk.raw().put(Family::Index, row, &draft.seal(Space::Intent, &row, seq));
    let error = World::builder().options(&options()).salvage_commit(disk.path()).expect_err("is refused");
    expect!["index row 04000000000000000200000001 is damaged: intent: part version is 2, and this release reads up to 1; use a newer release (at byte 0)"].assert_eq(&error.to_string());
    assert_eq!(disk.raw().get(Family::Index, row).last(), Some(&2));
}

#[test]
fn nothing_is_set_aside_of_a_commit_that_can_be_carried_out() {
    let disk = Disk::new();
    let seq = with_intent(&disk);
    assert_eq!(set_aside(&disk), None);
    // Parts that never counted are not its business, damaged or not.
    disk.raw().delete(Family::Index, key::intent(seq));
    disk.raw().flip(Family::Index, key::staged(seq, 1), 60);
    assert_eq!(set_aside(&disk), None);
}
