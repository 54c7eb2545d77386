//! Walks: every live chunk once, in the order of keys, whatever its tier, by one thread or by many.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::*;
use cg_format::{BlockArea, ClusterPos, ClusterTier, Space, Tier, key};
use cg_store::view::{Area, StoredPlace};
use proptest::prelude::*;

over_both_engines! {
    every_chunk_comes_once_in_the_order_of_keys
    a_walk_visits_no_more_keys_than_it_returns_and_two_for_each_range
    places_are_told_without_reading_chunks
    damage_is_told_once_and_hides_what_is_colder
    threads_stop_when_one_has_enough
}

/// How a chunk of a test lies in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lies {
    Hot,
    Warm,
    Cold,
    HotAboveCold,
    WarmAboveCold,
    DeletedAboveWarm,
    DeletedAboveCold,
}

pub(super) const ALL: [Lies; 7] = [
    Lies::Hot,
    Lies::Warm,
    Lies::Cold,
    Lies::HotAboveCold,
    Lies::WarmAboveCold,
    Lies::DeletedAboveWarm,
    Lies::DeletedAboveCold,
];

/// Stores chunks, and tells what a walk must find: each with its place and its mark.
pub(super) fn build(world: &World, ids: &Ids, chunks: &BTreeMap<ChunkAt, Lies>) -> Vec<(StoredPlace, Chunk)> {
    let of = |wanted: &[Lies]| -> Vec<ChunkAt> {
        chunks.iter().filter(|(_, lies)| wanted.contains(lies)).map(|(at, _)| *at).collect()
    };
    let store = |all: &[ChunkAt], cell| {
        if !all.is_empty() {
            save(world, all.iter().map(|at| (*at, marked(world, ids, cell))));
        }
    };
    let cold = of(&[Lies::Cold, Lies::HotAboveCold, Lies::WarmAboveCold, Lies::DeletedAboveCold]);
    store(&cold, 1);
    demote(world, ClusterTier::L2, &cold, false);
    let warm = of(&[Lies::Warm, Lies::WarmAboveCold, Lies::DeletedAboveWarm]);
    store(&warm, 2);
    demote(world, ClusterTier::L1, &warm, false);
    store(&of(&[Lies::Hot, Lies::HotAboveCold]), 3);
    for at in of(&[Lies::DeletedAboveWarm, Lies::DeletedAboveCold]) {
        world
            .transaction(|tx| {
                tx.delete(at);
                Ok::<_, Error>(())
            })
            .expect("deletes");
    }
    let live = chunks.iter().filter_map(|(at, lies)| {
        let (cell, tier) = match lies {
            Lies::Hot | Lies::HotAboveCold => (3, Tier::L0),
            Lies::Warm | Lies::WarmAboveCold => (2, Tier::L1),
            Lies::Cold => (1, Tier::L2),
            Lies::DeletedAboveWarm | Lies::DeletedAboveCold => return None,
        };
        let (_, version) = world.load_versioned(*at).expect("is sound").expect("is stored");
        Some((StoredPlace { at: *at, version, tier }, marked(world, ids, cell)))
    });
    let mut live: Vec<_> = live.collect();
    live.sort_by_key(|(place, _)| key::chunk(place.at));
    live
}

fn places(world: &World, area: Area) -> Vec<StoredPlace> {
    let mut found = Vec::new();
    let walked = world.read_view(|view| {
        view.for_each_place(area, |place| {
            found.push(place.expect("is sound"));
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    found
}

/// Checks every kind of walk over an area against what is expected of it.
fn check_walks(world: &World, area: Area, expected: &[(StoredPlace, Chunk)]) {
    let at: Vec<_> = expected.iter().map(|(place, _)| *place).collect();
    assert_eq!(places(world, area), at, "{area:?}");

    let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
    let walked = world.read_view(|view| {
        view.for_each_chunk(area, |stored| {
            let stored = stored.expect("is sound");
            let place = StoredPlace { at: stored.at, version: stored.version, tier: stored.tier };
            bytes.push((place, view.decode(stored).expect("is sound")));
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    assert!(bytes == expected, "{area:?}");
    let walked = world.read_view(|view| {
        view.for_each_decoded(area, |found| {
            decoded.push(found.expect("is sound"));
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    assert!(decoded.iter().map(|(at, chunk)| (at, chunk)).eq(expected.iter().map(|(p, c)| (&p.at, c))));

    let parallel = Mutex::new(Vec::new());
    let walked = world.read_view(|view| {
        view.par_for_each_chunk(area, |stored| {
            let stored = stored.expect("is sound");
            let chunk = view.decode(stored).expect("is sound");
            let place = StoredPlace { at: stored.at, version: stored.version, tier: stored.tier };
            parallel.lock().unwrap().push((place, chunk));
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    let mut parallel = parallel.into_inner().unwrap();
    let cube = |at: ChunkAt| key::cluster(at.dimension, at.pos.cluster(ClusterTier::L2));
    // Stable: only the cubes are put in order, not what is inside them.
    parallel.sort_by_key(|(place, _)| cube(place.at));
    assert!(parallel == expected, "{area:?}");
}

/// A number that looks random, for tests over an engine that is too slow for many cases.
fn spread(index: u64) -> u64 {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 20
}

fn every_chunk_comes_once_in_the_order_of_keys(world: &World) {
    let ids = Ids::register(world);
    let coordinate = |n: u64, shift: u32| (spread(n) >> shift) as i64 % 40 - 20;
    let chunks: BTreeMap<ChunkAt, Lies> = (0..400)
        .map(|n| {
            let at = ids.at(coordinate(n, 0), coordinate(n, 9), coordinate(n, 18));
            (at, ALL[(spread(n) >> 30) as usize % ALL.len()])
        })
        .collect();
    let expected = build(world, &ids, &chunks);
    assert!(expected.len() > 200);
    check_walks(world, Area::World, &expected);
    for (min, max) in [([-20, -20, -20], [19, 19, 19]), ([-3, -9, 2], [8, 1, 17]), ([-1, -1, -1], [0, 0, 0])]
    {
        let corner = |[x, y, z]: [i64; 3]| ChunkPos::constant(x, y, z);
        let area = ChunkBox::new(corner(min), corner(max));
        let inside: Vec<_> =
            expected.iter().filter(|(place, _)| area.contains(place.at.pos)).cloned().collect();
        check_walks(world, Area::Box(ids.overworld, area), &inside);
    }
    assert_sound(world);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn walks_agree_with_a_model(
        chunks in prop::collection::btree_map(
            (-6_i64..12, -6_i64..12, -18_i64..6),
            prop::sample::select(ALL.to_vec()),
            0..60,
        ),
        corners in [(-8_i64..14, -8_i64..14, -20_i64..8), (-8_i64..14, -8_i64..14, -20_i64..8)],
        boxes in prop::collection::vec(prop::array::uniform6(-320_i64..220), 0..5),
        is_far: bool,
    ) {
        let world = in_memory();
        let ids = Ids::register(&world);
        let chunks = chunks.into_iter().map(|((x, y, z), lies)| (ids.at(x, y, z), lies)).collect();
        let expected = build(&world, &ids, &chunks);
        check_walks(&world, Area::World, &expected);
        let [a, b] = corners;
        let low = ChunkPos::constant(a.0.min(b.0), a.1.min(b.1), a.2.min(b.2));
        let high = ChunkPos::constant(a.0.max(b.0), a.1.max(b.1), a.2.max(b.2));
        let area = ChunkBox::new(low, high);
        let inside: Vec<_> =
            expected.iter().filter(|(place, _)| area.contains(place.at.pos)).cloned().collect();
        check_walks(&world, Area::Box(ids.overworld, area), &inside);

        // A box far away makes the walk follow the stored keys instead of naming cubes.
        let far = is_far.then_some([-9_000_000, -40, 0, -8_000_000, 60, 9]);
        let blocks = boxes.iter().chain(&far).map(|[a, b, c, d, e, f]| {
            BlockBox::new(BlockPos::new(*a, *b, *c), BlockPos::new(*d, *e, *f))
        });
        let blocks: Vec<_> = blocks.collect();
        let is_met = |pos| blocks.iter().any(|area| area.chunks().contains(pos));
        let inside: Vec<_> = expected.iter().filter(|(place, _)| is_met(place.at.pos)).cloned().collect();
        check_walks(&world, Area::Blocks(ids.overworld, &BlockArea::union(blocks.clone())), &inside);
    }
}

fn a_walk_visits_no_more_keys_than_it_returns_and_two_for_each_range(world: &World) {
    let ids = Ids::register(world);
    // Ten cubes along x, far from each other, hot, each with rows of its own.
    let cubes = 10;
    let all: Vec<_> = (0..cubes).flat_map(|cube| (0..5).map(move |z| (cube * 64, z * 3))).collect();
    let all: Vec<_> = all.into_iter().map(|(x, z)| ids.at(x, 0, z)).collect();
    save(world, all.iter().map(|at| (*at, filled(world, ids.glass))));
    let visited = |area| {
        let before = world.metrics().stats;
        let found = places(world, area).len() as u64;
        (found, (world.metrics().stats - before).keys_scanned)
    };
    let (found, keys) = visited(Area::World);
    assert_eq!(found, all.len() as u64);
    assert!(keys <= found + 2 * cubes as u64, "{keys} keys");
    demote(world, ClusterTier::L1, &all, false);
    let warm_rows: HashSet<ClusterPos> = all.iter().map(|at| at.pos.cluster(ClusterTier::L1)).collect();
    let (found, keys) = visited(Area::World);
    assert_eq!(found, all.len() as u64);
    assert!(keys <= warm_rows.len() as u64 + 2 * cubes as u64, "{keys} keys");
    // A box of two of the cubes, of 4³ groups that hold a chunk each.
    let area = ChunkBox::new(ChunkPos::constant(64, 0, 0), ChunkPos::constant(128, 3, 3));
    let (found, keys) = visited(Area::Box(ids.overworld, area));
    assert_eq!(found, 4);
    assert!(keys <= 2 + 2 * 2, "{keys} keys");
}

fn places_are_told_without_reading_chunks(world: &World) {
    let ids = Ids::register(world);
    let all = [ids.at(0, 0, 0), ids.at(1, 0, 0), ids.at(9, 9, 9)];
    save(world, all.map(|at| (at, marked(world, &ids, 5))));
    demote(world, ClusterTier::L2, &all, false);
    let before = world.metrics().stats;
    assert_eq!(places(world, Area::World).len(), 3);
    let work = world.metrics().stats - before;
    assert_eq!((work.clusters_read, work.bytes_decompressed, work.chunks_decoded), (1, 0, 0));
}

fn damage_is_told_once_and_hides_what_is_colder(world: &World) {
    let ids = Ids::register(world);
    let chunks = [
        (ids.at(0, 0, 0), Lies::WarmAboveCold),
        (ids.at(1, 1, 1), Lies::Cold),
        (ids.at(3, 3, 3), Lies::Hot),
        (ids.at(5, 0, 0), Lies::Cold),
    ];
    build(world, &ids, &chunks.into_iter().collect());
    let warm_key = key::cluster(ids.overworld, ids.at(0, 0, 0).pos.cluster(ClusterTier::L1));
    plant(world, [(Space::ClusterL1, warm_key.to_vec(), Some(plain(b"no cluster")))]);
    let (mut told, mut met) = (Vec::new(), Vec::new());
    let mut note = |found: Result<ChunkAt, Error>| {
        match found {
            Ok(at) => met.push(at),
            Err(Error::Corrupt(damage)) => told.push(damage.key),
            Err(other) => panic!("{other}"),
        }
        ControlFlow::<()>::Continue(())
    };
    let walked =
        world.read_view(|view| view.for_each_place(Area::World, |place| note(place.map(|place| place.at))));
    assert_eq!(walked.expect("walks"), None);
    let walked = world
        .read_view(|view| view.for_each_chunk(Area::World, |stored| note(stored.map(|stored| stored.at))));
    assert_eq!(walked.expect("walks"), None);
    assert_eq!(told, [&warm_key[..], &warm_key[..]], "once in each walk");
    let live = [ids.at(3, 3, 3), ids.at(5, 0, 0)];
    assert_eq!(
        met,
        [live, live].concat(),
        "the cold copies of the damaged cluster's chunks are older, if live at all"
    );
}

fn threads_stop_when_one_has_enough(world: &World) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..20).map(|cube| ids.at(cube * 16, 0, 0)).collect();
    save(world, all.iter().map(|at| (*at, filled(world, ids.glass))));
    let found = world.read_view(|view| {
        view.par_for_each_chunk(Area::World, |stored| {
            let at = stored.expect("is sound").at;
            if at == all[7] { ControlFlow::Break(at) } else { ControlFlow::Continue(()) }
        })
    });
    assert_eq!(found.expect("walks"), Some(all[7]));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        world.read_view(|view| {
            view.par_for_each_chunk(Area::World, |_| -> ControlFlow<()> { panic!("on purpose") })
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    assert_eq!(places(world, Area::World).len(), 20, "and the world goes on");
}

#[test]
fn a_place_has_the_version_of_the_last_delta() {
    let world =
        World::builder().options(&WorldOptions { deltas: true, ..options() }).in_memory().expect("in memory");
    let ids = Ids::register(&world);
    let at = ids.at(2, 0, 0);
    let [edited, other] = [at, ids.at(3, 0, 0)].map(|at| (at, marked(&world, &ids, 8)));
    save(&world, [edited, other]);
    let mut chunk = marked(&world, &ids, 8);
    chunk
        .set_block(cg_format::LocalPos::new(1, 1, 1), ids.glass, &world.catalog().current_schema())
        .expect("sets");
    let seq = save(&world, [(at, chunk)]);
    assert_eq!(world.metrics().stats.deltas_written, 1);
    let found = places(&world, Area::World);
    let versions: Vec<_> = found.iter().map(|place| (place.at, place.version)).collect();
    let other = world.load_versioned(ids.at(3, 0, 0)).expect("is sound").expect("is stored").1;
    assert_eq!(versions, [(at, seq), (ids.at(3, 0, 0), other)]);
}
