//! Ticks open the segments that players will reach.

use std::time::Instant;

use super::super::submit::gated::{Gated, Opening};
use super::*;

const NEXT: i64 = 16 * 16;
const ON_THE_WAY: PrefetchOptions = PrefetchOptions {
    ahead_chunks: 3,
    lookahead_ticks: 60,
    width_chunks: 0,
    height_chunks: 0,
    waiting_chunks: 100,
    in_flight_chunks: 4,
};

fn options_with(max_open: usize, prefetch: Option<PrefetchOptions>) -> SegmentOptions {
    SegmentOptions { world: WorldOptions { prefetch, ..options() }, ..open_at_once(max_open) }
}

/// A world that was opened again, with a row of chunks in each of the segments at some places along x.
fn stored(segments: &[i64], options: &SegmentOptions) -> (Gated, SegmentedWorld<Gated>, Ids) {
    let home = Gated::new();
    let world = home.open_with(true, options);
    let ids = register(&world);
    for x in segments.iter().flat_map(|segment| 16 * segment..16 * segment + 16) {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    world.close().expect("closes");
    let world = home.open_with(false, options);
    assert_eq!(world.segments().open_count(), 0);
    (home, world, ids)
}

/// A player walks along x at ten blocks a second; others stand at some blocks.
fn walk(world: &SegmentedWorld<Gated>, ids: &Ids, blocks: std::ops::Range<i64>, others: &[i64]) {
    for block in blocks {
        let mut players = vec![player(ids, block, 8, 8)];
        players.extend((1..).zip(others).map(|(n, x)| PlayerAt { id: uuid(n), ..player(ids, *x, 8, 8) }));
        world.tick(GameTick::new(2 * block.unsigned_abs()), &players, NO_HURRY).expect("ticks");
        thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_segment_that_a_player_walks_to_is_opened_and_prefetched() {
    let (home, world, ids) = stored(&[0, 1], &options_with(4, Some(ON_THE_WAY)));
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    let before = home.opened();
    home.set(Opening::Waits);
    // No tick waits until it is open.
    walk(&world, &ids, 140..NEXT - 40, &[]);
    wait_until("it is to be opened", || home.opened() == before + 1);
    walk(&world, &ids, NEXT - 40..NEXT - 30, &[]);
    assert!(matches!(world.peek(ids.at(16, 0, 0)), Peek::NotLoaded));
    home.set(Opening::Opens);
    wait_until("it opens", || {
        world.segments().list_open() == [segment(&ids, 0), segment(&ids, 1)]
            && world.segments().with(segment(&ids, 1), |_| Ok(())).is_ok()
    });
    walk(&world, &ids, NEXT - 30..NEXT - 1, &[]);
    wait_until("its chunks are in memory before the player is there", || {
        [16, 17].iter().all(|x| matches!(world.peek(ids.at(*x, 0, 0)), Peek::Here(_)))
    });
    assert_eq!(home.opened(), before + 1);
}

#[test]
fn no_segment_is_opened_ahead_without_prefetch_or_room_or_where_none_is_stored() {
    let cases: [(usize, Option<PrefetchOptions>, &[i64]); 3] =
        [(4, None, &[0, 1]), (1, Some(ON_THE_WAY), &[0, 1]), (4, Some(ON_THE_WAY), &[0])];
    for (max_open, prefetch, segments) in cases {
        let (home, world, ids) = stored(segments, &options_with(max_open, prefetch));
        assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
        let before = home.opened();
        walk(&world, &ids, 140..NEXT, &[]);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(world.segments().list_open(), [segment(&ids, 0)], "{max_open} {prefetch:?} {segments:?}");
        assert_eq!((home.opened(), world.segments().list().len()), (before, segments.len()));
    }
}

#[test]
fn only_a_segment_without_players_makes_room_for_one_that_is_opened_ahead() {
    let (home, world, ids) = stored(&[0, 1, 5], &options_with(2, Some(ON_THE_WAY)));
    let open_two = |order: [i64; 2]| {
        for x in order {
            assert!(world.load(ids.at(x, 0, 0)).expect("loads").is_some());
        }
    };
    open_two([80, 0]);
    let before = home.opened();
    walk(&world, &ids, 140..NEXT, &[80 * 16]);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(world.segments().list_open(), [0, 5].map(|x| segment(&ids, x)), "a player is in each");
    assert_eq!(home.opened(), before);
    // The least recently used one is that of the player, and it stays open.
    open_two([0, 80]);
    for step in 0..120 {
        let walks = player(&ids, 135 + step, 8, 8);
        world.tick(GameTick::new(10_000 + 2 * step.unsigned_abs()), &[walks], NO_HURRY).expect("ticks");
        thread::sleep(Duration::from_millis(2));
    }
    let expected = [0, 1].map(|x| segment(&ids, x));
    wait_until("the one without players is closed", || world.segments().list_open() == expected);
}
