//! Demotion into a warm cluster: the hot rows of a cube become one row.

use cg_format::cluster::{AssembleError, ClusterBuilder, Slot, StoredCluster};
use cg_format::frame::Stamp;
use cg_format::{ClusterTier, Limits, Space, key};
use cg_tiering::{CubeAt, Heat};

use super::cube::{HotRows, row_of};
use super::{MoveWrites, Outcome};
use crate::engine::{Engine, Guard, Readable as _};
use crate::maintain::tiering::put_heat;
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// Merges the hot rows of a cube into its warm cluster and deletes them. Puts the heat row by which ticks find the
/// cluster when it is due to be demoted.
///
/// Tombstones stay: they hide what the cold cluster may hold, and report the deletion to readers. Costs one scan of up
/// to 64 rows, one cluster read and one compression.
pub(crate) fn demote_warm(
    engine: &dyn Engine,
    counters: &Counters,
    cube: CubeAt,
    heat: Heat,
) -> Result<Outcome, Error> {
    let view = engine.snapshot()?;
    let mut writes = MoveWrites::default();
    let hot = HotRows::read(&view, cube, &mut writes)?;
    if hot.rows.iter().all(|row| row.value.is_none()) {
        return Ok(Outcome::Nothing);
    }
    let tier = ClusterTier::L1;
    let (space, row_key) = row_of(cube.cluster(tier));
    let damage = |problem| Damage::of_row(space, &row_key, cube.to_string(), problem);
    let old = view.get(space, &row_key)?;
    let base = match old.as_deref().map(|row| StoredCluster::open(tier, &row_key, row)).transpose() {
        Ok(base) => base,
        Err(problem) => return Ok(Outcome::Damaged(damage(problem))),
    };
    writes.guards.push(match &old {
        Some(row) => Guard::same(space, row_key, row),
        None => Guard::absent(space, row_key),
    });
    writes.moved.bytes_read += old.as_ref().map_or(0, |row| row.len() as u64);
    let mut builder = base.as_ref().map_or(ClusterBuilder::new(tier), ClusterBuilder::over);
    for row in &hot.rows {
        writes.guards.push(row.guard());
        let slot = Slot::of(row.at.pos, tier);
        if let Some(value) = &row.value {
            builder.put(slot, row.info, &value[..]);
            writes.batch.delete(Space::ChunkL0, key::chunk(row.at));
            writes.moved.chunks += 1;
        } else {
            builder.remove(slot);
        }
    }
    match builder.finish(&mut Limits::default()) {
        Ok(cluster) => {
            let cluster = cluster.expect("at least one chunk was put");
            writes.batch.put(space, row_key, cluster, Stamp::Commit);
            put_heat(&mut writes.batch, cube, heat);
            writes.commit(engine, counters)
        }
        Err(AssembleError::Damaged(problem)) => Ok(Outcome::Damaged(damage(problem))),
        Err(AssembleError::TooLarge { .. }) => Ok(Outcome::TooLarge),
        Err(error) => unreachable!("a stored chunk fits its own slot: {error}"),
    }
}
