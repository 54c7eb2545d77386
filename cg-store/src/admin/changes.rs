//! Which chunks changed since a commit, told without their content.
//!
//! A change mark, one row for each 4³ and each 16³ cube, has the last commit that changed something there. The frames and
//! cluster directories of a cube have the versions of its chunks. Nothing is decompressed or decoded.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::frame::{self, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension, Lookup, Space};

use crate::commit::commit_log::CommitLog;
use crate::engine::{CommitSeq, Readable, ReadableExt as _};
use crate::read::chunk::{Area, Cubes, open_hot};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// A chunk, and the last commit that changed it.
type Changed = (ChunkAt, u64);

/// The last commit that changed a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkVersion {
    /// The commit.
    pub version: CommitSeq,
    /// Whether that commit deleted the chunk. The world forgets a deletion when it
    /// [purges its tombstone](crate::tiers::Tiers::purge_tombstones_before).
    pub is_deleted: bool,
}

/// The changes that one view of the engine has.
pub(crate) struct Changes<'a> {
    pub(crate) view: &'a dyn Readable,
    pub(crate) counters: &'a Counters,
    pub(crate) log: &'a CommitLog,
    /// A commit that the view has; it may have later ones.
    pub(crate) commit: u64,
}

impl Changes<'_> {
    /// See [`ReadView::for_each_changed`](crate::view::ReadView::for_each_changed).
    pub(crate) fn for_each<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
        mut visit: impl FnMut(ClusterPos, Result<Vec<(ChunkPos, ChunkVersion)>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        for (cube, changed) in self.changed_cubes(dimension, area, since)? {
            let places = match self.places_of(dimension, cube, changed.as_deref()) {
                Ok(places) => places,
                Err(error @ Error::Corrupt(_)) => match visit(cube, Err(error)) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(value) => return Ok(Some(value)),
                },
                Err(error) => return Err(error),
            };
            let chunks = places.into_iter().filter_map(|(place, version)| {
                let chunk = chunk_at(cube, place)?;
                (version.version.get() > since && area.contains(chunk)).then_some((chunk, version))
            });
            let chunks: Vec<_> = chunks.collect();
            if chunks.is_empty() {
                continue;
            }
            if let ControlFlow::Break(value) = visit(cube, Ok(chunks)) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// A 4³ cube in which something changed, and what, if memory holds that.
type ChangedIn = (ClusterPos, Option<Vec<Changed>>);

impl Changes<'_> {
    /// The 4³ cubes of a box in which something changed after a commit, in the order of their keys. Each with the chunks that
    /// changed and the commits that changed them, if memory holds those.
    pub(super) fn changed_cubes(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ChangedIn>, Error> {
        let log = self.log;
        let wants = |at: ChunkAt| at.dimension == dimension && area.contains(at.pos);
        let Some(recent) = log.changed_since(since, self.commit, wants) else {
            let mut cubes = Vec::new();
            for large in self.changed_16(dimension, area, since)? {
                let found = self.changed_in(dimension, large, area, since)?;
                cubes.extend(found.into_iter().map(|cube| (cube, None)));
            }
            return Ok(cubes);
        };
        let mut cubes: BTreeMap<_, (ClusterPos, Vec<Changed>)> = BTreeMap::new();
        for (at, commit) in recent {
            let cube = at.pos.cluster(ClusterTier::L1);
            let entry = cubes.entry(key::cluster(dimension, cube)).or_insert((cube, Vec::new()));
            entry.1.push((at, commit));
        }
        Ok(cubes.into_values().map(|(cube, changed)| (cube, Some(changed))).collect())
    }

    /// The 16³ cubes of a box in which something changed. The marks of a small box are read one by one, those of a large
    /// one are scanned.
    fn changed_16(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let Cubes::Named(cubes) = Cubes::of(Area::Box(dimension, *area)) else {
            let ends = [area.min(), area.max()].map(|corner| corner.cluster(ClusterTier::L2));
            return self.marked(dimension, ends, area, since);
        };
        let mut found = Vec::new();
        for (_, cube) in cubes {
            match self.mark(dimension, cube) {
                Ok(mark) if mark.is_none_or(|mark| mark <= since) => {}
                Ok(_) | Err(Error::Corrupt(_)) => found.push(cube),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The 4³ cubes of a 16³ cube and a box in which something changed.
    fn changed_in(
        &self,
        dimension: Dimension,
        large: ClusterPos,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let ends = [large.min_chunk(), large.max_chunk()].map(|chunk| chunk.cluster(ClusterTier::L1));
        self.marked(dimension, ends, area, since)
    }

    /// The cubes between two in the order of keys whose marks are newer than a commit, or damaged, and that meet a box.
    fn marked(
        &self,
        dimension: Dimension,
        [first, last]: [ClusterPos; 2],
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let (first, last) = (key::change_mark(dimension, first), key::change_mark(dimension, last));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let mut found = Vec::new();
        self.view.scan(Family::Index, range, |row_key, row| {
            Counters::add(&self.counters.keys_scanned, 1);
            let is_newer = FrameView::open(Space::ChangeMark, row_key, row)
                .map_or(true, |frame| frame.header().version > since);
            if is_newer
                && let Ok((_, cube)) = key::decode_change_mark(row_key)
                && meets(area, cube)
            {
                found.push(cube);
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// The commit that last changed something in a cube; `None` if nothing ever did.
    pub(crate) fn mark(&self, dimension: Dimension, cube: ClusterPos) -> Result<Option<u64>, Error> {
        let row_key = key::change_mark(dimension, cube);
        Counters::add(&self.counters.engine_reads, 1);
        let Some(row) = self.view.get(Space::ChangeMark, &row_key)? else { return Ok(None) };
        let frame = FrameView::open(Space::ChangeMark, &row_key, &row);
        let damage = |problem| Damage::of_row(Space::ChangeMark, &row_key, cube.to_string(), problem);
        Ok(Some(frame.map_err(damage)?.header().version))
    }
}

/// Whether a cube has a chunk in a box.
fn meets(area: &ChunkBox, cube: ClusterPos) -> bool {
    area.intersects(&ChunkBox::new(cube.min_chunk(), cube.max_chunk()))
}

/// The place of a chunk in its 4³ cube.
fn place_of(chunk: ChunkPos) -> u8 {
    Slot::of(chunk, ClusterTier::L1).in_cube()
}

/// The chunk at a place of a 4³ cube.
pub(super) fn chunk_at(cube: ClusterPos, place: u8) -> Option<ChunkPos> {
    Slot::new(ClusterTier::L1, place.into())?.chunk(cube)
}

impl Changes<'_> {
    /// As [`places`](Self::places), of those that are known to have changed. One read for each that is hot, as it is unless it
    /// was moved since; otherwise all are looked at.
    pub(super) fn places_of(
        &self,
        dimension: Dimension,
        cube: ClusterPos,
        changed: Option<&[Changed]>,
    ) -> Result<BTreeMap<u8, ChunkVersion>, Error> {
        let Some(changed) = changed else { return self.places(dimension, cube) };
        let mut places = BTreeMap::new();
        for (at, commit) in changed {
            let row_key = key::chunk(*at);
            Counters::add(&self.counters.engine_reads, 1);
            let row = self.view.get(Space::ChunkL0, &row_key)?;
            // Changed again after the view's commit: a delta of that is not in the row.
            let Some(row) = row.filter(|_| *commit <= self.commit) else {
                return self.places(dimension, cube);
            };
            Counters::add(&self.counters.bytes_read, row.len() as u64);
            let is_here = matches!(open_hot(*at, &row_key, &row)?, Lookup::Found(_));
            let version = CommitSeq::new(frame::version_of(&row).unwrap_or(0).max(*commit));
            places.insert(place_of(at.pos), ChunkVersion { version, is_deleted: !is_here });
        }
        Ok(places)
    }

    /// See [`ReadView::chunk_versions`](crate::view::ReadView::chunk_versions).
    pub(crate) fn versions(
        &self,
        dimension: Dimension,
        cube: ClusterPos,
    ) -> Result<Vec<(ChunkPos, ChunkVersion)>, Error> {
        let places = self.places(dimension, cube)?.into_iter();
        Ok(places.filter_map(|(place, version)| Some((chunk_at(cube, place)?, version))).collect())
    }

    /// The chunks of a 4³ cube by their places. Costs two reads and two scans; reads of clusters their directories alone.
    fn places(&self, dimension: Dimension, cube: ClusterPos) -> Result<BTreeMap<u8, ChunkVersion>, Error> {
        let counters = self.counters;
        let mut places = BTreeMap::new();
        // Hotter tiers hide colder ones, so they come later.
        for tier in [ClusterTier::L2, ClusterTier::L1] {
            let cluster = cube.min_chunk().cluster(tier);
            let (space, row_key) = (Space::of_cluster(tier), key::cluster(dimension, cluster));
            Counters::add(&counters.engine_reads, 1);
            let Some(row) = self.view.get(space, &row_key)? else { continue };
            Counters::add(&counters.clusters_read, 1);
            Counters::add(&counters.bytes_read, row.len() as u64);
            let stored = StoredCluster::open(tier, &row_key, &row)
                .map_err(|problem| Damage::of_row(space, &row_key, cluster.to_string(), problem))?;
            let cube = Slot::of(cube.min_chunk(), tier).cube();
            for place in 0..64 {
                let info = Slot::in_cube_of(tier, cube, place).and_then(|slot| stored.chunk_info(slot));
                if let Some(info) = info {
                    let version = CommitSeq::new(info.version);
                    places.insert(place, ChunkVersion { version, is_deleted: false });
                }
            }
        }
        let keys = key::chunks_of_cluster(dimension, cube);
        self.scan(Family::ChunkL0, [&keys.start()[..], &keys.end()[..]], |row_key, row| {
            Counters::add(&counters.bytes_read, row.len() as u64);
            let damage = |problem| Damage::of_row(Space::ChunkL0, row_key, cube.to_string(), problem);
            let at = key::decode_chunk(row_key).map_err(damage)?;
            let is_here = matches!(open_hot(at, row_key, row)?, Lookup::Found(_));
            let version = CommitSeq::new(frame::version_of(row).unwrap_or(0));
            places.insert(place_of(at.pos), ChunkVersion { version, is_deleted: !is_here });
            Ok(())
        })?;
        let [first, last] = [(cube.min_chunk(), 0), (cube.max_chunk(), u64::MAX)]
            .map(|(pos, commit)| key::delta(ChunkAt { dimension, pos }, commit));
        self.scan(Family::ChunkDelta, [&first, &last], |row_key, _| {
            if let Ok((at, commit)) = key::decode_delta(row_key)
                && let Some(ChunkVersion { version, is_deleted: false }) = places.get_mut(&place_of(at.pos))
            {
                *version = CommitSeq::new(commit).max(*version);
            }
            Ok(())
        })?;
        Ok(places)
    }

    fn scan(
        &self,
        family: Family,
        [first, last]: [&[u8]; 2],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let range = (Bound::Included(first), Bound::Included(last));
        self.view.try_scan(family, range, |key, row| {
            Counters::add(&self.counters.keys_scanned, 1);
            each(key, row)
        })
    }
}
