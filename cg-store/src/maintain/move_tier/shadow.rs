//! Deleting what nothing reads any more: shadowed copies in colder tiers, and tombstones that hide nothing.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{AssembleError, ClusterBuilder, Slot, StoredCluster};
use cg_format::frame::Stamp;
use cg_format::key::{self, Family};
use cg_format::{ChunkPos, ClusterTier, Limits, Space};
use cg_tiering::{ClusterAt, CubeAt, ShadowedSlots};

use super::cube::{HotRows, hot_keys, row_of};
use super::{MoveWrites, Outcome, Prepared, commit_prepared};
use crate::engine::{Engine, Guard, Readable, ReadableExt as _};
use crate::read::chunk::hot;
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// Rewrites a cluster without its shadowed slots if it has some and `should_rewrite` returns true. Deletes the cluster
/// if no slot is left. The slots stay if the cluster would be too large without them. `should_rewrite` is called for
/// every cluster that exists and is sound.
///
/// The rows that shadow the slots are not guarded, because only moves remove a row from a hotter tier, and one move
/// runs at a time. Costs one cluster read and a scan of the hot rows of its cube. For a cold cluster it also costs the
/// directories of the warm clusters in it.
pub(crate) fn drop_shadows(
    engine: &dyn Engine,
    view: &dyn Readable,
    counters: &Counters,
    at: ClusterAt,
    should_rewrite: impl FnOnce(ShadowedSlots) -> bool,
) -> Result<Outcome, Error> {
    let (tier, (space, row_key)) = (at.pos.tier(), row_of(at));
    let damage = |problem| Damage::of_row(space, &row_key, at.to_string(), problem);
    Counters::add(&counters.engine_reads, 1);
    let Some(row) = view.get(space, &row_key)? else { return Ok(Outcome::Nothing) };
    Counters::add(&counters.clusters_read, 1);
    let cluster = StoredCluster::open(tier, &row_key, &row).map_err(damage)?;
    let mut builder = ClusterBuilder::over(&cluster);
    let mut shadowed = 0;
    for slot in shadows(view, at)? {
        if cluster.chunk_info(slot).is_some() {
            builder.remove(slot);
            shadowed += 1;
        }
    }
    let slots = ShadowedSlots { present: cluster.present_count() as u32, shadowed };
    if !should_rewrite(slots) || shadowed == 0 {
        return Ok(Outcome::Nothing);
    }
    let mut writes = MoveWrites::default();
    writes.moved.chunks = shadowed.into();
    writes.moved.bytes_read = row.len() as u64;
    writes.guards.push(Guard::same(space, row_key, &row));
    match builder.finish(&mut Limits::default()) {
        Ok(Some(smaller)) => writes.batch.put(space, row_key, smaller, Stamp::Commit),
        Ok(None) => writes.batch.delete(space, row_key),
        Err(AssembleError::Damaged(problem)) => return Err(damage(problem)),
        // Groups that were equal, and stored once, may differ without their shadows.
        Err(AssembleError::TooLarge { .. }) => return Ok(Outcome::TooLarge),
        Err(error) => unreachable!("a part of a cluster is a cluster: {error}"),
    }
    writes.commit(engine, counters)
}

/// The slots of a cluster for which a hotter tier has a sound copy or a tombstone.
fn shadows(view: &dyn Readable, cluster: ClusterAt) -> Result<BTreeSet<Slot>, Error> {
    let (mut found, mut buffer) = (BTreeSet::new(), Vec::new());
    let tier = cluster.pos.tier();
    let [first, last] = hot_keys(cluster);
    view.scan(Family::ChunkL0, (Bound::Included(&first[..]), Bound::Included(&last[..])), |key, row| {
        if let Ok(at) = key::decode_chunk(key)
            && hot(at, key, row, &mut buffer).is_ok()
        {
            found.insert(Slot::of(at.pos, tier));
        }
        ControlFlow::<()>::Continue(())
    })?;
    if tier == ClusterTier::L2 {
        let warm_key = |chunk: ChunkPos| key::cluster(cluster.dimension, chunk.cluster(ClusterTier::L1));
        let (first, last) = (warm_key(cluster.pos.min_chunk()), warm_key(cluster.pos.max_chunk()));
        view.scan(Family::ChunkL1, (Bound::Included(&first[..]), Bound::Included(&last[..])), |key, row| {
            if let Ok((_, warm)) = key::decode_cluster(ClusterTier::L1, key)
                && let Ok(hotter) = StoredCluster::open(ClusterTier::L1, key, row)
            {
                found.extend(hotter.slots().filter_map(|(slot, _)| Some(Slot::of(slot.chunk(warm)?, tier))));
            }
            ControlFlow::<()>::Continue(())
        })?;
    }
    Ok(found)
}

/// Deletes the tombstones of a cube from commits before `before`, unless a colder tier has a copy that would become
/// visible again.
///
/// The clusters are not guarded: only moves add a chunk to a cluster, they take it from a row, and one move runs at a
/// time. The content of a damaged cluster is unknown, so all tombstones above it stay. Costs a scan of the cube's hot
/// rows and the directories of its two clusters.
pub(crate) fn purge_tombstones(
    engine: &dyn Engine,
    counters: &Counters,
    cube: CubeAt,
    before: u64,
) -> Result<Outcome, Error> {
    let prepared = tombstones_to_purge(&engine.snapshot()?, counters, cube, before)?;
    commit_prepared(engine, counters, prepared)
}

/// Reads what [`purge_tombstones`] commits.
pub(crate) fn tombstones_to_purge(
    view: &dyn Readable,
    counters: &Counters,
    cube: CubeAt,
    before: u64,
) -> Result<Prepared, Error> {
    let mut writes = MoveWrites::default();
    let mut tombstones = HotRows::read(view, cube, &mut writes)?.rows;
    tombstones.retain(|row| row.value.is_none() && row.info.version < before);
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        if tombstones.is_empty() {
            return Ok(Err(Outcome::Nothing));
        }
        let (space, row_key) = row_of(cube.cluster(tier));
        let Some(row) = view.get(space, &row_key)? else { continue };
        Counters::add(&counters.clusters_read, 1);
        writes.moved.bytes_read += row.len() as u64;
        let Ok(cluster) = StoredCluster::open(tier, &row_key, &row) else {
            return Ok(Err(Outcome::Nothing));
        };
        tombstones.retain(|tombstone| cluster.chunk_info(Slot::of(tombstone.at.pos, tier)).is_none());
    }
    for tombstone in tombstones {
        writes.guards.push(tombstone.guard());
        writes.batch.delete(Space::ChunkL0, key::chunk(tombstone.at));
        writes.moved.chunks += 1;
    }
    Ok(Ok(writes))
}
