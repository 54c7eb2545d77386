//! Compaction of several segments within budgets.

use std::time::Duration;

use cg_store::tiers::CompactReport;

use super::values::{object, within};
use super::*;

/// Three segments, each with an object that was overwritten in another file.
fn overwritten() -> (Disk, SegmentedWorld<OnDisk>, [ChunkAt; 3]) {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let places = [0, 16, 32].map(|x| ids.at(x, 0, 0));
    world.close().expect("closes");
    drop(world);
    for round in 1..=3_u8 {
        let world = open(&disk);
        for (n, at) in (0_u32..).zip(places) {
            let mut state = u32::from(round) * 3 + n;
            let mut bytes: Vec<u8> = (0..100_000)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            bytes[0] = round;
            within(&world, at, |tx| tx.put_object(format!("k{n}"), bytes)).expect("puts");
        }
        world.close().expect("closes");
    }
    let world = open(&disk);
    (disk, world, places)
}

fn has_all(world: &SegmentedWorld<OnDisk>) {
    assert_eq!(["k0", "k1", "k2"].map(|key| object(world, key)), [Some((2, 3)); 3]);
}

/// Runs a compaction step by step; returns the segments of the steps, in their order, and what it says.
fn run(
    world: &SegmentedWorld<OnDisk>,
    segments: impl IntoIterator<Item = SegmentPos>,
) -> (Vec<Option<i64>>, CompactReport) {
    let mut compaction = world.segments().compaction(segments);
    let mut steps = vec![compaction.segment().map(|segment| segment.x)];
    while compaction.run(Duration::ZERO).expect("compacts") {
        steps.push(compaction.segment().map(|segment| segment.x));
        assert!(world.segments().open_count() <= 2);
    }
    steps.dedup();
    (steps, compaction.report())
}

#[test]
fn all_segments_and_the_root_give_bytes_back_within_budgets() {
    let (_disk, world, places) = overwritten();
    let (steps, report) = run(&world, world.segments().list());
    assert_eq!(steps, [Some(0), Some(1), Some(2), None], "one after the other, and the root");
    assert!(report.before_bytes > 900_000 && report.after_bytes < 400_000, "{report:?}");
    assert!(report.slices >= 3 && report.freed_bytes() > 500_000, "{report:?}");
    has_all(&world);
    // Little is left to be gained: what the opening of a segment wrote.
    let (_, again) = run(&world, world.segments().list());
    assert!(again.slices <= 4 && again.freed_bytes() < 20_000, "{again:?}");
    has_all(&world);
    assert!(world.load(places[0]).expect("loads").is_none());
}

#[test]
fn only_open_segments_are_compacted_if_asked() {
    let (_disk, world, places) = overwritten();
    assert_eq!(run(&world, world.segments().list_open()).0, [None], "none is open");
    world.load(places[1]).expect("opens its segment");
    let open = world.segments().list_open();
    assert_eq!(open, [world.segment_of(places[1])]);
    let (steps, report) = run(&world, open);
    assert_eq!(steps, [Some(1), None]);
    assert!((150_000..400_000).contains(&report.freed_bytes()), "of one: {report:?}");
    assert_eq!(world.segments().list_open(), [world.segment_of(places[1])], "no other was opened");
}

#[test]
fn a_segment_that_is_deleted_or_fails_does_not_stop_the_others() {
    let (disk, world, places) = overwritten();
    let segments = places.map(|at| world.segment_of(at));
    world.segments().delete(segments[0]).expect("deletes");
    let lost = dir(&disk).join("segments").join("0.1.0.0");
    std::fs::rename(&lost, dir(&disk).join("elsewhere")).expect("is closed");
    let mut compaction = world.segments().compaction(segments);
    let failed = compaction.run(Duration::MAX).expect_err("its files are gone");
    assert!(matches!(failed.layer(), Some(SegmentError::Lost { segment, .. }) if *segment == segments[1]));
    assert_eq!(compaction.segment(), Some(segments[2]));
    assert!(!compaction.run(Duration::MAX).expect("goes on"));
    assert!(compaction.report().freed_bytes() > 150_000, "{:?}", compaction.report());
}
