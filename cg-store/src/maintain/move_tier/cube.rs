//! A 4³ cube of chunks: the keys of its rows, and its rows in the hottest tier.

use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo};
use cg_format::key::Family;
use cg_format::{ChunkAt, ClusterTier, Lookup, Space, key};
use cg_tiering::{ClusterAt, CubeAt};

use super::MoveWrites;
use crate::engine::{Guard, Readable, ReadableExt as _};
use crate::read::chunk::hot;
use crate::storage::error::Error;

/// The number of the cube in its cluster of a tier.
pub(super) fn number_of(cube: CubeAt, tier: ClusterTier) -> u8 {
    Slot::of(cube.chunks().min(), tier).cube()
}

/// The first and the last key of a cluster's chunks in the hottest tier. No chunk of another cluster sorts between
/// them.
pub(crate) fn hot_keys(cluster: ClusterAt) -> [[u8; key::CHUNK_LEN_BYTES]; 2] {
    let at = |pos| key::chunk(ChunkAt::new(cluster.dimension, pos));
    [at(cluster.pos.min_chunk()), at(cluster.pos.max_chunk())]
}

/// The space and key of a cluster's row.
pub(crate) fn row_of(cluster: ClusterAt) -> (Space, [u8; key::CHUNK_LEN_BYTES]) {
    (Space::of_cluster(cluster.pos.tier()), key::cluster(cluster.dimension, cluster.pos))
}

/// A guard that a cluster's row has not changed.
pub(super) fn guard_of(cluster: ClusterAt, row: Option<&[u8]>) -> Guard {
    let (space, row_key) = row_of(cluster);
    row.map_or(Guard::absent(space, row_key), |row| Guard::same(space, row_key, row))
}

/// The bit of a place in a set of a cube's places.
pub(super) const fn bit(place: u8) -> u64 {
    1 << place
}

/// The rows of a cube in the hottest tier.
#[derive(Debug, Default)]
pub(super) struct HotRows {
    /// Sound rows, in the order of their keys.
    pub(super) rows: Vec<HotRow>,
    /// The places of all rows, including damaged ones.
    pub(super) places: u64,
    /// The places of sound rows: copies in colder tiers are obsolete there. Below a damaged row the colder copy is the
    /// last good value, so it is kept.
    pub(super) sound_places: u64,
}

/// A chunk or a tombstone in the hottest tier.
#[derive(Debug)]
pub(super) struct HotRow {
    pub(super) at: ChunkAt,
    pub(super) info: SlotInfo,
    /// `None` for a tombstone.
    pub(super) value: Option<Vec<u8>>,
}

impl HotRow {
    /// A guard that the row has not changed.
    pub(super) fn guard(&self) -> Guard {
        Guard::version(Space::ChunkL0, key::chunk(self.at), self.info.version)
    }
}

impl HotRows {
    /// Reads the rows with one scan of their range.
    pub(super) fn read(view: &dyn Readable, cube: CubeAt, writes: &mut MoveWrites) -> Result<Self, Error> {
        let (mut found, mut buffer) = (Self::default(), Vec::new());
        let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        view.scan(Family::ChunkL0, range, |key, row| {
            let Ok(at) = key::decode_chunk(key) else { return ControlFlow::<()>::Continue(()) };
            let place = Slot::of(at.pos, ClusterTier::L1).in_cube();
            found.places |= bit(place);
            writes.moved.bytes_read += row.len() as u64;
            // A damaged row stays where it is, and still hides what is below it.
            if let Some((info, value)) = sound(at, key, row, &mut buffer) {
                found.sound_places |= bit(place);
                found.rows.push(HotRow { at, info, value });
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Puts the chunks into a cluster and deletes their rows. Tombstones stay, and remove older copies from the cluster.
    pub(super) fn move_into(
        self,
        tier: ClusterTier,
        builder: &mut ClusterBuilder<'_>,
        writes: &mut MoveWrites,
    ) {
        for row in self.rows {
            writes.guards.push(row.guard());
            let slot = Slot::of(row.at.pos, tier);
            if let Some(value) = row.value {
                builder.put(slot, row.info, value);
                writes.batch.delete(Space::ChunkL0, key::chunk(row.at));
                writes.moved.chunks += 1;
            } else {
                builder.remove(slot);
            }
        }
    }
}

fn sound(at: ChunkAt, key: &[u8], row: &[u8], buffer: &mut Vec<u8>) -> Option<(SlotInfo, Option<Vec<u8>>)> {
    Some(match hot(at, key, row, buffer).ok()? {
        // A cluster cannot distinguish a chunk without bytes from an absent one.
        Lookup::Found(chunk) if chunk.value.is_empty() => return None,
        Lookup::Found(chunk) => {
            let info = SlotInfo { version: chunk.version.get(), schema_generation: chunk.schema_generation };
            (info, Some(chunk.value.to_vec()))
        }
        Lookup::Tombstone | Lookup::NotFound => {
            let version = cg_format::frame::version_of(row)?;
            (SlotInfo { version, schema_generation: 0 }, None)
        }
    })
}
