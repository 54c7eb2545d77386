//! Heat rows: when each cube was last accessed, kept over a restart.
//!
//! **Invariant**: a warm cluster has a heat row, because the batch that makes the cluster puts it. So the cubes that
//! may have to be demoted are those with hot rows and those with heat rows, and none is found by reading clusters.
//! A cube all of whose chunks are cold needs no row, so a cold world has few of them. When any of its chunks was accessed
//! last is kept with the cold cluster: one row for 64 cubes, which no tick looks for.

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::{ClusterTier, Space, key};
use cg_tiering::{ClusterAt, CubeAt, GameTick, Heat, Observers};

use super::clock::{put_clock, read_clock};
use crate::engine::{Batch, EngineError, Guard, Level, Readable};
use crate::maintain::state::MaintainState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// So many heat rows are written at once.
const ROWS_AT_ONCE: usize = 512;

/// Adds a cube's heat to a batch.
pub(crate) fn put_heat(batch: &mut Batch, cube: CubeAt, heat: Heat) {
    let row = Draft::plain(Codec::None, 0, |out| heat.encode(out));
    batch.put(Space::Heat, heat_key(cube), row, Stamp::Commit);
}

/// Adds the deletion of a cube's heat to a batch.
pub(crate) fn delete_heat(batch: &mut Batch, cube: CubeAt) {
    batch.delete(Space::Heat, heat_key(cube));
}

/// Adds to a batch when a chunk of a cold cluster was last accessed.
pub(crate) fn put_cold_heat(batch: &mut Batch, cluster: ClusterAt, heat: Heat) {
    let row = Draft::plain(Codec::None, 0, |out| heat.encode(out));
    batch.put(Space::ColdHeat, cold_heat_key(cluster), row, Stamp::Commit);
}

/// Adds the deletion of a cold cluster's heat to a batch.
pub(crate) fn delete_cold_heat(batch: &mut Batch, cluster: ClusterAt) {
    batch.delete(Space::ColdHeat, cold_heat_key(cluster));
}

/// When a chunk of a cold cluster was last accessed, if that is known, and what guards that it stays so. A damaged row
/// counts as none.
pub(crate) fn read_cold_heat(
    view: &dyn Readable,
    cluster: ClusterAt,
) -> Result<(Option<Heat>, Guard), Error> {
    let (space, key) = (Space::ColdHeat, cold_heat_key(cluster));
    let row = match view.get(space, &key) {
        Err(EngineError::Corrupt { .. }) => None,
        row => row?,
    };
    let Some(row) = row else { return Ok((None, Guard::absent(space, key))) };
    let heat = FrameView::open(space, &key, &row).and_then(|frame| Heat::decode(frame.payload()));
    Ok((heat.ok(), Guard::same(space, key, &row)))
}

fn cold_heat_key(cluster: ClusterAt) -> [u8; key::HEAT_LEN_BYTES] {
    key::cold_heat(cg_format::ChunkAt::new(cluster.dimension, cluster.pos.min_chunk()))
}

/// The heat with which a cube goes into a warm cluster.
pub(super) fn heat_after_move(seen: &mut Observers, cube: CubeAt, now: GameTick) -> Heat {
    Heat { last_access: seen.heat().last_access(cube), moved_at: Some(now) }
}

pub(super) fn heat_key(cube: CubeAt) -> [u8; key::HEAT_LEN_BYTES] {
    let corner = cube.chunks().min();
    key::heat(cg_format::ChunkAt::new(cube.dimension(), corner))
}

impl MaintainState {
    /// The stored heat of a cube. A damaged row counts as none: it is a hint, and is written anew.
    pub(super) fn stored_heat(&self, cube: CubeAt) -> Result<Option<Heat>, Error> {
        let key = heat_key(cube);
        let engine = self.shared.engine()?;
        let row = match engine.get(Space::Heat, &key) {
            Ok(Some(row)) => row,
            Ok(None) | Err(EngineError::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let heat = FrameView::open(Space::Heat, &key, &row).and_then(|frame| Heat::decode(frame.payload()));
        Ok(heat.ok())
    }

    /// Makes sure that what is stored of a cube's heat is known; says whether anything is.
    pub(super) fn learn_heat(&self, cube: CubeAt) -> Result<bool, Error> {
        if self.activity.tiering.observers(|seen| seen.heat().get(cube)).is_some() {
            return Ok(true);
        }
        let Some(stored) = self.stored_heat(cube)? else { return Ok(false) };
        let heat = stored.not_after(self.activity.tiering.now());
        self.activity.tiering.observers(|seen| {
            seen.heat().insert(cube, heat);
            if heat != stored {
                seen.heat().unsaved(cube);
            }
        });
        Ok(true)
    }

    /// Writes what is known of heat, all of it, and the clock, before the world is closed.
    pub(crate) fn keep_all_heat(&self) -> Result<(), Error> {
        self.activity.tiering.observers(|seen| seen.heat().mark_all_dirty());
        while !self.keep_heat()?.is_empty() {}
        let (engine, now) = (self.shared.engine()?, self.activity.tiering.now());
        // A world all of whose chunks are cold has no heat with which the clock was written.
        if read_clock(&*engine)? != now {
            let mut batch = Batch::new();
            put_clock(&mut batch, now);
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        Ok(())
    }

    /// Writes the heat of cubes whose rows are out of date, and the clock; returns the cubes, none if none is left.
    ///
    /// Loses nothing if it is never called: the next open takes the cubes for accessed then.
    pub(crate) fn keep_heat(&self) -> Result<Vec<CubeAt>, Error> {
        let dirty = self.activity.tiering.observers(|seen| seen.heat().take_dirty(ROWS_AT_ONCE));
        if dirty.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Batch::new();
        for (cube, heat) in &dirty {
            put_heat(&mut batch, *cube, *heat);
        }
        put_clock(&mut batch, self.activity.tiering.now());
        let bytes = batch.len_bytes();
        if let Err(error) = self.shared.engine()?.commit(batch.maintenance(), &[], Level::Process) {
            self.activity
                .tiering
                .observers(|seen| dirty.iter().for_each(|(cube, _)| seen.heat().unsaved(*cube)));
            return Err(error.into());
        }
        Counters::add(&self.shared.counters.bytes_written, bytes);
        Ok(dirty.into_iter().map(|(cube, _)| cube).collect())
    }
}

/// The cube of a heat row's key.
pub(super) fn decode_heat_key(key: &[u8]) -> Option<CubeAt> {
    let (dimension, pos) = cg_format::key::decode_heat(key).ok()?;
    debug_assert_eq!(pos.tier(), ClusterTier::L1);
    Some(CubeAt::of_cluster(cg_tiering::ClusterAt::new(dimension, pos)))
}
