//! Boxes read across tiers: each cluster once, only the groups that are asked for, and all of one state.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use super::moves::player;
use super::*;
use cg_format::cluster::{Slot, StoredCluster};
use cg_format::{BlockBox, CellOrder, ClusterTier, Limits, Space, key};
use cg_store::metrics::Stats;
use cg_store::view::Area;
use cg_tiering::GameTick;

over_both_engines! {
    a_cold_box_reads_each_cluster_once_and_only_its_groups
    a_walk_over_a_box_reads_each_of_its_clusters_once
    a_few_chunks_of_a_full_cluster_are_the_only_ones_decoded
    a_box_is_of_one_state_while_chunks_move_and_change
    a_plane_through_many_clusters_reads_each_of_them_once
    a_box_is_written_into_cold_chunks_by_one_read_of_each_cluster
}

const DAY: u64 = 24 * 3600 * GameTick::PER_SECOND;

fn chunks(from: [i64; 3], to: [i64; 3]) -> ChunkBox {
    let corner = |[x, y, z]: [i64; 3]| ChunkPos::constant(x, y, z);
    ChunkBox::new(corner(from), corner(to))
}

/// 11×11×24 chunks over four cold clusters, at the edge of no group.
fn view_distance() -> ChunkBox {
    chunks([3, -5, 2], [13, 5, 25])
}

/// Saves chunks of one block each, a mark in each telling it from its neighbours.
fn fill(world: &World, ids: &Ids, area: ChunkBox) -> Vec<ChunkAt> {
    let all: Vec<_> = area.iter().map(|pos| ChunkAt::new(ids.overworld, pos)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, ids, n % 4096))));
    all
}

/// The blocks of a box of chunks, or the number of what is not stored.
#[track_caller]
fn read(world: &World, ids: &Ids, area: ChunkBox) -> (Vec<u64>, Stats) {
    let blocks = area.blocks();
    let mut out = vec![u64::MAX; 4096 * area.iter().count()];
    let before = world.metrics().stats;
    let absent = world
        .read_view(|view| view.read_box(ids.overworld, blocks, CellOrder::Xyz, &mut out, BlockId::get))
        .expect("is sound");
    assert_eq!(absent, out.iter().filter(|block| **block == u64::MAX).count() as u64 / 4096);
    (out, world.metrics().stats - before)
}

/// The cold clusters that hold chunks of a box, and the bytes of their groups that do.
fn cold_parts(world: &World, ids: &Ids, area: ChunkBox) -> (u64, u64) {
    let tier = ClusterTier::L2;
    let mut slots: BTreeMap<_, Vec<Slot>> = BTreeMap::new();
    for pos in area.iter() {
        slots.entry(pos.cluster(tier)).or_default().push(Slot::of(pos, tier));
    }
    let count = slots.len() as u64;
    let mut bytes = 0;
    for (cluster, slots) in slots {
        let row_key = key::cluster(ids.overworld, cluster);
        let engine = world.engine();
        let row = engine.get(Space::ClusterL2, &row_key).expect("reads").expect("is cold");
        let cluster = StoredCluster::open(tier, &row_key, &row).expect("is sound");
        let groups: BTreeSet<u8> = slots.into_iter().map(|slot| cluster.group_of(slot)).collect();
        for group in groups {
            let group = cluster.group(group, &mut Limits::default()).expect("is sound").expect("is there");
            bytes += group.decompressed_bytes() as u64;
        }
    }
    (count, bytes)
}

fn a_cold_box_reads_each_cluster_once_and_only_its_groups(world: &World) {
    let ids = Ids::register(world);
    let area = view_distance();
    let all = fill(world, &ids, area);
    // Another group of a cluster of the box, which is not to be opened.
    save(world, [(ids.at(0, -16, 0), marked(world, &ids, 7))]);
    let (expected, _) = read(world, &ids, area);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    world.cache().clear();
    let (clusters, bytes) = cold_parts(world, &ids, area);
    let (found, work) = read(world, &ids, area);
    assert!(found == expected, "a move changes no block");
    assert_eq!((clusters, work.clusters_read), (4, 4));
    assert_eq!((work.bytes_decompressed, work.chunks_decoded), (bytes, all.len() as u64));
    let warm = all.iter().map(|at| at.pos.cluster(ClusterTier::L1)).collect::<BTreeSet<_>>().len() as u64;
    assert_eq!(work.engine_reads, all.len() as u64 + warm + 4, "each key of each tier once");
}

fn a_walk_over_a_box_reads_each_of_its_clusters_once(world: &World) {
    let ids = Ids::register(world);
    let around = chunks([-8, -8, -8], [7, 7, 7]);
    let all = fill(world, &ids, around);
    // One chunk in a group of each of eight cold cubes.
    let area = chunks([-1, -1, -1], [0, 0, 0]);
    let walk = || {
        let (mut met, before) = (BTreeSet::new(), world.metrics().stats);
        let walked = world.read_view(|view| {
            view.for_each_chunk(Area::Box(ids.overworld, area), |stored| {
                assert!(met.insert(stored.expect("is sound").at), "each once");
                ControlFlow::<()>::Continue(())
            })
        });
        assert_eq!(walked.expect("walks"), None);
        assert_eq!(met.len() as u128, area.count());
        world.metrics().stats - before
    };
    let hot = walk();
    assert_eq!(
        (hot.keys_scanned, hot.clusters_read),
        (8 * 64, 0),
        "of 4,096 rows, those of the box's groups"
    );
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let (clusters, bytes) = cold_parts(world, &ids, area);
    let cold = walk();
    assert_eq!((cold.keys_scanned, cold.clusters_read, cold.bytes_decompressed), (8, clusters, bytes));
    save(world, all.iter().map(|at| (*at, filled(world, ids.glass))));
    demote(world, ClusterTier::L1, &all, false);
    let warm = walk();
    assert_eq!(
        (warm.keys_scanned, warm.clusters_read),
        (8 + 8, 8 + 8),
        "and 56 warm clusters are not fetched"
    );
}

fn a_few_chunks_of_a_full_cluster_are_the_only_ones_decoded(world: &World) {
    let ids = Ids::register(world);
    let all = fill(world, &ids, chunks([0, 0, 0], [15, 15, 15]));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    for (from, to) in [([4, 8, 12], [7, 11, 15]), ([2, 2, 2], [5, 5, 5])] {
        world.cache().clear();
        let area = chunks(from, to);
        let (clusters, bytes) = cold_parts(world, &ids, area);
        let (_, work) = read(world, &ids, area);
        assert_eq!((all.len(), work.chunks_decoded), (4096, 64));
        assert_eq!((work.clusters_read, work.bytes_decompressed), (clusters, bytes));
        let (_, again) = read(world, &ids, area);
        assert_eq!((again.chunks_decoded, again.engine_reads, again.cache_hits), (0, 0, 64), "in memory");
    }
}

fn a_box_is_of_one_state_while_chunks_move_and_change(world: &World) {
    let ids = Ids::register(world);
    let area = chunks([-2, 0, 14], [1, 1, 17]);
    let all = fill(world, &ids, area);
    let (warm, cold) = (&all[..16], &all[16..24]);
    demote(world, ClusterTier::L1, warm, false);
    demote(world, ClusterTier::L2, cold, false);
    world.cache().clear();
    // Some are in memory, some are deleted, the rest is in all three tiers.
    for at in all.iter().step_by(5) {
        assert!(world.load(*at).expect("is sound").is_some());
    }
    let delete = |at: ChunkAt| {
        let deleted = world.transaction(|tx| {
            tx.delete(at);
            Ok::<_, Error>(())
        });
        deleted.expect("deletes");
    };
    delete(all[20]);
    let (expected, _) = read(world, &ids, area);
    world.cache().clear();
    assert!(world.load(all[1]).expect("is sound").is_some());

    let blocks = area.blocks();
    for order in CellOrder::ALL {
        let mut before = vec![u64::MAX; expected.len()];
        world
            .read_view(|view| view.read_box(ids.overworld, blocks, order, &mut before, BlockId::get))
            .expect("is sound");
        world.cache().clear();
        // In the middle of the read all is moved, and then everything that has not been read is changed at once.
        let mut seen = 0_u64;
        let mut found = vec![u64::MAX; expected.len()];
        let absent = world.read_view(|view| {
            view.read_box(ids.overworld, blocks, order, &mut found, |block| {
                seen += 1;
                if seen == 4096 {
                    world.tiers().demote_all(DAY, |_| {}).expect("settles");
                    save(world, all.iter().map(|at| (*at, filled(world, ids.glass))));
                    delete(all[30]);
                    world.tiers().demote_all(DAY, |_| {}).expect("settles");
                    let here = [player(1, ids.overworld, 0, 8, 250)];
                    for minute in 1..4 {
                        let now = world.tiers().clock().now().get() + minute * 60 * GameTick::PER_SECOND;
                        world.tick(GameTick::new(now), &here, Duration::from_secs(60)).expect("ticks");
                    }
                }
                block.get()
            })
        });
        assert_eq!(seen, before.iter().filter(|block| **block != u64::MAX).count() as u64, "each once");
        assert_eq!(absent.expect("is sound"), 1, "{order:?}");
        assert!(found == before, "{order:?}: a part is of a later state");
        assert_eq!(
            world.load(all[30]).expect("is sound"),
            None,
            "what was read is not kept over what is newer"
        );
        assert_eq!(world.load(all[31]).expect("is sound").as_deref(), Some(&filled(world, ids.glass)));
        // As before, for the next order.
        save(
            world,
            all.iter().zip(0..).filter(|(_, n)| *n != 20).map(|(at, n)| (*at, marked(world, &ids, n))),
        );
        delete(all[20]);
        world.tiers().demote_all(DAY, |_| {}).expect("settles");
    }
    assert_sound(world);
}

fn a_plane_through_many_clusters_reads_each_of_them_once(world: &World) {
    let ids = Ids::register(world);
    // One chunk in each of many cold clusters along each axis.
    let spread: Vec<_> = (0..3)
        .flat_map(|axis| (0..6).map(move |n| [0, 1, 2].map(|a| if a == axis { n * 16 } else { 0 })))
        .collect();
    let all: BTreeSet<_> = spread.into_iter().map(|[x, y, z]| ids.at(x, y, z)).collect();
    save(world, all.iter().map(|at| (*at, filled(world, ids.stone))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    // A plane of single blocks: many chunks, and a slice that is small all the same.
    for (order, [x, y, z]) in
        [(CellOrder::Xyz, [95, 95, 0]), (CellOrder::Zyx, [0, 95, 95]), (CellOrder::Yzx, [95, 0, 95])]
    {
        world.cache().clear();
        let min = BlockPos::new(0, 0, 0);
        let max = BlockPos::new(
            if x == 0 { 0 } else { 16 * x },
            if y == 0 { 0 } else { 16 * y },
            if z == 0 { 0 } else { 16 * z },
        );
        let area = BlockBox::new(min, max);
        let [sx, sy, sz] = area.size().map(|side| side as usize);
        let mut out = vec![0; sx * sy * sz];
        let before = world.metrics().stats;
        let absent = world
            .read_view(|view| view.read_box(ids.overworld, area, order, &mut out, BlockId::get))
            .expect("is sound");
        let work = world.metrics().stats - before;
        assert_eq!(u128::from(absent), area.chunks().count() - 11, "{order:?}");
        assert_eq!((work.clusters_read, work.chunks_decoded), (11, 11), "{order:?}");
    }
}

fn a_box_is_written_into_cold_chunks_by_one_read_of_each_cluster(world: &World) {
    let ids = Ids::register(world);
    let area = chunks([2, 0, 14], [5, 3, 17]);
    let all = fill(world, &ids, area);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    world.cache().clear();
    let values = vec![(); 4096 * all.len()];
    let blocks = area.blocks();
    let (before, mut after) = (world.metrics().stats, world.metrics().stats);
    let written = world.transaction(|tx| {
        tx.write_box(ids.overworld, blocks, CellOrder::Yzx, &values, ids.air, |()| Some(ids.glass))?;
        after = world.metrics().stats;
        Ok::<_, Error>(())
    });
    written.expect("commits");
    let work = after - before;
    assert_eq!((work.clusters_read, work.chunks_decoded), (2, all.len() as u64));
    let (found, _) = read(world, &ids, area);
    assert!(found.iter().all(|block| *block == ids.glass.get()));
    assert_sound(world);
}
