//! A save in the middle of a move: the move gives up, and nothing is changed.

use std::ops::ControlFlow;

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkPos, ClusterTier, Dimension, Space, key};
use cg_tiering::{CubeAt, GameTick, Heat};

use super::*;
use crate::engine::{ALL_KEYS, Level, MemEngine, Readable as _, ReadableExt as _};

const HEAT: Heat = Heat { last_access: GameTick::new(3), moved_at: None };

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

fn save(engine: &MemEngine, chunks: impl IntoIterator<Item = i64>, value: &'static [u8]) {
    let mut batch = Batch::new();
    for x in chunks {
        let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(value));
        batch.put(Space::ChunkL0, key::chunk(at(x)), row, Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).unwrap();
}

/// The rows of all three tiers.
fn rows(engine: &MemEngine) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for family in [Family::ChunkL0, Family::ChunkL1, Family::ChunkL2] {
        let shown = engine.scan(family, ALL_KEYS, |key, row| {
            rows.push((key.to_vec(), row.to_vec()));
            ControlFlow::<()>::Continue(())
        });
        shown.unwrap();
    }
    rows
}

/// A cold cluster that is being built from two cubes, with both cubes finished.
fn made(engine: &MemEngine, counters: &Counters) -> ColdMerge {
    let cubes = [0, 4].map(|x| CubeAt::of(at(x)));
    let mut merge = ColdMerge::begin(engine, cubes[0].cluster(ClusterTier::L2)).unwrap();
    for cube in cubes {
        let made = merge.make(engine, counters, cube, HEAT).unwrap().unwrap();
        merge.take(made);
    }
    merge
}

#[test]
fn an_undisturbed_merge_moves_all_at_once() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    save(&engine, 0..8, b"a chunk");
    let merge = made(&engine, &counters);
    assert_eq!(rows(&engine).len(), 8, "nothing is written before the end");
    let end = merge.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Done(Moved { chunks: 8, .. })), "{end:?}");
    assert_eq!(rows(&engine).len(), 1, "one cold cluster");
}

#[test]
fn a_save_of_what_moves_makes_the_move_give_up() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    save(&engine, 0..8, b"a chunk");
    let merge = made(&engine, &counters);
    save(&engine, [5], b"changed");
    let before = rows(&engine);
    let end = merge.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Conflict), "{end:?}");
    assert!(rows(&engine) == before);
}

#[test]
fn a_save_of_a_cube_leaves_the_others_of_its_cluster_or_batch_to_go_on() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    save(&engine, 0..12, b"a chunk");
    let merge = made(&engine, &counters);
    save(&engine, [5], b"changed");
    let end = merge.commit(&engine, &counters, true).unwrap();
    assert!(matches!(end.end, Outcome::Done(Moved { chunks: 4, .. })), "{:?}", end.end);
    assert_eq!((end.changed, end.made), (vec![CubeAt::of(at(4))], vec![(CubeAt::of(at(0)), HEAT)]));
    assert_eq!(rows(&engine).len(), 9, "eight hot chunks and a cold cluster");

    let view = engine.snapshot().unwrap();
    let moves = [4, 8, 100].map(|x| warm_demotion(&view, CubeAt::of(at(x)), HEAT).unwrap());
    let [changed, other, nothing] = moves;
    assert!(matches!(nothing, Err(Outcome::Nothing)));
    save(&engine, [6], b"changed");
    let moves = vec![changed.unwrap(), MoveWrites::default(), other.unwrap()];
    let ends = commit_together(&engine, &counters, moves).unwrap();
    let [Outcome::Conflict, Outcome::Nothing, Outcome::Done(Moved { chunks: 4, bytes_written, .. })] =
        ends[..]
    else {
        panic!("{ends:?}")
    };
    assert!(bytes_written > 0);
    assert_eq!(rows(&engine).len(), 6, "four hot chunks, a warm cluster and a cold one");
}

#[test]
fn moves_that_do_not_fit_into_a_batch_are_several() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    let mut random = noise();
    let value: Vec<u8> = (0..3 << 17).flat_map(|_| random().to_le_bytes()).collect();
    for x in [0, 4, 8] {
        let mut batch = Batch::new();
        let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(&value));
        batch.put(Space::ChunkL0, key::chunk(at(x)), row, Stamp::Commit);
        engine.commit(batch, &[], Level::Process).unwrap();
    }
    let before = engine.batch_count();
    let view = engine.snapshot().unwrap();
    let moves = [0, 4, 8].map(|x| warm_demotion(&view, CubeAt::of(at(x)), HEAT).unwrap().unwrap());
    let ends = commit_together(&engine, &counters, moves.into()).unwrap();
    assert!(ends.iter().all(|end| matches!(end, Outcome::Done(Moved { chunks: 1, .. }))), "{ends:?}");
    assert_eq!(engine.batch_count() - before, 3, "each has three megabytes");
}

#[test]
fn another_cluster_at_the_place_makes_the_move_give_up() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    save(&engine, 0..8, b"a chunk");
    let late = made(&engine, &counters);
    let end = made(&engine, &counters).commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Done(_)), "{end:?}");
    let before = rows(&engine);
    let end = late.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Conflict), "{end:?}");
    assert!(rows(&engine) == before);
}

#[test]
fn many_hot_rows_are_gathered_into_the_warm_cluster_first() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    // Five rows in one cube exceed the number that is compared under the engine's lock at the end.
    let places = (0..5).map(|n| ChunkPos::constant(0, n / 4, n % 4));
    let mut batch = Batch::new();
    for pos in places {
        let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(b"a chunk"));
        batch.put(Space::ChunkL0, key::chunk(ChunkAt::new(Dimension::new(0), pos)), row, Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).unwrap();
    let cube = CubeAt::of(at(0));
    let mut merge = ColdMerge::begin(&engine, cube.cluster(ClusterTier::L2)).unwrap();
    let made = merge.make(&engine, &counters, cube, HEAT).unwrap().unwrap();
    merge.take(made);
    assert_eq!(rows(&engine).len(), 1, "a warm cluster");
    let heat = engine.get(Space::Heat, &key::heat(at(0))).unwrap();
    assert!(heat.is_some(), "which is found by its heat");
    let end = merge.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Done(Moved { chunks: 5, .. })), "{end:?}");
    assert!(engine.get(Space::Heat, &key::heat(at(0))).unwrap().is_none());
    let again = demote_warm(&engine, &counters, cube, HEAT).unwrap();
    assert!(matches!(again, Outcome::Nothing), "{again:?}");
}

#[test]
fn marks_stay_above_what_they_hide_or_what_nobody_can_read() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    let delete = |chunks: &[i64]| {
        let mut batch = Batch::new();
        for x in chunks {
            batch.put(Space::ChunkL0, key::chunk(at(*x)), Draft::tombstone(0), Stamp::Commit);
        }
        engine.commit(batch, &[], Level::Process).unwrap().get()
    };
    let forget = |x: i64, before: u64| match purge_tombstones(&engine, &counters, CubeAt::of(at(x)), before)
        .unwrap()
    {
        Outcome::Nothing => 0,
        Outcome::Done(moved) => moved.chunks,
        other => panic!("{other:?}"),
    };
    let warm = CubeAt::of(at(0)).cluster(ClusterTier::L1);
    save(&engine, 0..2, b"a chunk");
    assert!(matches!(demote_warm(&engine, &counters, CubeAt::of(at(0)), HEAT), Ok(Outcome::Done(_))));
    let early = delete(&[0, 2]);
    let late = delete(&[3]);
    assert_eq!(forget(0, early), 0, "the deletions of this commit and of later ones are kept");
    assert_eq!(forget(0, late), 1, "of two old ones, the one that hides nothing");
    let left = |x: i64| engine.get(Space::ChunkL0, &key::chunk(at(x))).unwrap().is_some();
    assert_eq!([0, 1, 2, 3].map(left), [true, false, false, true]);
    // A warm cluster that cannot be read.
    let mut batch = Batch::new();
    let (space, row_key) = row_of(warm);
    batch.put(space, row_key, Draft::plain(Codec::None, 0, |out| out.push(1)), Stamp::Commit);
    engine.commit(batch, &[], Level::Process).unwrap();
    assert_eq!(forget(0, late + 1), 0, "nobody can tell what lies in it");
    let mut batch = Batch::new();
    batch.delete(space, row_key);
    engine.commit(batch, &[], Level::Process).unwrap();
    assert_eq!(forget(0, late + 1), 2);
    assert_eq!(rows(&engine).len(), 0);
}

/// Numbers whose bytes no codec makes shorter.
fn noise() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// The first cube has the longer groups together, the second has the longest group.
#[test]
fn the_largest_cube_is_left_out_of_a_cluster_that_would_be_too_large() {
    let (engine, counters) = (MemEngine::new(), Counters::default());
    let mut random = noise();
    let mut batch = Batch::new();
    for (x, megabytes) in [(0, 3), (2, 3), (4, 4)] {
        let value: Vec<u8> = (0..megabytes << 17).flat_map(|_| random().to_le_bytes()).collect();
        let row = Draft::plain(Codec::None, 0, |out| out.extend(value));
        batch.put(Space::ChunkL0, key::chunk(at(x)), row, Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).unwrap();
    let end = made(&engine, &counters).commit(&engine, &counters, false).unwrap();
    assert!(matches!(end.end, Outcome::Done(Moved { chunks: 1, .. })), "{:?}", end.end);
    assert_eq!(end.left_out, [CubeAt::of(at(0))]);
    assert_eq!(end.made, [(CubeAt::of(at(4)), HEAT)]);
    assert_eq!(rows(&engine).len(), 3, "two hot chunks and a cold cluster");
}

#[test]
fn a_cold_row_of_an_earlier_draft_is_merged_into_one_of_now() {
    let old = include_bytes!("../../../../testdata/golden/draft/cluster/compact_l2_three_groups.bin");
    let (engine, counters) = (MemEngine::new(), Counters::default());
    let chunk = |x, y, z| ChunkAt::new(Dimension::new(1), ChunkPos::constant(x, y, z));
    let cube = CubeAt::of(chunk(-14, 0, 32));
    let (space, row_key) = row_of(cube.cluster(ClusterTier::L2));
    let (row, _) = Draft::of_row(space, &row_key, old).unwrap();
    let mut batch = Batch::new();
    batch.put(space, row_key, row, Stamp::Commit);
    let hot = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(b"a hot chunk"));
    batch.put(Space::ChunkL0, key::chunk(chunk(-14, 0, 32)), hot, Stamp::Commit);
    let seq = engine.commit(batch, &[], Level::Process).unwrap().get();
    let mut merge = ColdMerge::begin(&engine, cube.cluster(ClusterTier::L2)).unwrap();
    let made = merge.make(&engine, &counters, cube, HEAT).unwrap().unwrap();
    merge.take(made);
    let end = merge.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Done(Moved { chunks: 1, .. })), "{end:?}");

    let row = engine.get(space, &row_key).unwrap().unwrap();
    assert_eq!((old[24], row[24]), (2, 5), "directory versions");
    let cluster = StoredCluster::open(ClusterTier::L2, &row_key, &row).unwrap();
    let expected = [
        (-16, 0, 32, 0, 1000, "chunk 0"),
        (-16, 0, 33, 0, 1001, "chunk 1."),
        (-16, 1, 32, 0, 1016, "chunk 16.."),
        (-14, 0, 32, 1, seq, "a hot chunk"),
        (-9, 13, 32, 57, 3000, "chunk 2000....."),
        (-1, 15, 46, 127, 5094, "chunk 4094......"),
        (-1, 15, 47, 127, 5095, "chunk 4095"),
    ];
    assert_eq!(cluster.present_count(), expected.len());
    for (x, y, z, group, version, value) in expected {
        let slot = Slot::of(ChunkPos::constant(x, y, z), ClusterTier::L2);
        assert_eq!(cluster.group_of(slot), group);
        assert_eq!(cluster.chunk_info(slot).unwrap().version, version);
        let group = cluster.group(group, &mut Limits::default()).unwrap().unwrap();
        assert_eq!(group.chunk(slot).as_deref(), Some(value.as_bytes()));
    }
}

/// Equal groups of 64 cubes are stored once. Each loses other chunks to hot copies, and all of them do not fit into a row.
#[test]
fn a_cluster_whose_groups_differ_without_their_shadows_keeps_them_if_it_would_be_too_large() {
    const CHUNKS: u64 = 30;
    const SHADOWED: u64 = 8;
    let place = |cube: i64, chunk: i64| {
        let corner = [cube / 16, cube / 4 % 4, cube % 4].map(|side| side * 4);
        let [x, y, z] = [corner[0] + chunk / 16, corner[1] + chunk / 4 % 4, corner[2] + chunk % 4];
        ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, y, z))
    };
    let mut random = noise();
    let values: Vec<Vec<u8>> =
        (0..CHUNKS).map(|_| (0..800).flat_map(|_| random().to_le_bytes()).collect()).collect();
    let (engine, counters) = (MemEngine::new(), Counters::default());
    let put = |chunks: &mut dyn Iterator<Item = (i64, u64)>| {
        let mut batch = Batch::new();
        for (cube, chunk) in chunks {
            let value = &values[chunk as usize];
            let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(value));
            batch.put(Space::ChunkL0, key::chunk(place(cube, chunk as i64)), row, Stamp::Commit);
        }
        engine.commit(batch, &[], Level::Process).unwrap();
    };
    put(&mut (0..64).flat_map(|cube| (0..CHUNKS).map(move |chunk| (cube, chunk))));
    let cluster = CubeAt::of(place(0, 0)).cluster(ClusterTier::L2);
    let mut merge = ColdMerge::begin(&engine, cluster).unwrap();
    for cube in 0..64 {
        let made = merge.make(&engine, &counters, CubeAt::of(place(cube, 0)), HEAT).unwrap().unwrap();
        merge.take(made);
    }
    let end = merge.commit(&engine, &counters, false).unwrap().end;
    assert!(matches!(end, Outcome::Done(Moved { chunks: 1920, .. })), "{end:?}");

    let mut shadowed = Vec::new();
    for cube in 0..64 {
        let mut chunks: Vec<_> = (0..CHUNKS).collect();
        (0..SHADOWED)
            .for_each(|_| shadowed.push((cube, chunks.swap_remove(random() as usize % chunks.len()))));
    }
    put(&mut shadowed.into_iter());
    let before = rows(&engine);
    let end = drop_shadows(&engine, &engine.snapshot().unwrap(), &counters, cluster, |_| true).unwrap();
    assert!(matches!(end, Outcome::TooLarge), "{end:?}");
    assert_eq!(rows(&engine), before);
}
