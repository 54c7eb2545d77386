//! Purging the tombstones of a cube.

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::{ClusterTier, Space, key};
use cg_tiering::CubeAt;

use super::cube::{HotRows, row_of};
use super::{MoveWrites, Outcome};
use crate::engine::{Engine, Readable as _};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

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
    let view = engine.snapshot()?;
    let mut writes = MoveWrites::default();
    let mut tombstones = HotRows::read(&view, cube, &mut writes)?.rows;
    tombstones.retain(|row| row.value.is_none() && row.info.version < before);
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        if tombstones.is_empty() {
            return Ok(Outcome::Nothing);
        }
        let (space, row_key) = row_of(cube.cluster(tier));
        let Some(row) = view.get(space, &row_key)? else { continue };
        Counters::add(&counters.clusters_read, 1);
        writes.moved.bytes_read += row.len() as u64;
        let Ok(cluster) = StoredCluster::open(tier, &row_key, &row) else { return Ok(Outcome::Nothing) };
        tombstones.retain(|tombstone| cluster.chunk_info(Slot::of(tombstone.at.pos, tier)).is_none());
    }
    for tombstone in tombstones {
        writes.guards.push(tombstone.guard());
        writes.batch.delete(Space::ChunkL0, key::chunk(tombstone.at));
        writes.moved.chunks += 1;
    }
    writes.commit(engine, counters)
}
