//! Learns which cubes are empty, so that their chunks are not looked up.

use std::ops::{Bound, ControlFlow};

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension, Space};

use crate::engine::{Readable, ReadableExt as _};
use crate::read::cache::{Absence, Ticket};
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

type RowKey = [u8; key::CHUNK_LEN_BYTES];

/// The key of the row of a tier that has a chunk.
type KeyOf = fn(Dimension, ChunkPos) -> RowKey;

const COLD: (Family, KeyOf) =
    (Family::ChunkL2, |dimension, pos| key::cluster(dimension, pos.cluster(ClusterTier::L2)));
const WARM: (Family, KeyOf) =
    (Family::ChunkL1, |dimension, pos| key::cluster(dimension, pos.cluster(ClusterTier::L1)));
const HOT: (Family, KeyOf) = (Family::ChunkL0, |dimension, pos| key::chunk(ChunkAt::new(dimension, pos)));

impl ReadState {
    /// Looks up the cubes of an absent chunk if that is due. Returns whether they are now known to be empty.
    ///
    /// Costs up to eight reads from the engine, at most once for each 4³ cube. If the 16³ cube is empty, the empty ones
    /// after it in its region are learned too.
    pub(in crate::read) fn learn_absence(&self, at: ChunkAt, ticket: Ticket) -> bool {
        let cube = at.pos.cluster(ClusterTier::L2);
        // Queued changes are not in the engine. They are checked after the tickets are taken, as later commits announce
        // their places after that. They are checked before the engine is read, as they leave the queue when they are in it.
        if !self.cache.is_cube_to_be_asked(at) || self.pending.has_chunk_in(at.dimension, cube) {
            return false;
        }
        let mut next = self.cache.cubes_after(at);
        next.retain(|(cube, _)| !self.pending.has_chunk_in(at.dimension, *cube));
        // An error here is ignored. A load of a chunk reports it.
        let Ok(absence) = self.look_up_absence(at, &mut next) else { return false };
        if absence == Absence::WholeCube {
            for (cube, ticket) in next {
                let first = ChunkAt::new(at.dimension, cube.min_chunk());
                self.cache.learn_absence(first, ticket, absence);
            }
        }
        self.cache.learn_absence(at, ticket, absence)
    }

    /// Looks up the cubes of a chunk. If the 16³ cube is empty, keeps only those of the next ones that are known to be
    /// empty, too.
    fn look_up_absence(&self, at: ChunkAt, next: &mut Vec<(ClusterPos, Ticket)>) -> Result<Absence, Error> {
        // One snapshot, because a move between two reads could carry rows to a place that was already read.
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let cube = at.pos.cluster(ClusterTier::L2);
        Counters::add(&self.shared.counters.engine_reads, 1);
        if view.get(Space::ClusterL2, &key::cluster(at.dimension, cube))?.is_some() {
            return Ok(Absence::Unknowable);
        }
        let is_empty = |cube: ClusterPos| -> Result<bool, Error> {
            Ok(self.first_row(&view, WARM, at.dimension, [cube, cube])?.is_none()
                && self.first_row(&view, HOT, at.dimension, [cube, cube])?.is_none())
        };
        if is_empty(cube)? {
            if self.keep_empty(&view, at.dimension, next).is_err() {
                next.clear();
            }
            Ok(Absence::WholeCube)
        } else if is_empty(at.pos.cluster(ClusterTier::L1))? {
            Ok(Absence::Group)
        } else {
            Ok(Absence::Neither)
        }
    }

    /// Keeps of some 16³ cubes, in the order of their keys, those before the first row of any tier.
    ///
    /// Where chunks were demoted, the scan of a hotter tier passes the keys that they had there. So each scan ends where
    /// the one of the colder tier has found a row.
    fn keep_empty(
        &self,
        view: &dyn Readable,
        dimension: Dimension,
        cubes: &mut Vec<(ClusterPos, Ticket)>,
    ) -> Result<(), Error> {
        for tier in [COLD, WARM, HOT] {
            let (Some((first, _)), Some((last, _))) = (cubes.first(), cubes.last()) else { break };
            if let Some(row) = self.first_row(view, tier, dimension, [*first, *last])? {
                let is_before = |cube: ClusterPos| tier.1(dimension, cube.max_chunk()) < row;
                cubes.truncate(cubes.partition_point(|(cube, _)| is_before(*cube)));
            }
        }
        Ok(())
    }

    /// The key of the first row of a tier between two cubes, both included.
    fn first_row(
        &self,
        view: &dyn Readable,
        (family, key_of): (Family, KeyOf),
        dimension: Dimension,
        [first, last]: [ClusterPos; 2],
    ) -> Result<Option<RowKey>, Error> {
        Counters::add(&self.shared.counters.engine_reads, 1);
        let (first, last) = (key_of(dimension, first.min_chunk()), key_of(dimension, last.max_chunk()));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        // A key of another length is of no chunk: then no cube after the first key is known to be empty.
        let key = |row: &[u8]| RowKey::try_from(row).unwrap_or(first);
        let found = view.scan_first(family, range, 1, |row, _| ControlFlow::Break(key(row)))?;
        Counters::add(&self.shared.counters.keys_scanned, u64::from(found.is_some()));
        Ok(found)
    }
}
