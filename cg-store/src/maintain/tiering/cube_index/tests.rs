//! Remembered cubes, doubtful cubes, and an index without room.

use super::*;
use cg_format::{ChunkAt, ChunkPos, Dimension};

fn cube(n: i64) -> CubeAt {
    CubeAt::of(ChunkAt::new(Dimension::new(0), ChunkPos::new(4 * n, 0, 0).unwrap()))
}

fn put(known: &mut CubeIndex, cube: CubeAt, chunks: u64, tombstones: u64) {
    known.note(Ok([(cube, Puts { chunks, tombstones })].into()));
}

fn get(known: &CubeIndex, cube: CubeAt) -> Option<IndexedCube> {
    known.cubes_in(cube.cluster(ClusterTier::L2)).iter().find(|known| known.cube == cube).copied()
}

#[test]
fn what_commits_put_is_known_but_not_sure() {
    let mut known = CubeIndex::default();
    known.nothing_there();
    put(&mut known, cube(0), 0b011, 0);
    put(&mut known, cube(0), 0b100, 0b001);
    let found = get(&known, cube(0)).unwrap();
    assert_eq!(
        (found.hot.rows, found.hot.chunks, found.warm, found.is_sure),
        (0b111, 0b110, Some(false), false)
    );
    assert_eq!((found.must_look(0), found.must_look(9)), (false, true), "marks count when they may go");
    let hot = Hot { rows: 0b1, chunks: 0b1, old_tombstones: 0, bytes: 7 };
    let found = known.learn(cube(0), hot, true, 9);
    assert_eq!((found.hot.rows, found.hot.bytes, found.is_sure, found.must_look(9)), (0b1, 7, true, false));
    known.moved(cube(0));
    let found = get(&known, cube(0)).unwrap();
    assert_eq!((found.must_look(9), found.warm, found.rows_above().most_shadows), (true, None, 64));
    put(&mut known, cube(2), 1, 0);
    assert_eq!(get(&known, cube(2)).unwrap().warm, Some(false));
    known.note(Err(Overflow(BTreeMap::new())));
    assert_eq!(get(&known, cube(2)).unwrap().warm, None, "a move that failed may have been written");
    known.forget(cube(2));
    known.forget(cube(0));
    assert_eq!((known.next_cluster(), known.count), (None, 0));
}

#[test]
fn an_offer_is_not_made_again_before_long() {
    let mut known = CubeIndex::default();
    known.nothing_there();
    put(&mut known, cube(3), 1, 0);
    known.offered(cube(3), GameTick::new(100));
    let is_offered = |known: &CubeIndex, at| get(known, cube(3)).unwrap().is_offered(GameTick::new(at));
    assert!(is_offered(&known, 100 + OFFER_AGAIN_TICKS - 1) && !is_offered(&known, 100 + OFFER_AGAIN_TICKS));
}

#[test]
fn clusters_come_one_after_the_other_round_and_round() {
    let mut known = CubeIndex::default();
    known.nothing_there();
    // Four adjacent cubes are in one cold cluster.
    for n in [0, 3, 5, 9] {
        put(&mut known, cube(n), 1, 0);
    }
    let mut round = Vec::new();
    for _ in 0..4 {
        let cluster = known.next_cluster().unwrap();
        round.push(known.cubes_in(cluster).iter().map(|known| known.cube).collect::<Vec<_>>());
        known.advance_past(cluster);
    }
    assert_eq!(round, [vec![cube(0), cube(3)], vec![cube(5)], vec![cube(9)], vec![cube(0), cube(3)]]);
}

#[test]
fn it_is_whole_where_all_was_read_unless_something_was_missed() {
    let around = |n| cube(n).cluster(ClusterTier::L2);
    let mut known = CubeIndex::default();
    assert!(!known.is_whole(around(0)));
    known.learn(cube(0), Hot::NONE, true, 0);
    assert!(!known.is_whole(around(0)), "nobody knows what else is met");
    known.nothing_there();
    assert!(known.is_searched() && known.is_whole(around(0)));
    known.note(Err(Overflow([(cube(1), Puts { chunks: 1, tombstones: 0 })].into())));
    assert!(!known.is_whole(around(0)));
    known.leave_cluster_alone(around(7), GameTick::new(9));
    known.begin_again();
    assert_eq!((get(&known, cube(0)), known.count, known.is_whole(around(0))), (None, 0, false));
    let is_left_alone = |now| known.is_left_alone(around(7), GameTick::new(now));
    assert!(is_left_alone(8) && !is_left_alone(9));
}

#[test]
fn what_does_not_fit_is_unread_again_but_for_what_is_planned() {
    let mut known = CubeIndex::default().with_capacity(8);
    known.nothing_there();
    for n in 0..40 {
        put(&mut known, cube(n), 1, 0);
    }
    let now = GameTick::new(50);
    known.offered(cube(2), now);
    let mut evicted = 0;
    while let Some(cluster) = known.too_much(now) {
        known.evict(cluster, GameTick::new(7), GameTick::new(9));
        evicted += 1;
    }
    assert_eq!((known.count, evicted), (8, 8), "four cubes in each");
    assert!(get(&known, cube(2)).is_some(), "it is planned to move");
    let is_known = |n| get(&known, cube(n)).is_some() != known.unscanned.holds(cube(n));
    assert!((0..40).all(is_known), "whatever is not remembered is to be read");
    assert_eq!(known.unscanned.next(99, |_| true).unwrap().since, Some(GameTick::new(7)));
    // A save there adds an entry, which is known to be incomplete.
    let lost = (0..40).find(|n| known.unscanned.holds(cube(*n))).unwrap();
    put(&mut known, cube(lost), 1, 0);
    assert_eq!(get(&known, cube(lost)).unwrap().warm, None);
    assert!(!known.is_whole(cube(lost).cluster(ClusterTier::L2)));
}

#[test]
fn of_too_many_clusters_those_whose_time_ends_first_are_tried_again() {
    // Four cubes of the line are in each cluster.
    let around = |n: i64| cube(4 * n).cluster(ClusterTier::L2);
    let mut known = CubeIndex::default();
    for n in 0..LEFT_ALONE_CLUSTERS as i64 {
        known.leave_cluster_alone(around(n), GameTick::new(100 + (n % 7) as u64));
    }
    // A cluster that is left alone for longer takes no second place.
    known.leave_cluster_alone(around(0), GameTick::new(200));
    let alone = |known: &CubeIndex| {
        (0..LEFT_ALONE_CLUSTERS as i64 + 9)
            .filter(|n| known.is_left_alone(around(*n), GameTick::new(99)))
            .count()
    };
    assert_eq!(alone(&known), LEFT_ALONE_CLUSTERS);
    for n in 0..9 {
        known.leave_cluster_alone(around(LEFT_ALONE_CLUSTERS as i64 + n), GameTick::new(300));
    }
    assert_eq!(alone(&known), LEFT_ALONE_CLUSTERS);
    let ended =
        (0..LEFT_ALONE_CLUSTERS as i64).filter(|n| !known.is_left_alone(around(*n), GameTick::new(99)));
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended.len(), 9);
    assert!(ended.iter().all(|n| *n > 0 && n % 7 == 0), "{ended:?}");
}
