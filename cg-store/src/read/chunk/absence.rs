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

impl ReadState {
    /// Looks up the cubes of an absent chunk if that is due. Returns whether they are now known to be empty.
    ///
    /// Costs up to five reads from the engine, at most once for each 4³ cube. Rows are in the order of cubes, so the scan
    /// of an empty 16³ cube goes on to the next row: the cubes before it are empty too, and cost one scan together.
    pub(in crate::read) fn learn_absence(&self, at: ChunkAt, ticket: Ticket) -> bool {
        if !self.cache.is_cube_to_be_asked(at) {
            return false;
        }
        let next = self.cache.cubes_after(at);
        // Queued changes are not in the engine. Checked after the tickets were taken: later commits announce their places
        // after it.
        if !self.pending.is_empty() {
            return false;
        }
        // An error here is ignored. A load of a chunk reports it.
        let Ok((absence, empty)) = self.look_up_absence(at, &next) else { return false };
        for (cube, ticket) in empty {
            let first = ChunkAt::new(at.dimension, cube.min_chunk());
            self.cache.learn_absence(first, ticket, Absence::WholeCube);
        }
        self.cache.learn_absence(at, ticket, absence)
    }

    /// Looks up the cubes of a chunk. If the 16³ cube is empty, also returns which of the next ones are.
    fn look_up_absence(
        &self,
        at: ChunkAt,
        next: &[(ClusterPos, Ticket)],
    ) -> Result<(Absence, Vec<(ClusterPos, Ticket)>), Error> {
        // One snapshot, because a move between two reads could carry rows to a place that was already read.
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let dimension = at.dimension;
        let cube = at.pos.cluster(ClusterTier::L2);
        Counters::add(&self.shared.counters.engine_reads, 1);
        if view.get(Space::ClusterL2, &key::cluster(dimension, cube))?.is_some() {
            return Ok((Absence::Unknowable, Vec::new()));
        }
        let last = next.last().map_or(cube, |(cube, _)| *cube);
        let has_none = |first_row: &Option<RowKey>, last: RowKey| first_row.is_none_or(|row| row > last);
        let warm = self.first_row(&view, Family::ChunkL1, warm_keys(dimension, cube, last))?;
        let is_warm_empty = |cube: ClusterPos| has_none(&warm, warm_key(dimension, cube.max_chunk()));
        if is_warm_empty(cube) {
            let hot = self.first_row(&view, Family::ChunkL0, hot_keys(dimension, cube, last))?;
            let is_empty = |cube: ClusterPos| {
                is_warm_empty(cube) && has_none(&hot, hot_key(dimension, cube.max_chunk()))
            };
            if is_empty(cube) {
                let mut empty: Vec<_> =
                    next.iter().copied().take_while(|(cube, _)| is_empty(*cube)).collect();
                if let (Some((first, _)), Some((last, _))) = (empty.first(), empty.last()) {
                    let keys = [*first, *last].map(|cube| key::cluster(dimension, cube));
                    let cold = self.first_row(&view, Family::ChunkL2, keys)?;
                    empty.retain(|(cube, _)| has_none(&cold, key::cluster(dimension, *cube)));
                }
                return Ok((Absence::WholeCube, empty));
            }
        }
        let group = at.pos.cluster(ClusterTier::L1);
        let is_group_empty =
            self.first_row(&view, Family::ChunkL1, warm_keys(dimension, group, group))?.is_none()
                && self.first_row(&view, Family::ChunkL0, hot_keys(dimension, group, group))?.is_none();
        Ok((if is_group_empty { Absence::Group } else { Absence::Neither }, Vec::new()))
    }

    /// The key of the first row from one key to another, both included.
    fn first_row(
        &self,
        view: &dyn Readable,
        family: Family,
        [first, last]: [RowKey; 2],
    ) -> Result<Option<RowKey>, Error> {
        Counters::add(&self.shared.counters.engine_reads, 1);
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        // A key of another length is of no chunk: then no cube after the first key is known to be empty.
        let key = |row: &[u8]| RowKey::try_from(row).unwrap_or(first);
        let found = view.scan_first(family, range, 1, |row, _| ControlFlow::Break(key(row)))?;
        Counters::add(&self.shared.counters.keys_scanned, u64::from(found.is_some()));
        Ok(found)
    }
}

fn warm_key(dimension: Dimension, pos: ChunkPos) -> RowKey {
    key::cluster(dimension, pos.cluster(ClusterTier::L1))
}

fn hot_key(dimension: Dimension, pos: ChunkPos) -> RowKey {
    key::chunk(ChunkAt::new(dimension, pos))
}

/// The keys of the first and the last warm cluster from one cube to another.
fn warm_keys(dimension: Dimension, first: ClusterPos, last: ClusterPos) -> [RowKey; 2] {
    [first.min_chunk(), last.max_chunk()].map(|pos| warm_key(dimension, pos))
}

/// The keys of the first and the last hot chunk from one cube to another.
fn hot_keys(dimension: Dimension, first: ClusterPos, last: ClusterPos) -> [RowKey; 2] {
    [first.min_chunk(), last.max_chunk()].map(|pos| hot_key(dimension, pos))
}
