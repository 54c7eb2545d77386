//! Ticks over all open segments.

mod ahead;
mod interrupted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cg_format::Tier;
use cg_store::PrefetchOptions;
use cg_store::tiers::TickReport;
use cg_tiering::{GameTick, PlayerAt};

use super::transfer::Crashing;
use super::*;

const MINUTE: u64 = 60 * GameTick::PER_SECOND;
const NO_HURRY: Duration = Duration::from_secs(60);
/// Ends before anything has been done.
const NOTHING: Duration = Duration::from_nanos(1);

fn minute(minutes: u64) -> GameTick {
    GameTick::new(minutes * MINUTE)
}

fn open_at_once(max_open: usize) -> SegmentOptions {
    SegmentOptions { max_open, ..segments() }
}

fn begin(max_open: usize) -> (SegmentedWorld<InMemory>, Ids) {
    let world = SegmentedWorld::in_memory(&[], &open_at_once(max_open)).expect("a world");
    let ids = register(&world);
    (world, ids)
}

/// Ticks at a minute until nothing is left to do.
#[track_caller]
fn pass<H: SegmentHome>(world: &SegmentedWorld<H>, minutes: u64, players: &[PlayerAt]) -> TickReport {
    loop {
        let report = world.tick(minute(minutes), players, NO_HURRY).expect("ticks");
        if !report.work_left {
            return report;
        }
    }
}

/// The tier of a chunk, whose segment is opened for it.
#[track_caller]
fn tier<H: SegmentHome>(world: &SegmentedWorld<H>, at: ChunkAt) -> Tier {
    let tier_in = |world: &World| world.tiers().explain(at);
    let report = world.segments().with(world.segment_of(at), tier_in).expect("reads");
    report.expect("is stored").tier
}

/// How many turns each segment had, those of closed worlds included if the home keeps them.
fn turns<H: SegmentHome>(world: &SegmentedWorld<H>) -> BTreeMap<SegmentPos, u64> {
    let of = |segment| world.segments().with(segment, |world| Ok(world.metrics().ticks.count()));
    world.segments().list().into_iter().map(|segment| (segment, of(segment).expect("is there"))).collect()
}

fn player(ids: &Ids, x: i64, y: i64, z: i64) -> PlayerAt {
    PlayerAt { id: uuid(99), dimension: ids.overworld, block: BlockPos::new(x, y, z) }
}

#[test]
fn chunks_cool_in_the_minutes_of_a_plain_world() {
    let (world, ids) = begin(8);
    let plain = crate::fixture::in_memory();
    Ids::register(&plain);
    // Too far away to keep anything hot, and too near for distance to make it cold.
    let stands = player(&ids, 64, 64, 400);
    let places = [ids.at(0, 0, 0), ids.at(9, 0, 0), ids.at(16, 3, 0), ids.at(-1, -1, -2)];
    for (at, saved) in places.into_iter().zip([0, 3, 0, 7]) {
        world.tick(minute(saved), &[stands], NO_HURRY).expect("ticks");
        plain.tick(minute(saved), &[stands], NO_HURRY).expect("ticks");
        save(&world, at, filled(&plain, ids.stone));
        crate::fixture::save(&plain, [(at, filled(&plain, ids.stone))]);
    }
    let mut met = BTreeSet::new();
    let (mut moved, mut moved_plain) = ([0, 0], [0, 0]);
    for now in 8..60 {
        loop {
            let report = world.tick(minute(now), &[stands], NO_HURRY).expect("ticks");
            assert_eq!(report.now, minute(now));
            moved = [moved[0] + report.moves.warmed, moved[1] + report.moves.cooled];
            if !report.work_left {
                break;
            }
        }
        loop {
            let report = plain.tick(minute(now), &[stands], NO_HURRY).expect("ticks");
            moved_plain = [moved_plain[0] + report.moves.warmed, moved_plain[1] + report.moves.cooled];
            if !report.work_left {
                break;
            }
        }
        let tiers = places.map(|at| tier(&world, at));
        let as_plain = places.map(|at| plain.tiers().explain(at).expect("reads").expect("is stored").tier);
        assert_eq!(tiers, as_plain, "after {now} minutes");
        met.insert(tiers);
    }
    assert!([Tier::L0, Tier::L1].iter().all(|tier| met.iter().any(|tiers| tiers.contains(tier))), "{met:?}");
    assert_eq!(met.last(), Some(&[Tier::L2; 4]));
    assert_eq!(moved, moved_plain, "the report is the sum over the segments");
    assert!(moved[0] > 0 && moved[1] > 0, "{moved:?}");
}

#[test]
fn a_player_at_a_border_keeps_both_sides_hot() {
    let (world, ids) = begin(8);
    let (here, there, far) = (ids.at(15, 0, 0), ids.at(16, 0, 0), ids.at(15, 0, 200));
    let elsewhere = ChunkAt::new(ids.nether, here.pos);
    let stands = player(&ids, 15 * 16 + 8, 8, 8);
    pass(&world, 0, &[stands]);
    for at in [here, there, far, elsewhere] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    for now in 1..60 {
        pass(&world, now, &[stands]);
    }
    let tiers = [here, there, far, elsewhere].map(|at| tier(&world, at));
    assert_eq!(tiers, [Tier::L0, Tier::L0, Tier::L2, Tier::L2]);
    for now in 60..120 {
        pass(&world, now, &[]);
    }
    assert_eq!([here, there].map(|at| tier(&world, at)), [Tier::L2; 2], "once the player has gone");
}

/// A segment with hot chunks is closed for an hour because others are opened, and then opened again.
fn a_segment_that_was_closed_while_hot_cools<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) {
    // Too far away to keep anything hot, and too near for distance to make it cold.
    let stands = player(ids, 256, 0, 400);
    let (left, used) = (ids.at(12, 0, 0), ids.at(0, 0, 0));
    pass(world, 1000, &[stands]);
    for at in [left, used] {
        save(world, at, filled(world.root(), ids.stone));
    }
    pass(world, 1001, &[stands]);
    assert_eq!([left, used].map(|at| tier(world, at)), [Tier::L0; 2], "a new segment has the world's time");
    for x in [16, 32] {
        save(world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    assert_eq!(world.segments().open_count(), 2, "the first is closed");
    let mut moved = 0;
    for now in 1002..1062 {
        moved += pass(world, now, &[stands]).moves.moved();
    }
    assert!(moved >= 2, "what is open moves meanwhile");
    // A reader opens it before the next tick.
    assert!(world.load(used).expect("loads").is_some());
    assert_eq!([left, used].map(|at| tier(world, at)), [Tier::L0; 2], "as it was when it was closed");
    for now in [1062, 1065] {
        pass(world, now, &[stands]);
    }
    assert_eq!(tier(world, left), Tier::L2, "it was left alone for an hour");
    assert_eq!(tier(world, used), Tier::L0, "and this was just read");
    for now in 1066..1120 {
        assert!(world.segments().with(segment(ids, 0), |_| Ok(())).is_ok());
        pass(world, now, &[stands]);
    }
    assert_eq!(tier(world, used), Tier::L2);
}

#[test]
fn a_segment_that_was_closed_while_hot_cools_in_memory() {
    let (world, ids) = in_memory();
    a_segment_that_was_closed_while_hot_cools(&world, &ids);
}

#[test]
fn a_segment_that_was_closed_while_hot_cools_on_disk() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    a_segment_that_was_closed_while_hot_cools(&world, &ids);
}

#[test]
fn segments_take_turns_however_small_the_budget() {
    let (world, ids) = begin(64);
    let places: Vec<_> = (0..50).map(|x| ids.at(16 * x, 0, 0)).collect();
    for at in &places {
        save(&world, *at, filled(world.root(), ids.stone));
    }
    for round in 1..4 {
        for nth in 1..=places.len() {
            let report = world.tick(minute(0), &[], NOTHING).expect("ticks");
            assert!(report.work_left, "others had no turn");
            let turns: Vec<_> = turns(&world).into_values().collect();
            let expected = [vec![round; nth], vec![round - 1; places.len() - nth]].concat();
            assert_eq!(turns, expected, "one more in each tick, and no other before all had one");
        }
    }
    assert!(world.tick(minute(0), &[], Duration::ZERO).expect("ticks").work_left);
    // Half an hour later all are due, and a little time in each tick is enough for all.
    let mut ticks = 0;
    while places.iter().any(|at| tier(&world, *at) != Tier::L2) {
        for _ in 0..100 {
            world.tick(minute(60), &[], Duration::from_millis(1)).expect("ticks");
        }
        ticks += 100;
        assert!(ticks < 100_000, "no progress");
    }
    let had: Vec<_> = turns(&world).into_values().collect();
    let (least, most) = (had.iter().min().expect("some"), had.iter().max().expect("some"));
    assert!(*least > 3 && least * 20 > *most, "none starves: {had:?}");
}

#[test]
fn a_segment_that_is_in_use_does_not_hold_a_tick_up() {
    let (world, ids) = begin(8);
    let places = [ids.at(0, 0, 0), ids.at(16, 0, 0)];
    for at in places {
        save(&world, at, filled(world.root(), ids.stone));
    }
    let before = turns(&world);
    let mut is_first = true;
    let demoted = world.segments().with(segment(&ids, 0), |one| {
        one.tiers().demote_all(100 * MINUTE, |_| {
            if !std::mem::take(&mut is_first) {
                return;
            }
            let (done, wait) = mpsc::channel();
            let world = world.clone();
            thread::spawn(move || drop(done.send(world.tick(minute(1), &[], NO_HURRY))));
            let report = wait.recv_timeout(Duration::from_secs(20)).expect("it waits for the other call");
            assert!(report.expect("ticks").work_left, "that segment had no turn");
        })
    });
    assert_eq!(demoted.expect("demotes").cooled, 1);
    let after = turns(&world);
    assert_eq!(after[&segment(&ids, 0)], before[&segment(&ids, 0)]);
    assert!(after[&segment(&ids, 1)] > before[&segment(&ids, 1)]);
}

#[test]
fn a_closed_world_refuses_and_a_closure_may_tick() {
    let (world, ids) = begin(8);
    let at = ids.at(0, 0, 0);
    let ticked = world.transaction(at, |tx| {
        tx.save(at, filled(world.root(), ids.stone));
        Ok::<_, Error>(world.tick(minute(1), &[], NO_HURRY)?.now)
    });
    assert_eq!(ticked.expect("ticks"), minute(1));
    let back = world.tick(minute(0), &[], NO_HURRY).expect("ticks");
    assert_eq!(back.now, minute(1), "time does not go back");
    world.close().expect("closes");
    let refused = world.tick(minute(1), &[], NO_HURRY);
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
}

#[test]
fn a_segment_that_fails_takes_nothing_from_the_others() {
    let home = Crashing::new();
    let world = home.open_with(true, &open_at_once(8));
    let ids = register(&world);
    let places = [ids.at(0, 0, 0), ids.at(16, 0, 0), ids.at(32, 0, 0)];
    for at in places {
        save(&world, at, filled(world.root(), ids.stone));
    }
    pass(&world, 1, &[]);
    world.segments().with(segment(&ids, 1), World::close).expect("closes");
    let refused = world.tick(minute(60), &[], NO_HURRY);
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    let tier_of = |at: ChunkAt| {
        let found = world.segments().with(world.segment_of(at), |world| world.tiers().explain(at));
        found.expect("reads").expect("is stored").tier
    };
    assert_eq!([tier_of(places[0]), tier_of(places[2])], [Tier::L2; 2]);
    world.segments().delete(segment(&ids, 1)).expect("deletes");
    let report = pass(&world, 60, &[]);
    assert_eq!(report.moves.cooled, 2, "what the failed tick did is reported");
}

#[test]
fn each_segment_prefetches_its_own_chunks() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let (ahead, near) = (ids.at(21, 0, 8), ids.at(0, 0, 0));
    for at in [ahead, near, ids.at(31, 0, 0)] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    world.close().expect("closes");
    drop(world);
    let with_prefetch = WorldOptions { prefetch: Some(PrefetchOptions::default()), ..options() };
    let options = SegmentOptions { world: with_prefetch, ..segments() };
    let world = SegmentedWorld::open(dir(&disk), &[], &options).expect("opens");
    for at in [near, ids.at(31, 0, 0)] {
        assert!(world.load(at).expect("loads").is_some());
    }
    let one = |x, show: fn(&World, ChunkAt) -> u64| {
        world.segments().with(segment(&ids, x), |world| Ok(show(world, ahead))).expect("is open")
    };
    // It walks in the first segment, and what it will want next is in the second.
    for step in 0..400 {
        let walks = player(&ids, 10 * 16 + (step % 100) as i64, 8, 8 * 16);
        world.tick(GameTick::new(step), &[walks], Duration::from_millis(20)).expect("ticks");
        if one(1, |world, at| u64::from(matches!(world.peek(at), Peek::Here(_)))) == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let prefetched = |world: &World, _| world.metrics().stats.prefetched;
    assert!(one(1, prefetched) > 0, "the other side of the border is prefetched");
    assert_eq!(one(1, |world, at| u64::from(matches!(world.peek(at), Peek::Here(_)))), 1);
    assert_eq!(one(0, prefetched), 0, "nothing of it is looked for in the first segment");
}
