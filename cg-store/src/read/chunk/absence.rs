//! Learns which cubes are empty, so that their chunks are not looked up.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension, Space};

use crate::engine::{Latency, Readable, ReadableExt as _};
use crate::read::cache::{Absence, CubeTicket};
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

/// A 16³ cube with the ticket to cache its absence.
type Candidate = (ClusterPos, CubeTicket);

/// The absent chunks of one load that are worth the calls for their cubes, over a network.
const WORTH_ASKING: usize = 256;

impl ReadState {
    /// Looks up the cubes of an absent chunk if that is due. Returns whether they are now known to be empty.
    ///
    /// Costs up to six reads from the engine, and is due at most once for each 4³ cube unless a commit into the 16³ cube
    /// is queued or begins meanwhile. If the 16³ cube is empty, the empty ones after it in its region are learned too.
    ///
    /// Over a network nothing is looked up for one chunk: only [`learn_absences`](Self::learn_absences) does.
    pub(in crate::read) fn learn_absence(&self, at: ChunkAt) -> bool {
        if !self.cache.is_cube_to_be_asked(at) || self.is_over_network() {
            return false;
        }
        let cube = at.pos.cluster(ClusterTier::L2);
        // An error of the engine is ignored. A load of a chunk reports it.
        let Some((_, ticket)) = self.candidates(at.dimension, &[cube]).pop() else { return false };
        let Ok(absence) = self.look_up_absence(at) else { return false };
        let is_known = self.cache.learn_absence(at, ticket, absence);
        if absence == Absence::WholeCube {
            self.learn_empty(at.dimension, &self.cache.cubes_after(at));
        }
        is_known
    }

    /// Looks up the cubes of the absent chunks of a load, where that is due.
    ///
    /// Over a network it costs one snapshot and a scan of each tier for each dimension, if there are enough absent
    /// chunks, else nothing. Learns the empty cubes before the first row between the first and the last cube.
    pub(in crate::read) fn learn_absences(&self, absent: &[ChunkAt]) {
        if absent.is_empty() {
            return;
        }
        if !self.is_over_network() {
            for at in absent {
                self.learn_absence(*at);
            }
            return;
        }
        if absent.len() < WORTH_ASKING {
            return;
        }
        let mut cubes: BTreeMap<(Dimension, RowKey), ClusterPos> = BTreeMap::new();
        for at in absent.iter().filter(|at| self.cache.is_cube_to_be_asked(**at)) {
            let cube = at.pos.cluster(ClusterTier::L2);
            cubes.insert((at.dimension, key::cluster(at.dimension, cube)), cube);
        }
        let cubes: Vec<_> = cubes.into_iter().map(|((dimension, _), cube)| (dimension, cube)).collect();
        for cubes in cubes.chunk_by(|(one, _), (next, _)| one == next) {
            let (dimension, _) = cubes[0];
            self.learn_empty(dimension, &cubes.iter().map(|(_, cube)| *cube).collect::<Vec<_>>());
        }
    }

    /// Learns that the cubes before the first row of any tier are empty. They are in the order of their keys.
    fn learn_empty(&self, dimension: Dimension, cubes: &[ClusterPos]) {
        let mut candidates = self.candidates(dimension, cubes);
        // An error of the engine is ignored. A load of a chunk reports it.
        if self.keep_empty(dimension, &mut candidates).is_ok() {
            for (cube, ticket) in candidates {
                let first = ChunkAt::new(dimension, cube.min_chunk());
                self.cache.learn_absence(first, ticket, Absence::WholeCube);
            }
        }
    }

    /// Whether each call of the engine is a message.
    pub(crate) fn is_over_network(&self) -> bool {
        self.shared.engine().is_ok_and(|engine| engine.caps().latency == Latency::Network)
    }

    /// Those of some 16³ cubes whose rows say whether they are empty: no commit into them is in progress or queued.
    ///
    /// The queue is asked after the tickets are taken, as later commits announce their places after that. It is asked
    /// before the engine is read, as changes leave the queue when they are in the engine.
    fn candidates(&self, dimension: Dimension, cubes: &[ClusterPos]) -> Vec<Candidate> {
        let tickets: Vec<_> =
            cubes.iter().map(|cube| (*cube, self.cache.cube_ticket(dimension, *cube))).collect();
        let queued = self.pending.are_queued(dimension, cubes);
        let all = tickets.into_iter().zip(queued);
        all.filter(|((_, ticket), is_queued)| ticket.is_calm() && !is_queued).map(|(cube, _)| cube).collect()
    }

    /// Looks up the cubes of a chunk.
    fn look_up_absence(&self, at: ChunkAt) -> Result<Absence, Error> {
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
        Ok(if is_empty(cube)? {
            Absence::WholeCube
        } else if is_empty(at.pos.cluster(ClusterTier::L1))? {
            Absence::Group
        } else {
            Absence::Neither
        })
    }

    /// Keeps of some 16³ cubes, in the order of their keys, those before the first row of any tier.
    ///
    /// Where chunks were demoted, the scan of a hotter tier passes the keys that they had there. So each scan ends where
    /// the one of the colder tier has found a row. A cold row is read for that, whatever its length.
    fn keep_empty(&self, dimension: Dimension, cubes: &mut Vec<Candidate>) -> Result<(), Error> {
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        for tier in [COLD, WARM, HOT] {
            let (Some((first, _)), Some((last, _))) = (cubes.first(), cubes.last()) else { break };
            if let Some(row) = self.first_row(&view, tier, dimension, [*first, *last])? {
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
