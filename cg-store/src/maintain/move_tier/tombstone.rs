//! Tombstones that nobody needs any more are deleted.

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::{ClusterTier, Space, key};
use cg_tiering::CubeAt;

use super::cube::{HotRows, row_of};
use super::{MoveWrites, Outcome};
use crate::engine::{Engine, Readable as _};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// Deletes a cube's tombstones before a commit, where no colder tier has a copy that would come back to life.
///
/// The clusters are not guarded: only moves put a chunk into one, they take it from a row, and one move runs at a time.
/// Below a damaged cluster nobody can tell what it holds, so there all marks stay. Costs a scan of the cube's hot rows
/// and the directories of its two clusters.
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
