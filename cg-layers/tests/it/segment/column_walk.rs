//! The walk by columns over borders: joined, each once, and continued behind any of them.

use std::ops::ControlFlow;

use cg_format::{ClusterTier, Space, key};
use cg_store::cache::Column;

use super::transfer::Crashing;
use super::*;
use crate::fixture::{marked, plain, plant};

/// The columns of a walk: their places, and the heights and chunks that each has.
type Walked = Vec<([i64; 2], Result<Vec<(i64, Chunk)>, Error>)>;

fn chunks_of(column: Column) -> Vec<(i64, Chunk)> {
    column.chunks().map(|(y, chunk)| (y, (**chunk).clone())).collect()
}

fn walk<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    ids: &Ids,
    area: ChunkBox,
    behind: Option<[i64; 2]>,
) -> Walked {
    let mut found = Vec::new();
    let walked = world.segments().for_each_column(ids.overworld, &area, behind, |at, column| {
        found.push((at, column.map(chunks_of)));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(walked.expect("walks"), None);
    found
}

/// Words for each place of a walk.
fn shown(walked: Walked) -> Vec<([i64; 2], String)> {
    let kind = |column: Result<Vec<(i64, Chunk)>, Error>| match column {
        Ok(chunks) => format!("{:?}", chunks.iter().map(|(y, _)| *y).collect::<Vec<_>>()),
        Err(Error::Corrupt(_)) => "damaged".to_owned(),
        Err(Error::ColumnTooHigh { chunks }) => format!("{chunks} heights"),
        Err(error) if matches!(error.layer(), Some(SegmentError::Lost { .. })) => "lost".to_owned(),
        Err(error) => panic!("{error}"),
    };
    walked.into_iter().map(|(at, column)| (at, kind(column))).collect()
}

/// Checks what a walk shows, also if it is broken off at each place and goes on.
#[track_caller]
fn assert_shown<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    ids: &Ids,
    area: ChunkBox,
    expected: &[([i64; 2], &str)],
) {
    let expected: Vec<_> = expected.iter().map(|(at, what)| (*at, (*what).to_owned())).collect();
    assert_eq!(shown(walk(world, ids, area, None)), expected);
    for (index, (at, _)) in expected.iter().enumerate() {
        assert_eq!(shown(walk(world, ids, area, Some(*at))), expected[index + 1..], "behind {at:?}");
    }
}

fn boxed(from: [i64; 3], to: [i64; 3]) -> ChunkBox {
    let [from, to] = [from, to].map(|[x, y, z]| ChunkPos::constant(x, y, z));
    ChunkBox::new(from, to)
}

/// Saves stone at some places.
fn fill<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids, places: &[[i64; 3]]) {
    for [x, y, z] in places {
        save(world, ids.at(*x, *y, *z), filled(world.root(), ids.stone));
    }
}

/// The walk shows what that over a plain world with the same chunks shows, pillar by pillar.
#[test]
fn columns_are_joined_over_borders_and_a_walk_goes_on_behind_each() {
    for side_chunks in [16, 32] {
        let options = SegmentOptions { side_chunks, max_open: 12, ..segments() };
        let world = SegmentedWorld::in_memory(&[], &options).expect("a world");
        let ids = register(&world);
        let plain = crate::fixture::in_memory();
        let of_plain = Ids::register(&plain);
        assert_eq!((ids.overworld, ids.air, ids.stone), (of_plain.overworld, of_plain.air, of_plain.stone));
        for n in 0..90_i64 {
            // Three in each of thirty columns. Eight are in one segment each, the others over borders.
            let column = n % 30;
            let (x, z) = (column * 37 % 83 - 41, column * 53 % 79 - 38);
            let at =
                if column < 8 { ids.at(x + 128, n / 30, z) } else { ids.at(x, n / 30 * 19 - 31 + n % 7, z) };
            save(&world, at, marked(world.root(), &ids, n as u16));
            plain
                .transaction(|tx| {
                    tx.save(at, marked(&plain, &of_plain, n as u16));
                    Ok::<_, Error>(())
                })
                .expect("saves");
        }
        let mut pillars = std::collections::BTreeMap::<_, usize>::new();
        for segment in world.segments().list() {
            *pillars.entry([segment.x, segment.z]).or_default() += 1;
        }
        assert!(pillars.values().any(|count| *count == 1) && pillars.values().any(|count| *count > 1));

        let sound = |walked: Walked| -> Vec<_> {
            walked.into_iter().map(|(at, column)| (at, column.expect("is sound"))).collect()
        };
        let pillar_of = |at: [i64; 2]| at.map(|at| at.div_euclid(side_chunks.into()));
        let areas = [
            (ChunkBox::EVERYTHING, 30),
            (boxed([-33, -20, -20], [140, 14, 30]), 18),
            (boxed([-16, -64, -40], [15, 64, 40]), 8),
            (boxed([-9, -3, -9], [5, 3, 9]), 0),
            (boxed([6, -64, -9], [6, 64, -9]), 1),
        ];
        for (area, at_least) in areas {
            let mut expected = Vec::new();
            let walked = plain.read_view(|view| {
                view.for_each_column(ids.overworld, &area, None, |at, column| {
                    expected.push((at, chunks_of(column.expect("is sound"))));
                    ControlFlow::<()>::Continue(())
                })
            });
            assert_eq!(walked.expect("walks"), None);
            assert!(expected.len() >= at_least, "{} columns", expected.len());
            expected.sort_by_key(|(at, _)| pillar_of(*at));
            assert_eq!(sound(walk(&world, &ids, area, None)), expected, "of {area:?}");
            for (index, (at, _)) in expected.iter().enumerate() {
                let left = sound(walk(&world, &ids, area, Some(*at)));
                assert_eq!(left, expected[index + 1..], "of {area:?} behind {at:?}");
            }
            // A visitor that has enough is asked no more.
            let Some((half, _)) = expected.get(expected.len() / 2) else { continue };
            let mut count = 0;
            let broken = world.segments().for_each_column(ids.overworld, &area, None, |met, _| {
                count += 1;
                if met == *half { ControlFlow::Break(met) } else { ControlFlow::Continue(()) }
            });
            assert_eq!((broken.expect("walks"), count), (Some(*half), expected.len() / 2 + 1));
        }
        assert!(walk(&world, &Ids { overworld: ids.nether, ..ids }, ChunkBox::EVERYTHING, None).is_empty());
        assert!(world.segments().open_count() <= 12);
    }
}

/// Damage of one segment takes no place of a column that another one has.
#[test]
fn damage_is_of_its_column_or_of_its_square_over_borders() {
    let (world, ids) = in_memory();
    let pillar = [[0, 0, 0], [0, 16, 0], [1, 15, 0], [1, 16, 0], [4, 4, 4], [5, 4, 4], [15, 20, 15]];
    fill(&world, &ids, &pillar);
    fill(&world, &ids, &[[17, 0, 0], [20, 4, 4], [31, 15, 15]]);
    let sound = [([0, 0], "[0, 16]"), ([1, 0], "[15, 16]"), ([4, 4], "[4]"), ([5, 4], "[4]")];
    let beside = [([15, 15], "[20]"), ([17, 0], "[0]"), ([20, 4], "[4]"), ([31, 15], "[15]")];
    assert_shown(&world, &ids, ChunkBox::EVERYTHING, &[sound, beside].concat());

    let hidden = |at: ChunkAt| {
        let cube = key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
        (Space::of_cluster(ClusterTier::L1), cube.to_vec(), Some(plain(b"no cluster")))
    };
    let damage = |at: ChunkAt, rows: Vec<_>| {
        let planted = world.segments().with(world.segment_of(at), |segment| {
            plant(segment, rows);
            Ok(())
        });
        planted.expect("is stored");
    };
    let hot = ids.at(0, 0, 0);
    let no_chunk = (Space::ChunkL0, key::chunk(hot).to_vec(), Some(plain(b"no chunk")));
    damage(hot, vec![no_chunk, hidden(ids.at(8, 8, 8)), hidden(ids.at(12, 8, 8))]);
    damage(ids.at(17, 0, 0), vec![hidden(ids.at(24, 8, 8))]);
    let damaged = [
        ([0, 0], "damaged"),
        ([1, 0], "[15, 16]"),
        ([4, 4], "[4]"),
        ([5, 4], "[4]"),
        ([15, 13], "damaged"),
        ([15, 14], "damaged"),
        ([15, 15], "[20]"),
        ([17, 0], "[0]"),
        ([20, 4], "[4]"),
        ([31, 14], "damaged"),
        ([31, 15], "[15]"),
    ];
    assert_shown(&world, &ids, ChunkBox::EVERYTHING, &damaged);
    assert_shown(&world, &ids, boxed([0, 0, 0], [31, 31, 15]), &damaged);
    // One column alone: there is no other place.
    damage(hot, vec![hidden(ids.at(15, 8, 15))]);
    assert_shown(&world, &ids, boxed([15, 0, 15], [15, 31, 15]), &[([15, 15], "damaged")]);
}

#[test]
fn a_segment_that_is_lost_is_shown_at_the_end_of_its_pillar() {
    let home = Crashing::new();
    let world = home.open(true);
    let ids = register(&world);
    let lost = [ids.at(2, 0, 0), ids.at(17, 0, 0)];
    fill(&world, &ids, &[[2, 0, 0], [17, 0, 0]]);
    fill(&world, &ids, &[[2, 16, 0], [15, 16, 15], [33, 0, 0]]);
    // Others are open instead of those.
    fill(&world, &ids, &[[33, 0, 1], [2, 17, 0]]);
    for at in lost {
        assert!(!world.segments().list_open().contains(&world.segment_of(at)), "it is closed");
        home.remove(world.segment_of(at)).expect("is forgotten");
    }
    let expected = [
        ([2, 0], "[16, 17]"),
        ([15, 14], "lost"),
        ([15, 15], "[16]"),
        ([31, 15], "lost"),
        ([33, 0], "[0]"),
        ([33, 1], "[0]"),
    ];
    assert_shown(&world, &ids, ChunkBox::EVERYTHING, &expected);
    let within = [([2, 0], "[16, 17]"), ([15, 7], "lost"), ([20, 7], "lost")];
    assert_shown(&world, &ids, boxed([-5, -5, -5], [20, 20, 7]), &within);
    // The area has nothing of those that are lost.
    assert_shown(&world, &ids, boxed([0, 16, 0], [15, 31, 0]), &[([2, 0], "[16, 17]")]);
}

#[test]
fn a_column_that_is_too_high_over_borders() {
    let (world, ids) = in_memory();
    fill(&world, &ids, &[[0, 0, 0], [0, 4096, 0], [1, 1, 0], [1, 4096, 0], [2, 5, 0]]);
    let expected = [([0, 0], "4097 heights"), ([1, 0], "[1, 4096]"), ([2, 0], "[5]")];
    assert_shown(&world, &ids, ChunkBox::EVERYTHING, &expected);
    let inside = [([0, 0], "[4096]"), ([1, 0], "[1, 4096]"), ([2, 0], "[5]")];
    assert_shown(&world, &ids, boxed([0, 1, 0], [2, 4096, 0]), &inside);
}

/// Also where a segment is not created yet.
#[test]
fn what_was_submitted_is_in_the_columns() {
    let (world, ids) = in_memory();
    let mut expected = Vec::new();
    for x in 0..40 {
        // Two segments in every second pillar.
        let ys: &[i64] = if x % 2 == 0 { &[-1, 0] } else { &[3] };
        for y in ys {
            let at = ids.at(x * 16, *y, 0);
            let mut batch = WriteBatch::new();
            batch.save(at, filled(world.root(), ids.stone));
            let _ticket = world.submit(at, batch).expect("is taken");
        }
        expected.push(([x * 16, 0], format!("{ys:?}")));
    }
    assert_eq!(shown(walk(&world, &ids, ChunkBox::EVERYTHING, None)), expected);
}

/// A visitor keeps no other thread from what is behind it, and may not do what would wait for it.
#[test]
fn what_is_deleted_meanwhile_is_left_out() {
    let (world, ids) = in_memory();
    fill(&world, &ids, &[[0, 0, 0], [0, 16, 0], [16, 0, 0], [32, 0, 0], [32, 16, 0], [48, 0, 0]]);
    let gone = [ids.at(16, 0, 0), ids.at(32, 16, 0)].map(|at| world.segment_of(at));
    let mut met = Vec::new();
    let walked =
        world.segments().for_each_column(ids.overworld, &ChunkBox::EVERYTHING, None, |at, column| {
            let nested = world.segments().delete(gone[0]);
            assert!(matches!(nested, Err(Error::Nested)), "{nested:?}");
            assert!(matches!(world.close(), Err(Error::Nested)));
            if met.is_empty() {
                std::thread::scope(|scope| {
                    let delete = || gone.map(|segment| world.segments().delete(segment).expect("deletes"));
                    scope.spawn(delete).join().expect("ends");
                });
            }
            met.push((at, column.map(chunks_of)));
            ControlFlow::<()>::Continue(())
        });
    assert_eq!(walked.expect("walks"), None);
    let expected = [([0, 0], "[0, 16]"), ([32, 0], "[0]"), ([48, 0], "[0]")];
    assert_eq!(shown(met), expected.map(|(at, what)| (at, what.to_owned())));
    world.close().expect("closes");
    let closed = world
        .segments()
        .for_each_column(ids.overworld, &ChunkBox::EVERYTHING, None, |_, _| ControlFlow::Break(()));
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
}
