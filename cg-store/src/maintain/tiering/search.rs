//! The search for cubes that could move: finds the cold clusters with rows after opening, and reads those in which
//! something may be due. Demoting a whole world reads all of them.
//!
//! Finding a cluster costs two seeks and a read of its heat rows, which contain its last accesses. So a world is
//! searched without reading the rows of its chunks. Those of a cluster are read, cube by cube, when a decision about
//! them is due.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::cluster::Slot;
use cg_format::frame::{self, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ClusterTier, Lookup, Space};
use cg_tiering::{ClusterAt, CubeAt, GameTick, Heat};

use super::cube_index::IndexedCube;
use super::heat::{decode_heat_key, heat_key};
use super::unscanned::{CubeRange, Edge, ends, key_of};
use super::{DamageLog, Due, Work};
use crate::engine::{ErrorKind, KeyRange, Met, ReadableExt as _, scan_skipping_damage};
use crate::maintain::move_tier::{hot_keys, row_of};
use crate::maintain::state::MaintainState;
use crate::read::chunk::hot;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The maximum number of clusters found in one tick. A million adjacent chunks are found in a second; if each is in a
/// cluster of its own, in an hour.
const CLUSTERS_FOUND: usize = 16;
/// The maximum number of cubes whose rows one tick reads.
const CUBES_READ: usize = 8;
/// The maximum number of ranges that one tick checks for due work. A million adjacent chunks are checked in a second.
const RANGES_ASKED: usize = 16;
/// Nothing is read ahead if the plan has this many steps.
pub(crate) const STEPS_AHEAD: u64 = 1 << 12;
/// A cluster that was evicted is not scanned for this time. Moves to the coldest tier are not more frequent.
const EVICTED_TICKS: u64 = 5 * 60 * GameTick::PER_SECOND;

/// The first cubes with rows from a position on. If the position moves back, they are searched again.
///
/// Moves delete rows, and a seek steps over every deleted row up to the next existing one. So a family is searched only
/// when the position has passed the last result. This misses rows that are put in between meanwhile, like rows that are
/// put before the position. [`Tiering`](super::Tiering) gets reports of both.
#[derive(Debug, Default)]
pub(crate) struct NextCubes {
    hot: Found,
    heat: Found,
    position: Option<Edge>,
    /// The last cube of the search; `None`: the last one of the world.
    last: Option<CubeAt>,
}

impl NextCubes {
    pub(super) fn up_to(last: Option<CubeAt>) -> Self {
        Self { last, ..Self::default() }
    }
}

/// The result of the last seek in a family.
#[derive(Debug, Default)]
enum Found {
    #[default]
    NotSought,
    /// `None`: nothing up to the end.
    First(Option<CubeAt>),
}

impl Found {
    /// The first cube of a range that begins at `from`. Seeks only if the last result is before the range.
    fn first(
        &mut self,
        from: Bound<CubeAt>,
        seek: impl FnOnce() -> Result<Option<CubeAt>, Error>,
    ) -> Result<Option<CubeAt>, Error> {
        let is_passed = |cube: &CubeAt| match &from {
            Bound::Unbounded => false,
            Bound::Included(first) => key_of(*cube) < key_of(*first),
            Bound::Excluded(last) => key_of(*cube) <= key_of(*last),
        };
        if let Self::First(found) = self
            && !found.as_ref().is_some_and(is_passed)
        {
            return Ok(*found);
        }
        let found = seek()?;
        *self = Self::First(found);
        Ok(found)
    }
}

impl MaintainState {
    /// Searches a few unscanned ranges. Returns `false` if more of them may be due.
    pub(super) fn search(&self, work: &mut Work, due: Due) -> Result<bool, Error> {
        let (now, policy) =
            (self.activity.tiering.now(), self.activity.tiering.observers(|seen| *seen.policy()));
        let (mut found, mut read) = (0, 0);
        while found < CLUSTERS_FOUND && read < CUBES_READ && !due.is_over() {
            let has_room = work.plan.left().steps < STEPS_AHEAD;
            let is_due =
                |range: &CubeRange| range.is_due(&policy, now, due.at()) && (has_room || !range.is_found());
            let Some(range) = work.cube_index.unscanned.next(RANGES_ASKED, is_due) else { return Ok(true) };
            if self.scan(work, range, &mut NextCubes::up_to(range.last))? {
                read += 1;
            } else {
                found += 1;
            }
        }
        Ok(false)
    }

    /// Reads the rows of the next cold cluster with rows, due or not. Returns `None` if all were read since the index
    /// began again.
    pub(super) fn read_next_cluster(
        &self,
        work: &mut Work,
        next_cubes: &mut NextCubes,
    ) -> Result<Option<ClusterAt>, Error> {
        while let Some(range) = work.cube_index.unscanned.next(usize::MAX, |range| !range.was_evicted()) {
            self.scan(work, range, next_cubes)?;
            if let Some(cluster) = range.cluster().filter(|cluster| work.cube_index.is_whole(*cluster)) {
                return Ok(Some(cluster));
            }
        }
        Ok(None)
    }

    /// Scans a range up to its first cube: records the cold cluster around it, or reads it if that cluster is known.
    /// Over a network it reads all cubes of a known cluster. Returns whether something was read.
    fn scan(&self, work: &mut Work, range: CubeRange, next_cubes: &mut NextCubes) -> Result<bool, Error> {
        if self.is_over_network
            && let Some(cluster) = range.cluster()
        {
            self.gather(work, &[cluster])?;
            if let Some(cubes) = work.gathered.cubes(cluster) {
                let begins = Edge::of(range.from);
                let is_here =
                    |cube: &CubeAt| Edge::of(Bound::Included(*cube)) >= begins && range.reaches(*cube);
                for cube in cubes.into_iter().filter(is_here) {
                    self.read_cube(work, cube)?;
                }
                work.cube_index.unscanned.read(range, None);
                return Ok(true);
            }
        }
        let cube = self.next_cube(range.from, next_cubes, &mut work.damage_log)?;
        let Some(cube) = cube.filter(|cube| range.reaches(*cube)) else {
            work.cube_index.unscanned.read(range, None);
            return Ok(false);
        };
        if range.is_found() {
            self.read_cube(work, cube)?;
            work.cube_index.unscanned.read(range, Some(cube));
        } else {
            let since = self.left_alone_since(work, cube.cluster(ClusterTier::L2))?;
            work.cube_index.unscanned.found(range, cube, since);
        }
        Ok(range.is_found())
    }

    /// Evicts cold clusters until the index is small enough.
    pub(super) fn evict_excess(&self, work: &mut Work) {
        let now = self.activity.tiering.now();
        let not_before = GameTick::new(now.get().saturating_add(EVICTED_TICKS));
        while let Some(cluster) = work.cube_index.too_much(now) {
            let cubes = work.cube_index.cubes_in(cluster);
            let since = self.activity.tiering.observers(|seen| {
                let accessed = cubes.iter().map(|known| seen.heat().last_access(known.cube));
                accessed.min().unwrap_or(now)
            });
            work.cube_index.evict(cluster, since, not_before);
        }
    }

    /// A lower bound for the first access to a cube of a cold cluster. A cube with an absent or unreadable heat row
    /// counts as accessed when the world was opened.
    fn left_alone_since(&self, work: &mut Work, cluster: ClusterAt) -> Result<GameTick, Error> {
        let mut since = self.activity.tiering.opened_at();
        let [first, last] = ends(cluster).map(heat_key);
        let keys = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        scan_skipping_damage(&*self.shared.engine()?, Family::Index, keys, |met| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            match met {
                Met::Row(key, row) => {
                    let heat =
                        FrameView::open(Space::Heat, key, row).and_then(|row| Heat::decode(row.payload()));
                    since = since.min(heat.map_or(since, |heat| heat.last_access));
                }
                Met::Gap { error, .. } => work.damage_log.report(&error.into()),
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(since)
    }

    /// The first cube from a position on that has a hot row or a heat row. Unreadable rows on the way are reported, and
    /// stay.
    ///
    /// `next_cubes` has the results for earlier positions.
    pub(super) fn next_cube(
        &self,
        from: Bound<CubeAt>,
        next_cubes: &mut NextCubes,
        damage_log: &mut DamageLog,
    ) -> Result<Option<CubeAt>, Error> {
        let (last, position) = (next_cubes.last, Some(Edge::of(from)));
        if position < next_cubes.position {
            *next_cubes = NextCubes::up_to(last);
        }
        next_cubes.position = position;
        let hot_ends = |cube: CubeAt| hot_keys(cube.cluster(ClusterTier::L1));
        let hot_first = match from {
            Bound::Included(cube) => Bound::Included(hot_ends(cube)[0]),
            Bound::Excluded(cube) => Bound::Excluded(hot_ends(cube)[1]),
            Bound::Unbounded => Bound::Unbounded,
        };
        let hot_last = last.map_or(Bound::Unbounded, |cube| Bound::Included(hot_ends(cube)[1]));
        let tag = Space::Heat.index_tag().expect("it is in the index family");
        let (tag, end) = ([tag], [tag + 1]);
        let (heat_first, heat_last) = (from.map(heat_key), last.map(heat_key));
        let heat_keys = (
            match &heat_first {
                Bound::Unbounded => Bound::Included(&tag[..]),
                bound => bound.as_ref().map(|key| &key[..]),
            },
            heat_last.as_ref().map_or(Bound::Excluded(&end[..]), |key| Bound::Included(&key[..])),
        );
        let hot_of = |key: &[u8]| key::decode_chunk(key).ok().map(CubeAt::of);
        let hot_keys = (hot_first.as_ref().map(|key| &key[..]), hot_last.as_ref().map(|key| &key[..]));
        let first_hot =
            next_cubes.hot.first(from, || self.first_cube(Family::ChunkL0, hot_keys, hot_of, damage_log))?;
        let first_heat = next_cubes
            .heat
            .first(from, || self.first_cube(Family::Index, heat_keys, decode_heat_key, damage_log))?;
        Ok(first_hot.into_iter().chain(first_heat).min_by_key(|cube| key_of(*cube)))
    }

    /// The cube of the first key of a range that names one.
    fn first_cube(
        &self,
        family: Family,
        keys: KeyRange<'_>,
        cube_of: impl Fn(&[u8]) -> Option<CubeAt>,
        damage_log: &mut DamageLog,
    ) -> Result<Option<CubeAt>, Error> {
        // Many cubes may be before a gap, and the search from each of them would read it again.
        let Some(from) = damage_log.gaps.behind(family, keys) else { return Ok(None) };
        let keys = (from.as_ref().map(|key| &key[..]), keys.1);
        let mut behind = match keys.0 {
            Bound::Included(key) | Bound::Excluded(key) => key.to_vec(),
            Bound::Unbounded => Vec::new(),
        };
        Ok(scan_skipping_damage(&*self.shared.engine()?, family, keys, |met| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            match met {
                Met::Row(key, _) => match cube_of(key) {
                    Some(cube) => return ControlFlow::Break(cube),
                    None => behind = key.to_vec(),
                },
                Met::Gap { until, error } => {
                    damage_log.gaps.remember(family, &behind, until, keys.1);
                    behind = until.unwrap_or_default().to_vec();
                    damage_log.report(&error.into());
                }
            }
            ControlFlow::Continue(())
        })?)
    }
}

#[cfg(test)]
mod tests;

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
    fn add(
        &mut self,
        row_key: &[u8],
        row: &[u8],
        buffer: &mut Vec<u8>,
        tombstone_horizon: u64,
    ) -> Result<(), Error> {
        let Ok(at) = key::decode_chunk(row_key) else { return Ok(()) };
        let place = 1 << Slot::of(at.pos, ClusterTier::L1).in_cube();
        self.rows |= place;
        match hot(at, row_key, row, buffer)? {
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
        let around = cube.cluster(ClusterTier::L2);
        self.gather(work, &[around])?;
        let tombstone_horizon = work.gathered.tombstone_horizon(around).unwrap_or(tombstone_horizon);
        let engine = self.shared.engine()?;
        let view = work.gathered.over(around, &*engine);
        let (mut found, mut buffer) = (Hot::NONE, Vec::new());
        let [first, last] = hot_keys(cube.cluster(ClusterTier::L1));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let scanned = view.scan(Family::ChunkL0, range, |row_key, row| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
            if let Err(damage) = found.add(row_key, row, &mut buffer, tombstone_horizon) {
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
        let has_heat = self.load_heat(&view, cube)?;
        Ok(Some(work.cube_index.learn(cube, found, has_heat, tombstone_horizon)))
    }

    /// Reads whether a cube has a warm cluster. Returns `None` if that cannot be read; then the cube is left alone.
    pub(super) fn find_warm(&self, work: &mut Work, cube: CubeAt) -> Result<Option<bool>, Error> {
        let cluster = cube.cluster(ClusterTier::L1);
        let (space, row_key) = row_of(cluster);
        Counters::add(&self.shared.counters.engine_reads, 1);
        let read = || -> Result<bool, Error> { Ok(self.shared.engine()?.get(space, &row_key)?.is_some()) };
        match work.gathered.has_warm(cube).map_or_else(read, Ok) {
            Ok(has_warm) => {
                let has_warm = Some(has_warm);
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
