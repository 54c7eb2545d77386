//! The opacity map against brute force over the chunks, whatever was saved, deleted, folded or drawn again.

use super::*;
use cg_format::key::Family;
use cg_format::{Space, key};
use proptest::prelude::*;

over_both_engines! {
    columns_reach_from_end_to_end_of_the_world
    a_map_that_was_off_is_drawn_again
    folding_leaves_one_row_per_tile
    what_does_not_change_the_outline_writes_no_patch
    drawing_again_mends_what_is_wrong_and_writes_nothing_else
    a_tile_over_nothing_is_drawn_too
    drawing_reads_every_chunk_once
    commits_beside_a_drawing_are_in_the_map
}

/// The blocks of a column that hide what is behind them, over the given chunks.
fn by_hand(world: &World, ids: &Ids, x: i64, z: i64, chunk_ys: &[i64]) -> Vec<i64> {
    let mut opaque = Vec::new();
    for y in chunk_ys {
        let pos = BlockPos::new(x, y << 4, z);
        let Some(chunk) = world.load(ChunkAt::new(ids.overworld, pos.chunk())).expect("loads") else {
            continue;
        };
        for cell_y in 0..16_u8 {
            let cell = LocalPos::new(pos.local().x(), cell_y, pos.local().z());
            if [ids.stone, ids.machine].contains(&chunk.block(cell)) {
                opaque.push((y << 4) + i64::from(cell_y));
            }
        }
    }
    opaque.sort_unstable();
    opaque
}

/// Asserts that the map says the same, in every way it can be asked.
#[track_caller]
fn compare(world: &World, ids: &Ids, x: i64, z: i64, chunk_ys: &[i64]) {
    let expected = by_hand(world, ids, x, z, chunk_ys);
    let column = world.opacity().column(ids.overworld, x, z).expect("reads");
    let told: Vec<i64> = column.runs().iter().cloned().flatten().collect();
    assert_eq!(told, expected, "column {x}, {z}");
    assert_eq!(column.highest_opaque(), expected.last().copied());
    for y in &expected {
        assert!(column.is_opaque(*y));
        for beside in [y.checked_sub(1), y.checked_add(1)].into_iter().flatten() {
            assert_eq!(column.is_opaque(beside), expected.contains(&beside), "{x}, {beside}, {z}");
        }
    }
    let apart = column.runs().windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start());
    assert!(apart, "runs touch: {:?}", column.runs());
}

fn columns_reach_from_end_to_end_of_the_world(world: &World) {
    let ids = Ids::register(world);
    let ends = [ChunkPos::MIN, ChunkPos::MIN + 1, -1, 0, ChunkPos::MAX - 1, ChunkPos::MAX];
    let corners = [ChunkPos::MIN, -1, ChunkPos::MAX];
    for x in corners {
        for z in corners {
            save(world, ends.map(|y| (ids.at(x, y, z), filled(world, ids.stone))));
            save(world, [(ids.at(x, 7, z), marked(world, &ids, 0))]);
        }
    }
    let check = || {
        for x in [i64::MIN, i64::MIN + 15, -1, -16, i64::MAX - 15, i64::MAX] {
            for z in [i64::MIN, -1, i64::MAX] {
                compare(world, &ids, x, z, &[&ends[..], &[7]].concat());
            }
        }
        let column = world.opacity().column(ids.overworld, i64::MAX, i64::MIN).expect("reads");
        assert!(column.is_opaque(i64::MIN) && column.is_opaque(i64::MAX));
        assert!(world.opacity().column(ids.overworld, 0, 0).expect("reads").runs().is_empty());
        assert!(world.opacity().column(ids.nether, -1, -1).expect("reads").runs().is_empty());
    };
    check();
    world.opacity().fold(3).expect("folds");
    check();
    world.opacity().fold(usize::MAX).expect("folds");
    check();
    world.opacity().rebuild().expect("draws");
    check();
    assert_sound(world);
}

fn a_map_that_was_off_is_drawn_again(world: &World) {
    let off = WorldOptions { opacity: cg_store::opacity::Keep::Off, ..options() };
    let blind = World::builder().options(&off).in_memory().expect("a world");
    let ids = Ids::register(&blind);
    save(&blind, [(ids.at(0, 0, 0), marked(&blind, &ids, 3)), (ids.at(0, 9, 0), filled(&blind, ids.stone))]);
    assert_eq!(blind.opacity().rebuild().expect("draws"), 1);
    compare(&blind, &ids, 0, 3, &[0, 9]);
    // In a world that keeps it, drawing it again changes nothing.
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), marked(world, &ids, 3)), (ids.at(5, 9, 0), filled(world, ids.stone))]);
    world.opacity().fold(usize::MAX).expect("folds");
    let payloads = |world: &World| {
        let rows = rows(world).into_iter().filter(|((family, _), _)| *family == Family::OpacityMap);
        rows.map(|((_, key), row)| (key, row[cg_format::frame::LEN_BYTES..].to_vec())).collect::<Vec<_>>()
    };
    let (before, last) = (payloads(world), world.last_commit());
    assert_eq!(world.opacity().rebuild().expect("draws"), 0);
    assert!(before == payloads(world) && last == world.last_commit(), "nothing was written");
}

/// Puts rows of the map past the world.
fn put_map(world: &World, space: Space, key: impl AsRef<[u8]>, bytes: &[u8]) {
    plant(world, [(space, key.as_ref().to_vec(), Some(plain(bytes)))]);
}

fn drawing_again_mends_what_is_wrong_and_writes_nothing_else(world: &World) {
    let ids = Ids::register(world);
    // Six tiles in three columns of cubes; far up in one of them a second chunk.
    let all: Vec<_> = [0, 4, 8, 16, 20, -1].map(|x| ids.at(x, x & 3, -x)).into();
    save(world, all.iter().map(|at| (*at, filled(world, ids.stone))));
    save(world, [(ids.at(0, 5000, 0), marked(world, &ids, 0))]);
    world.opacity().fold(usize::MAX).expect("folds");
    let sound = map(world);
    assert_eq!(sound.len(), 6);
    let tile = |at: ChunkAt| key::opacity_tile(at);
    let columns = |bytes: &[u8]| plain(bytes);
    // A tile that is gone, one that says nothing, one that is no tile, patches that lie and that are no patches.
    plant(
        world,
        [
            (Space::OpacityTile, tile(all[0]).to_vec(), None),
            (
                Space::OpacityTile,
                tile(all[1]).to_vec(),
                Some(columns(&cg_format::opacity::transparent(cg_format::ClusterTier::L1))),
            ),
            (Space::OpacityTile, tile(all[2]).to_vec(), Some(plain(b"no tile"))),
            (Space::OpacityPatch, key::opacity_patch(all[3]).to_vec(), Some(plain(&[0]))),
            (Space::OpacityPatch, key::opacity_patch(ids.at(20, -77, -20)).to_vec(), Some(plain(b"no"))),
            (Space::OpacityPatch, [&tile(all[4])[..], &[9; 30]].concat(), Some(plain(b"no key"))),
        ],
    );
    let last = world.last_commit().get();
    assert_eq!(world.opacity().rebuild().expect("draws"), 5);
    assert_eq!(world.last_commit().get(), last + 1 + 5, "one commit for each tile, and the planted one");
    assert!(map(world) == sound);
    assert_sound(world);
}

/// The map's rows without their frames.
fn map(world: &World) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = rows(world).into_iter().filter(|((family, _), _)| *family == Family::OpacityMap);
    rows.map(|((_, key), row)| (key, row[cg_format::frame::LEN_BYTES..].to_vec())).collect()
}

fn a_tile_over_nothing_is_drawn_too(world: &World) {
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.stone))]);
    world.opacity().fold(usize::MAX).expect("folds");
    let sound = map(world);
    let bytes = sound[0].1.clone();
    // Beside the chunk in its column of cubes, far from all, in another dimension, and outside the world.
    for at in [ids.at(8, 0, 0), ids.at(-1, 0, 700), ChunkAt::new(ids.nether, ids.at(0, 0, 0).pos)] {
        put_map(world, Space::OpacityTile, key::opacity_tile(at), &bytes);
        put_map(world, Space::OpacityPatch, key::opacity_patch(at), &[1]);
    }
    let outside = [&[0; 8][..], &cg_format::morton::encode_2d([i64::MAX, 0])].concat();
    put_map(world, Space::OpacityTile, outside, &bytes);
    assert_eq!(world.opacity().column(ids.overworld, -1, 700 * 16).expect("reads").runs(), [0..=15]);
    assert_eq!(findings(world).len(), 4, "{:?}", findings(world));
    assert_eq!(world.opacity().rebuild().expect("draws"), 4);
    assert!(map(world) == sound);
    assert_sound(world);
}

fn drawing_reads_every_chunk_once(world: &World) {
    use cg_format::ClusterTier;
    let ids = Ids::register(world);
    // Nine columns of cubes, three cubes high; the middle one cold, in all of its sixteen tiles.
    let mut all = Vec::new();
    for (x, z) in (-1..2).flat_map(|x| (-1..2).map(move |z| (x, z))) {
        for y in [-3, 0, 40] {
            all.extend((0..4).flat_map(|a| (0..4).map(move |b| (16 * x + 4 * a, 16 * y, 16 * z + 4 * b))));
        }
    }
    let all: Vec<_> = all.into_iter().map(|(x, y, z)| ids.at(x, y, z)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    let middle: Vec<_> = all.iter().copied().filter(|at| (0..16).contains(&at.pos.x())).collect();
    demote(world, ClusterTier::L2, &middle, false);
    let stored: u64 = {
        let before = world.metrics().stats;
        world
            .read_view(|view| {
                view.for_each_chunk(
                    cg_store::view::Area::World,
                    |_| std::ops::ControlFlow::<()>::Continue(()),
                )
            })
            .expect("walks");
        (world.metrics().stats - before).bytes_decompressed
    };
    let before = world.metrics().stats;
    assert_eq!(world.opacity().rebuild().expect("draws"), 9 * 16, "patches become tiles");
    let work = world.metrics().stats - before;
    assert_eq!((work.chunks_decoded, work.bytes_decompressed), (all.len() as u64, stored));
    // Every row once, and for each of the 27 cubes a few keys to find it and to see whether it is the lowest.
    assert!(work.keys_scanned < all.len() as u64 + 27 * 24, "{} keys", work.keys_scanned);
}

fn commits_beside_a_drawing_are_in_the_map(world: &World) {
    let ids = Ids::register(world);
    save(world, (0..64).map(|n| (ids.at(n & 7, n >> 3, 0), filled(world, ids.stone))));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..400_u16 {
                let at = ids.at(i64::from(round & 7), i64::from(round >> 3 & 7), 0);
                save(world, [(at, marked(world, &ids, round))]);
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            world.opacity().rebuild().expect("draws");
        }
    });
    assert_sound(world);
    for x in (0..128).step_by(5) {
        compare(world, &ids, x, x & 15, &[0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_drawing_that_stops_leaves_each_tile_as_it_was_or_as_it_should_be() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let all = [0, 4, 8, 16, -30, 400];
    let mut drawn_before_it_stopped = Vec::new();
    loop {
        let fail_at = Arc::new(AtomicU64::new(u64::MAX));
        let when = Arc::clone(&fail_at);
        let engine = MemEngine::new().with_fault(move |seq| {
            (seq.get() == when.load(Ordering::Relaxed)).then_some(engine::Fault::Write)
        });
        let world = World::builder().options(&options()).over(engine).expect("a world");
        let ids = Ids::register(&world);
        // The map says stone at the bottom of every chunk; the chunks have it at their top.
        save(&world, all.map(|x| (ids.at(x, 0, 0), marked(&world, &ids, 0))));
        let tops = all.map(|x| {
            let chunk = marked(&world, &ids, 15 << 4);
            (
                Space::ChunkL0,
                key::chunk(ids.at(x, 0, 0)).to_vec(),
                Some(Draft::plain(Codec::None, 0, |out| chunk.encode(out))),
            )
        });
        plant(&world, tops);
        fail_at
            .store(world.last_commit().get() + 2 + drawn_before_it_stopped.len() as u64, Ordering::Relaxed);
        let result = world.opacity().rebuild();
        let told =
            all.map(|x| world.opacity().column(ids.overworld, x * 16, 0).expect("reads").runs().to_vec());
        let drawn = told.iter().filter(|runs| **runs == [15..=15]).count();
        let untouched = told.iter().filter(|runs| **runs == [0..=0]).count();
        assert_eq!(drawn + untouched, all.len(), "{told:?}");
        // Before it stops it has drawn one tile more each time.
        assert_eq!(drawn, drawn_before_it_stopped.len());
        let reported = findings(&world);
        assert_eq!(reported.len(), untouched, "what is wrong still is reported: {reported:?}");
        if result.is_ok() {
            assert_eq!(drawn, all.len());
            break;
        }
        assert!(matches!(result, Err(Error::Engine(engine::EngineError::WriteFailed { .. }))), "{result:?}");
        drawn_before_it_stopped.push(drawn);
    }
    assert_eq!(drawn_before_it_stopped.len(), all.len());
}

fn folding_leaves_one_row_per_tile(world: &World) {
    let ids = Ids::register(world);
    // Two tiles of 4×4 chunks.
    save(world, (0..8).map(|x| (ids.at(x, x, 0), filled(world, ids.stone))));
    let count = |space: Space| {
        let keys = rows(world).into_keys();
        keys.filter(|(family, key)| Space::of_row(*family, key) == Some(space)).count()
    };
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (8, 0));
    assert_eq!(world.opacity().fold(1).expect("folds"), 1);
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (4, 1));
    assert_eq!(world.opacity().fold(9).expect("folds"), 1);
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (0, 2));
    let last = world.last_commit();
    assert_eq!((world.opacity().fold(9).expect("has nothing to do"), world.last_commit()), (0, last));
}

fn what_does_not_change_the_outline_writes_no_patch(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    save(world, [(a, filled(world, ids.air))]);
    let patches = || rows(world).into_keys().filter(|(family, _)| *family == Family::OpacityMap).count();
    assert_eq!(patches(), 0, "air hides nothing, as before");
    save(world, [(a, filled(world, ids.glass))]);
    assert_eq!(patches(), 0);
    save(world, [(a, filled(world, ids.stone))]);
    assert_eq!(patches(), 1);
    let map = || rows(world).into_iter().find(|((family, _), _)| *family == Family::OpacityMap);
    let before = map();
    save(world, [(a, filled(world, ids.machine))]);
    assert!(before == map(), "another block that hides as much");
}

#[derive(Debug, Clone)]
enum Step {
    Save(i64, i64, Vec<u16>),
    Fill(i64, i64, bool),
    Delete(i64, i64),
    Set(i64, i64, u16, bool),
    Fold(usize),
    Rebuild,
}

fn step() -> impl Strategy<Value = Step> {
    let (x, y) = (-1..5_i64, -2..3_i64);
    prop_oneof![
        4 => (x.clone(), y.clone(), prop::collection::vec(0..4096_u16, 0..40))
            .prop_map(|(x, y, cells)| Step::Save(x, y, cells)),
        2 => (x.clone(), y.clone(), any::<bool>()).prop_map(|(x, y, opaque)| Step::Fill(x, y, opaque)),
        2 => (x.clone(), y.clone()).prop_map(|(x, y)| Step::Delete(x, y)),
        4 => (x, y, 0..4096_u16, any::<bool>()).prop_map(|(x, y, cell, opaque)| Step::Set(x, y, cell, opaque)),
        2 => (1..4_usize).prop_map(Step::Fold),
        1 => Just(Step::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_map_says_what_the_chunks_say(steps in prop::collection::vec(step(), 1..40)) {
        let world = in_memory();
        let ids = Ids::register(&world);
        for step in steps {
            match step {
                Step::Save(x, y, cells) => {
                    let mut chunk = filled(&world, ids.glass);
                    let schema = world.catalog().current_schema();
                    for cell in cells {
                        let cell = LocalPos::from_index(cell).expect("below 4096");
                        chunk.set_block(cell, ids.stone, &schema).expect("is registered");
                    }
                    save(&world, [(ids.at(x, y, 0), chunk)]);
                }
                Step::Fill(x, y, opaque) => {
                    let block = if opaque { ids.stone } else { ids.air };
                    save(&world, [(ids.at(x, y, 0), filled(&world, block))]);
                }
                Step::Delete(x, y) => {
                    let deleted = world.transaction(|tx| { tx.delete(ids.at(x, y, 0)); Ok::<_, Error>(()) });
                    deleted.expect("deletes");
                }
                Step::Set(x, y, cell, opaque) => {
                    let at = ids.at(x, y, 0);
                    let block = at.pos.block(LocalPos::from_index(cell).expect("below 4096"));
                    let kind = if opaque { ids.machine } else { ids.glass };
                    match world.transaction(|tx| tx.set_block(ids.overworld, block, kind)) {
                        Ok(_) | Err(Error::ChunkAbsent { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                Step::Fold(tiles) => drop(world.opacity().fold(tiles).expect("folds")),
                Step::Rebuild => {
                    world.opacity().rebuild().expect("draws");
                }
            }
            for x in (-16..80).step_by(7) {
                compare(&world, &ids, x, (x & 15) ^ 5, &[-2, -1, 0, 1, 2]);
            }
        }
        assert_sound(&world);
    }
}

#[test]
fn the_search_after_opening_fills_no_cache() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let schema = world.catalog().current_schema();
    let (mut random, mut scattered) = (1_u32, filled(&world, ids.air));
    // No two columns are alike, so that no tile compresses well.
    let mut scatter = || {
        for cell in (0..4096).filter_map(LocalPos::from_index) {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let block = if random >> 31 == 0 { ids.air } else { ids.stone };
            scattered.set_block(cell, block, &schema).expect("is registered");
        }
        scattered.clone()
    };
    save(&world, (0..600).map(|x| (ids.at(x * 4, 0, 0), scatter())));
    // All of them, and no call that finds none: closing would write that the map was searched.
    assert_eq!(world.opacity().fold(600).expect("folds"), 600);
    // Otherwise a compaction may go on after the world is opened, and its new tables take memory too.
    for family in [Family::OpacityMap, Family::Index, Family::ChunkL0] {
        world.engine().compact(family, engine::ALL_KEYS).expect("compacts");
    }
    drop(world);
    let resources = cg_store::Resources::new(64 << 20, 2);
    let options = WorldOptions { resources: Some(resources.clone()), ..options() };
    let world = World::builder().options(&options).open(disk.path()).expect("opens");
    let tick = |now| world.tick(cg_tiering::GameTick::new(now), &[], std::time::Duration::from_secs(60));
    let before = resources.budget().used_bytes();
    for now in 0..15 {
        tick(now).expect("ticks");
    }
    let grown = resources.budget().used_bytes().saturating_sub(before);
    let met = world.metrics().stats.keys_scanned;
    assert!(met >= 600, "{met} keys are too few for every tile");
    assert!(grown < 64 << 10, "{grown} bytes more after the search");
}
