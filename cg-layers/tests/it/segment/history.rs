//! Segments and roots that were put back from copies.

use std::fs;
use std::path::{Path, PathBuf};

use cg_layers::AcceptedSegments;
use cg_store::error::ConflictKey;
use expect_test::{Expect, expect};

use super::*;
use crate::fixture::copy_dir;

/// A cow with its purse that walked from one segment to another, and what the directory was before that.
struct Walked {
    disk: Disk,
    before: Disk,
    ids: Ids,
}

const COW: u128 = 1;

/// Transfers that a power cut does not take back.
fn synced() -> SegmentOptions {
    SegmentOptions { world: WorldOptions { durability: Durability::Safe, ..options() }, ..segments() }
}

fn open(disk: &Disk) -> SegmentedWorld<OnDisk> {
    SegmentedWorld::open(dir(disk), &[], &synced()).expect("opens")
}

impl Walked {
    fn new() -> Self {
        let disk = Disk::new();
        let world = SegmentedWorld::create(dir(&disk), &[], &synced()).expect("an empty directory");
        let ids = register(&world);
        for x in [0, 16] {
            save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
        }
        put(&world, COW, ids.cow_in(ids.at(0, 0, 0)));
        world.close().expect("closes");
        drop(world);
        let before = Disk::new();
        copy_dir(&dir(&disk), &dir(&before));
        let world = open(&disk);
        world.transfer_entities([(uuid(COW), ids.cow_in(ids.at(16, 0, 0)))]).expect("crosses");
        world.close().expect("closes");
        drop(world);
        Self { disk, before, ids }
    }

    /// Puts a world back as it was before the walk.
    fn put_back(&self, part: impl AsRef<Path>) {
        let (to, from) = (dir(&self.disk).join(&part), dir(&self.before).join(&part));
        fs::remove_dir_all(&to).expect("removes");
        copy_dir(&from, &to);
    }
}

/// The segments that have the cow, by their x.
fn homes(world: &SegmentedWorld<OnDisk>) -> Vec<i64> {
    let has = |segment: &SegmentPos| {
        world.segments().with(*segment, |world| world.entity(uuid(COW))).expect("reads").is_some()
    };
    world.segments().list().into_iter().filter(has).map(|segment| segment.x).collect()
}

fn segment(x: i64) -> PathBuf {
    Path::new("segments").join(format!("0.{x}.0.0"))
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, expected: Expect) {
    let error = result.expect_err("is refused");
    let Some(SegmentError::Replaced { commit, .. }) = error.layer() else { panic!("{error}") };
    expected.assert_eq(&error.to_string().replace(&format!("commit {commit} "), "commit N "));
}

#[test]
fn a_segment_that_is_put_back_is_refused_and_can_be_accepted() {
    let walked = Walked::new();
    walked.put_back(segment(0));
    let world = open(&walked.disk);
    refused(
        world.load(walked.ids.at(0, 0, 0)),
        expect![
            "segment 0 0 0 of dimension 0 and its root are not of one history: the segment does not have the commit N of a transfer that the other knows, so it was put back from a copy; put root and segments back from one backup, or accept what is there by `cg segments accept`"
        ],
    );
    assert!(world.load(walked.ids.at(16, 0, 0)).expect("is whole").is_some());
    drop(world);
    let report = SegmentedWorld::<OnDisk>::verify(
        dir(&walked.disk),
        cg_store::verify::VerifyDepth::Full,
        &options(),
        &[],
        |_| (),
    )
    .expect("verifies");
    let refusals: Vec<_> = report.segments.into_values().filter_map(Result::err).collect();
    assert_eq!(refusals.len(), 1);
    assert!(matches!(refusals[0].layer(), Some(SegmentError::Replaced { .. })), "{}", refusals[0]);

    let hashed =
        SegmentedWorld::content_hash(dir(&walked.disk), cg_store::view::Area::World, &options(), |_| {
            Ok::<_, Error>(())
        });
    let error = hashed.expect_err("is refused");
    assert!(matches!(error.layer(), Some(SegmentError::Replaced { .. })), "{error}");

    let world = open(&walked.disk);
    let accepted = world.segments().accept().expect("accepts");
    assert_eq!(
        accepted,
        AcceptedSegments { doubled: vec![ConflictKey::Entity(uuid(COW))], ..AcceptedSegments::default() }
    );
    assert_eq!(homes(&world), [1], "it is where the root says, once");
    let chunk = world.load(walked.ids.at(0, 0, 0)).expect("loads").expect("is stored");
    assert_eq!(chunk.entities(), []);
    world.close().expect("closes");
    drop(world);
    let world = open(&walked.disk);
    assert_eq!(homes(&world), [1]);
    assert_eq!(world.segments().accept().expect("accepts"), AcceptedSegments::default());
}

#[test]
fn a_segment_that_lost_what_arrived_is_refused_and_can_be_accepted() {
    let walked = Walked::new();
    walked.put_back(segment(1));
    let world = open(&walked.disk);
    refused(
        world.load(walked.ids.at(16, 0, 0)),
        expect![
            "segment 1 0 0 of dimension 0 and its root are not of one history: the segment does not have the commit N of a transfer that the other knows, so it was put back from a copy; put root and segments back from one backup, or accept what is there by `cg segments accept`"
        ],
    );
    let accepted = world.segments().accept().expect("accepts");
    assert_eq!(
        accepted,
        AcceptedSegments { gone: vec![ConflictKey::Entity(uuid(COW))], ..AcceptedSegments::default() }
    );
    assert_eq!(homes(&world), [0_i64; 0]);
    put(&world, COW, walked.ids.cow_in(walked.ids.at(0, 0, 0)));
}

#[test]
fn a_root_that_is_put_back_is_refused_and_can_be_accepted() {
    let walked = Walked::new();
    walked.put_back("root");
    let world = open(&walked.disk);
    refused(
        world.load(walked.ids.at(0, 0, 0)),
        expect![
            "segment 0 0 0 of dimension 0 and its root are not of one history: the root does not have the commit N of a transfer that the other knows, so it was put back from a copy; put root and segments back from one backup, or accept what is there by `cg segments accept`"
        ],
    );
    refused(
        world.load(walked.ids.at(16, 0, 0)),
        expect![
            "segment 1 0 0 of dimension 0 and its root are not of one history: the root does not have the commit N of a transfer that the other knows, so it was put back from a copy; put root and segments back from one backup, or accept what is there by `cg segments accept`"
        ],
    );
    let accepted = world.segments().accept().expect("accepts");
    assert_eq!(
        accepted,
        AcceptedSegments { moved: vec![ConflictKey::Entity(uuid(COW))], ..AcceptedSegments::default() }
    );
    assert_eq!(homes(&world), [1]);
    world.transfer_entities([(uuid(COW), walked.ids.cow_in(walked.ids.at(0, 0, 0)))]).expect("crosses");
}

#[test]
fn a_world_that_is_put_back_whole_is_taken_and_goes_on() {
    let walked = Walked::new();
    fs::remove_dir_all(dir(&walked.disk)).expect("removes");
    copy_dir(&dir(&walked.before), &dir(&walked.disk));
    for _ in 0..2 {
        let world = open(&walked.disk);
        world.transfer_entities([(uuid(COW), walked.ids.cow_in(walked.ids.at(16, 0, 0)))]).expect("crosses");
        assert_eq!(homes(&world), [1]);
        world.transfer_entities([(uuid(COW), walked.ids.cow_in(walked.ids.at(0, 0, 0)))]).expect("crosses");
        assert_eq!(homes(&world), [0]);
        world.close().expect("closes");
    }
}
