//! Cubes that are learned as empty together with another: nothing that is stored in them is taken for absent.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use super::damage::{corrupt, farm};
use super::*;
use cg_format::{CellOrder, ClusterTier, frame, key};
use cg_store::WriteBatch;

/// With memory for the absence of whole regions of 64 cubes.
fn roomy() -> WorldOptions {
    WorldOptions { cache_bytes: 64 << 20, ..options() }
}

fn world() -> (World, Ids) {
    let world = World::builder().options(&roomy()).in_memory().expect("a world");
    let ids = Ids::register(&world);
    (world, ids)
}

/// The number of stored chunks among some, the loads that missed memory, and the reads from the engine.
fn scan(world: &World, at: &[ChunkAt]) -> (usize, u64, u64) {
    let before = world.metrics().stats;
    let found = at.iter().filter(|at| world.load(**at).expect("loads").is_some()).count();
    let work = world.metrics().stats - before;
    (found, work.cache_misses, work.engine_reads)
}

#[test]
fn an_empty_cube_is_learned_with_those_after_it_up_to_the_next_row() {
    for tier in [None, Some(ClusterTier::L1), Some(ClusterTier::L2)] {
        let (world, ids) = world();
        let stored = ids.at(40, 8, 8);
        save(&world, [(stored, filled(&world, ids.stone))]);
        if let Some(tier) = tier {
            demote(&world, tier, &[stored], false);
        }
        world.cache().clear();
        let (found, misses, _) = scan(&world, &[0, 1].map(|y| ids.at(1, y, 1)));
        assert_eq!((found, misses), (0, 2), "{tier:?}");
        // In the order of keys, the 32 cubes of lower x come before the stored chunk.
        let before = [(1, 1, 20), (1, 20, 1), (20, 20, 20), (1, 1, 60)].map(|(x, y, z)| ids.at(x, y, z));
        assert_eq!(scan(&world, &before), (0, 0, 0), "{tier:?}");
        // Neither the cube of the chunk nor those after it were learned.
        let (found, misses, _) = scan(&world, &[ids.at(41, 8, 8), ids.at(60, 60, 60)]);
        assert_eq!((found, misses), (0, 2), "{tier:?}");
        assert_eq!(
            world.load(stored).expect("loads").as_deref(),
            Some(&filled(&world, ids.stone)),
            "{tier:?}"
        );
        let column = world.column(ids.overworld, 40, 8, 0..=15).expect("is sound");
        assert_eq!(column.chunks().map(|(y, _)| y).collect::<Vec<_>>(), [8], "{tier:?}");
    }
}

#[test]
fn cubes_below_zero_are_learned_in_the_order_of_their_keys() {
    let (world, ids) = world();
    let stored = ids.at(-24, -56, -56);
    save(&world, [(stored, filled(&world, ids.stone))]);
    world.cache().clear();
    assert_eq!(scan(&world, &[-63, -62].map(|y| ids.at(-47, y, -63))).0, 0);
    let before = [(-47, -63, -44), (-47, -44, -63), (-63, -28, -63)].map(|(x, y, z)| ids.at(x, y, z));
    assert_eq!(scan(&world, &before), (0, 0, 0));
    assert!(world.load(stored).expect("loads").is_some());
    let (found, misses, _) = scan(&world, &[ids.at(-23, -56, -56), ids.at(-4, -4, -4)]);
    assert_eq!((found, misses), (0, 2));
}

#[test]
fn a_view_older_than_a_commit_learns_as_much_as_any_reader() {
    let (world, ids) = world();
    let viewed = world.read_view(|view| {
        save(&world, [(ids.at(5, 0, 0), filled(&world, ids.stone))]);
        let reads = |x: i64| {
            let before = world.metrics().stats.engine_reads;
            let blocks = ChunkBox::new(ids.at(x, 1, 9).pos, ids.at(x, 1, 9).pos).blocks();
            let mut out = vec![0; 4096];
            let absent = view.read_box(ids.overworld, blocks, CellOrder::Xyz, &mut out, BlockId::get)?;
            assert_eq!(absent, 1, "nothing is there");
            Ok(world.metrics().stats.engine_reads - before)
        };
        (0..16).map(reads).collect::<Result<Vec<_>, Error>>()
    });
    let reads = viewed.expect("is sound");
    let known = [2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15];
    assert!(known.iter().all(|x| reads[*x] == 0), "each group is asked about once: {reads:?}");
}

/// Tells threads to end when it is dropped, by a failed assertion too.
struct Ends<'d>(&'d AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn what_is_saved_into_a_cube_that_is_learned_with_another_is_seen() {
    let (world, ids) = world();
    let (done, region) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        // They learn a region again and again by its first cube while chunks are saved into the others, from the last on.
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let x = 64 * region.load(Ordering::Acquire);
                    assert_eq!(scan(&world, &[0, 1].map(|y| ids.at(x, y, 0))).0, 0);
                    world.cache().clear();
                }
            });
        }
        let _ends = Ends(&done);
        let chunk = Arc::new(filled(&world, ids.stone));
        let fast = [Durability::Process, Durability::Fast];
        let places = (0..80).flat_map(|region| (1..64).rev().map(move |cube| (region, cube)));
        for ((in_region, cube), durability) in places.zip(fast.iter().cycle()) {
            region.store(in_region, Ordering::Release);
            let axis = |bit: i64| 16 * ((cube >> (bit + 3) & 1) << 1 | cube >> bit & 1) + 5;
            let at = ids.at(64 * in_region + axis(2), axis(1), axis(0));
            let saved = world.transaction_at(*durability, |tx| {
                tx.save(at, Arc::clone(&chunk));
                Ok::<_, Error>(())
            });
            drop(saved.expect("saves"));
            for _ in 0..20 {
                assert!(world.load(at).expect("loads").is_some(), "{at} is not seen after its commit");
            }
        }
    });
}

#[test]
fn what_is_queued_is_not_learned_as_absent_with_another_cube() {
    let (world, ids) = world();
    for x in 0..200 {
        let at = ids.at(64 * x + 20, 0, 0);
        let saved = world.transaction_at(Durability::Fast, |tx| {
            tx.save(at, filled(&world, ids.stone));
            Ok::<_, Error>(())
        });
        // Memory drops it before it is written, and the cube before it is asked about.
        world.cache().clear();
        assert_eq!(scan(&world, &[1, 2].map(|y| ids.at(64 * x, y, 0))).0, 0);
        assert!(world.load(at).expect("loads").is_some(), "{at}");
        drop(saved.expect("is taken"));
    }
}

#[test]
fn a_damaged_row_is_not_learned_as_absent_with_another_cube() {
    for tier in [None, Some(ClusterTier::L1), Some(ClusterTier::L2)] {
        let (disk, ids, ..) = farm();
        let stored = ids.at(40, 8, 8);
        let (family, row) = match tier {
            None => (Family::ChunkL0, key::chunk(stored)),
            Some(ClusterTier::L1) => {
                (Family::ChunkL1, key::cluster(stored.dimension, stored.pos.cluster(ClusterTier::L1)))
            }
            Some(ClusterTier::L2) => {
                (Family::ChunkL2, key::cluster(stored.dimension, stored.pos.cluster(ClusterTier::L2)))
            }
        };
        let world = disk.open(&[]);
        save(&world, [(stored, filled(&world, ids.stone))]);
        if let Some(tier) = tier {
            demote(&world, tier, &[stored], false);
        }
        world.close().expect("closes");
        drop(world);
        disk.raw().flip(family, row, frame::LEN_BYTES + 2);
        let world = World::builder().options(&roomy()).open(disk.path()).expect("opens");
        for _ in 0..2 {
            assert_eq!(scan(&world, &[33, 34, 35].map(|z| ids.at(1, 1, z))).0, 0);
            assert_eq!(scan(&world, &[ids.at(1, 20, 40)]), (0, 0, 0), "{tier:?}: the next cube was learned");
            corrupt(world.load(stored));
            corrupt(world.column(ids.overworld, 40, 8, 0..=15));
        }
    }
}

/// Asks for a column and for its chunks, twice each: the second time the thread knows the cubes.
fn heights_of(world: &World, ids: &Ids, x: i64) -> Vec<i64> {
    let at: Vec<_> = (-20..20).map(|y| ids.at(x, y, 3)).collect();
    let column = || {
        let column = world.column(ids.overworld, x, 3, -20..=19).expect("is sound");
        column.chunks().map(|(y, _)| y).collect::<Vec<_>>()
    };
    let chunks = || {
        let found = world.load_many(&at).into_iter().zip(&at);
        found.filter_map(|(found, at)| found.expect("is sound").map(|_| at.pos.y())).collect::<Vec<_>>()
    };
    let seen = [column(), chunks(), column(), chunks()];
    assert!(seen.iter().all(|heights| *heights == seen[0]), "column {x}: {seen:?}");
    seen[0].clone()
}

#[test]
fn a_thread_that_knows_an_empty_cube_sees_what_is_saved_into_it() {
    let (world, ids) = world();
    let other = self::world().0;
    Ids::register(&other);
    save(&other, [(ids.at(2, 7, 3), filled(&other, ids.stone))]);
    assert_eq!(heights_of(&world, &ids, 1), [0; 0]);
    // The same cube of another world is another one.
    assert_eq!(heights_of(&other, &ids, 2), [7]);
    assert_eq!(heights_of(&world, &ids, 2), [0; 0]);
    for (y, durability) in [(-17, Durability::Fast), (15, Durability::Process), (16, Durability::Balanced)] {
        let saved = world.transaction_at(durability, |tx| {
            tx.save(ids.at(2, y, 3), filled(&world, ids.stone));
            Ok::<_, Error>(())
        });
        let heights = heights_of(&world, &ids, 2);
        assert_eq!(heights.last(), Some(&y), "{heights:?}");
        assert_eq!(heights_of(&world, &ids, 1), [0; 0], "its neighbour is still absent");
        drop(saved.expect("saves"));
    }
    let mut batch = WriteBatch::new();
    batch.save(ids.at(1, 3, 3), filled(&world, ids.glass));
    drop(world.submit(batch).expect("there is room"));
    assert_eq!(heights_of(&world, &ids, 1), [3]);
    let deleted = world.transaction(|tx| {
        tx.delete(ids.at(1, 3, 3));
        Ok::<_, Error>(())
    });
    drop(deleted.expect("deletes"));
    assert_eq!(heights_of(&world, &ids, 1), [0; 0]);
}

#[test]
fn a_column_after_an_absent_one_is_checked_as_the_first() {
    let (world, ids) = world();
    assert_eq!(heights_of(&world, &ids, 1), [0; 0]);
    let highest = World::MAX_COLUMN_CHUNKS as i64;
    let too_high = world.column(ids.overworld, 1, 3, 0..=highest);
    assert!(
        matches!(too_high, Err(Error::ColumnTooHigh { chunks }) if chunks == World::MAX_COLUMN_CHUNKS + 1),
        "{too_high:?}"
    );
    for ys in [i64::MAX - 3..=i64::MAX, i64::MIN..=i64::MIN + 3] {
        let outside = world.column(ids.overworld, 1, 3, ys);
        assert!(matches!(outside, Err(Error::Position(_))), "{outside:?}");
    }
    let outside = world.column(ids.overworld, i64::MAX, 3, 0..=3);
    assert!(matches!(outside, Err(Error::Position(_))), "{outside:?}");
    // No heights are no chunks.
    assert!(world.column(ids.overworld, 1, 3, RangeInclusive::new(3, 0)).expect("is empty").is_absent());
}

#[test]
fn many_chunks_of_empty_cubes_are_answered_together_until_one_is_saved() {
    let (world, ids) = world();
    save(&world, [(ids.at(200, 0, 0), filled(&world, ids.stone))]);
    let area: Vec<_> =
        (0..40).flat_map(|x| (0..40).map(move |z| (x, z))).map(|(x, z)| ids.at(x, x % 7, z)).collect();
    let load = |area: &[ChunkAt]| {
        let before = world.metrics().stats;
        let found: Vec<_> = world.load_many(area).into_iter().map(|found| found.expect("loads")).collect();
        let work = world.metrics().stats - before;
        (found.iter().flatten().count(), work.cache_hits, work.engine_reads)
    };
    load(&area);
    assert_eq!(load(&area), (0, area.len() as u64, 0), "all are known");
    // The last of the area, and one between others, in groups of their own.
    for saved in [area[area.len() - 1], area[777]] {
        save(&world, [(saved, filled(&world, ids.stone))]);
        let found = world.load_many(&area);
        let place = |at: &ChunkAt| area.iter().position(|of_area| of_area == at).expect("of the area");
        let stone = found[place(&saved)].as_ref().expect("loads").as_deref();
        assert_eq!(stone, Some(&filled(&world, ids.stone)), "{saved}");
    }
    assert_eq!(load(&area).0, 2);
    // What is submitted is accepted first.
    let mut batch = WriteBatch::new();
    batch.save(area[5], filled(&world, ids.stone));
    world.submit(batch).expect("is taken");
    assert!(world.load_many(&area[4..6])[1].as_ref().expect("loads").is_some());
    world.close().expect("closes");
    assert!(matches!(world.load_many(&area[..1])[0], Err(Error::Closed)));
}
