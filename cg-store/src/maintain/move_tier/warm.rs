//! Demotion into a warm cluster: the hot rows of a cube become one row.

use cg_format::cluster::{AssembleError, ClusterBuilder, StoredCluster};
use cg_format::frame::Stamp;
use cg_format::{ClusterTier, Limits};
use cg_tiering::{CubeAt, Heat};

use super::cube::{HotRows, guard_of, row_of};
use super::{MoveWrites, Outcome};
use crate::engine::{Engine, Readable as _};
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
    let base = old.as_deref().map(|row| StoredCluster::open(tier, &row_key, row));
    let base = base.transpose().map_err(damage)?;
    writes.guards.push(guard_of(cube.cluster(tier), old.as_deref()));
    writes.moved.bytes_read += old.as_ref().map_or(0, |row| row.len() as u64);
    let mut builder = base.as_ref().map_or(ClusterBuilder::new(tier), ClusterBuilder::over);
    hot.move_into(tier, &mut builder, &mut writes);
    match builder.finish(&mut Limits::default()) {
        Ok(cluster) => {
            let cluster = cluster.expect("at least one chunk was put");
            writes.batch.put(space, row_key, cluster, Stamp::Commit);
            put_heat(&mut writes.batch, cube, heat);
            writes.commit(engine, counters)
        }
        Err(AssembleError::Damaged(problem)) => Err(damage(problem)),
        Err(AssembleError::TooLarge { .. }) => Ok(Outcome::TooLarge),
        Err(error) => unreachable!("a stored chunk fits its own slot: {error}"),
    }
}
