//! Heat rows: the last access of each cube, which survives a restart.
//!
//! **Invariant**: a warm cluster has a heat row, because the batch that writes the cluster puts it. So the cubes that
//! may have to be demoted are those with hot rows and those with heat rows. No cluster is read to find them.
//!
//! A cube whose chunks are all cold needs no row, so a cold world has few of them. The last access to any of its chunks
//! is stored with the cold cluster: one row for 64 cubes, which no tick searches.
//!
//! Over a network only moves put heat rows. Accesses in between are not stored.

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::{ClusterTier, Space, key};
use cg_tiering::{ClusterAt, CubeAt, GameTick, Heat, Observers};

use super::CLOCK;
use crate::engine::{Batch, EngineError, Guard, Level, Readable};
use crate::maintain::state::MaintainState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The maximum number of heat rows that are written at once.
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

/// Adds the last access to a chunk of a cold cluster to a batch.
pub(crate) fn put_cold_heat(batch: &mut Batch, cluster: ClusterAt, heat: Heat) {
    let row = Draft::plain(Codec::None, 0, |out| heat.encode(out));
    batch.put(Space::ColdHeat, cold_heat_key(cluster), row, Stamp::Commit);
}

/// Adds the deletion of a cold cluster's heat to a batch.
pub(crate) fn delete_cold_heat(batch: &mut Batch, cluster: ClusterAt) {
    batch.delete(Space::ColdHeat, cold_heat_key(cluster));
}

/// The last access to a chunk of a cold cluster, if it is known, and a guard for its row. A damaged row counts as none.
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

pub(super) fn cold_heat_key(cluster: ClusterAt) -> [u8; key::HEAT_LEN_BYTES] {
    key::cold_heat(cg_format::ChunkAt::new(cluster.dimension, cluster.pos.min_chunk()))
}

/// The heat of a cube when it is moved into a warm cluster.
pub(super) fn heat_after_move(seen: &mut Observers, cube: CubeAt, now: GameTick) -> Heat {
    Heat { last_access: seen.heat().last_access(cube), moved_at: Some(now) }
}

pub(super) fn heat_key(cube: CubeAt) -> [u8; key::HEAT_LEN_BYTES] {
    let corner = cube.chunks().min();
    key::heat(cg_format::ChunkAt::new(cube.dimension(), corner))
}

impl MaintainState {
    /// Loads the stored heat of a cube if it is not in memory. Returns whether any is known. A damaged row counts as
    /// none: heat is only a hint, and is written again.
    pub(super) fn load_heat(&self, view: &dyn Readable, cube: CubeAt) -> Result<bool, Error> {
        if self.activity.tiering.observers(|seen| seen.heat().get(cube)).is_some() {
            return Ok(true);
        }
        let row_key = heat_key(cube);
        let row = match view.get(Space::Heat, &row_key) {
            Err(EngineError::Corrupt { .. }) => None,
            row => row?,
        };
        let decode = |row: &[u8]| Heat::decode(FrameView::open(Space::Heat, &row_key, row)?.payload());
        let Some(stored) = row.and_then(|row| decode(&row).ok()) else { return Ok(false) };
        let heat = stored.not_after(self.activity.tiering.now());
        self.activity.tiering.observers(|seen| {
            seen.heat().insert(cube, heat);
            if heat != stored {
                seen.heat().unsaved(cube);
            }
        });
        Ok(true)
    }

    /// Writes all heat and the clock, before the world is closed. Over a network only the clock.
    pub(crate) fn keep_all_heat(&self) -> Result<(), Error> {
        self.activity.tiering.observers(|seen| seen.heat().mark_all_dirty());
        // Over a network this forgets them.
        while !self.keep_heat()?.is_empty() {}
        // A completely cold world has no heat with which the clock was written.
        self.keep_clock()
    }

    /// Writes the clock, if another time is stored.
    pub(crate) fn keep_clock(&self) -> Result<(), Error> {
        let (engine, now) = (self.shared.engine()?, self.activity.tiering.now());
        if CLOCK.get(&*engine)?.unwrap_or_default() != now {
            let mut batch = Batch::new();
            CLOCK.put(&mut batch, &now);
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        Ok(())
    }

    /// Writes the heat of some cubes whose rows are out of date, and the clock. Returns the cubes; empty if none is
    /// left.
    ///
    /// Without this call no content is lost: the next open treats the cubes as accessed at that time. Over a network
    /// nothing is written, and the cubes are forgotten.
    pub(crate) fn keep_heat(&self) -> Result<Vec<CubeAt>, Error> {
        if self.is_over_network {
            let forget = || self.activity.tiering.observers(|seen| seen.heat().take_dirty(ROWS_AT_ONCE));
            while !forget().is_empty() {}
            return Ok(Vec::new());
        }
        let dirty = self.activity.tiering.observers(|seen| seen.heat().take_dirty(ROWS_AT_ONCE));
        if dirty.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Batch::new();
        for (cube, heat) in &dirty {
            put_heat(&mut batch, *cube, *heat);
        }
        CLOCK.put(&mut batch, &self.activity.tiering.now());
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
