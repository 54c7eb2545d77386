//! Reads what a cube has in the hottest tier and in the warm one, and records it in the index.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::cluster::Slot;
use cg_format::frame;
use cg_format::key::Family;
use cg_format::{ClusterTier, Lookup, key};
use cg_tiering::CubeAt;

use super::Work;
use super::cube_index::IndexedCube;
use crate::engine::{ErrorKind, ReadableExt as _};
use crate::maintain::move_tier::{hot_keys, row_of};
use crate::maintain::state::MaintainState;
use crate::read::chunk::hot;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The rows of a cube in the hottest tier. Sets of places have a bit for each of its 64 chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hot {
    /// The places with rows, including tombstones and damaged rows.
    pub(super) rows: u64,
    /// The places with sound chunks.
    pub(super) chunks: u64,
    /// Tombstones before the horizon.
    pub(super) old_tombstones: u32,
    /// Bytes of the chunks' rows.
    pub(super) bytes: u64,
}

impl Hot {
    pub(super) const NONE: Self = Self { rows: 0, chunks: 0, old_tombstones: 0, bytes: 0 };

    /// Adds a row. Damage is an error: the row counts, and stays where it is.
    fn add(&mut self, row_key: &[u8], row: &[u8], tombstone_horizon: u64) -> Result<(), Error> {
        let Ok(at) = key::decode_chunk(row_key) else { return Ok(()) };
        let place = 1 << Slot::of(at.pos, ClusterTier::L1).in_group();
        self.rows |= place;
        match hot(at, row_key, row)? {
            // A cluster cannot distinguish a chunk without bytes from an absent one, so such a row is not moved either.
            Lookup::Found(chunk) if chunk.value.is_empty() => {}
            Lookup::Found(_) => {
                self.chunks |= place;
                self.bytes += row.len() as u64;
            }
            Lookup::Tombstone | Lookup::NotFound => {
                let is_old = frame::version_of(row).is_some_and(|version| version < tombstone_horizon);
                self.old_tombstones += u32::from(is_old);
            }
        }
        Ok(())
    }
}

impl MaintainState {
    /// Reads the hot rows of a cube, and loads its heat. Returns `None` if the rows cannot be read. Then the cube is
    /// left as it is, and forgotten until a chunk is saved in it.
    pub(super) fn read_cube(&self, work: &mut Work, cube: CubeAt) -> Result<Option<IndexedCube>, Error> {
        // Read before the rows: tombstones that become purgeable later are searched again.
        let tombstone_horizon = self.shared.tombstone_horizon.load(Ordering::Relaxed);
        let mut found = Hot::NONE;
        let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let scanned = self.shared.engine()?.scan(Family::ChunkL0, range, |row_key, row| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            if let Err(damage) = found.add(row_key, row, tombstone_horizon) {
                work.damage_log.report(&damage);
            }
            ControlFlow::<()>::Continue(())
        });
        if let Err(error) = scanned.map_err(Error::from) {
            if error.kind() != ErrorKind::Damaged {
                return Err(error);
            }
            work.damage_log.report(&error);
            work.cube_index.forget(cube);
            return Ok(None);
        }
        let has_heat = self.load_heat(cube)?;
        Ok(Some(work.cube_index.learn(cube, found, has_heat, tombstone_horizon)))
    }

    /// Reads whether a cube has a warm cluster. Returns `None` if that cannot be read; then the cube is left alone.
    pub(super) fn find_warm(&self, work: &mut Work, cube: CubeAt) -> Result<Option<bool>, Error> {
        let cluster = cube.cluster(ClusterTier::L1);
        let (space, row_key) = row_of(cluster);
        Counters::add(&self.shared.counters.engine_reads, 1);
        match self.shared.engine()?.get(space, &row_key).map_err(Error::from) {
            Ok(row) => {
                let has_warm = Some(row.is_some());
                work.cube_index.learn_warm(cube, has_warm);
                Ok(has_warm)
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                work.damage_log.report(&error);
                work.cube_index.leave_cluster_alone(cluster, self.left_alone_until());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
