//! The versions of the chunks of a 4³ cube, of all tiers.

use std::collections::BTreeMap;
use std::ops::Bound;

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::frame;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension, Lookup, Space};

use super::{Changed, Changes, ChunkVersion};
use crate::engine::{CommitSeq, ReadableExt as _};
use crate::read::chunk::hot;
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The place of a chunk in its 4³ cube.
fn place_of(chunk: ChunkPos) -> u8 {
    Slot::of(chunk, ClusterTier::L1).in_group()
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
            let is_here = matches!(hot(*at, &row_key, &row)?, Lookup::Found(_));
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
            let group = Slot::of(cube.min_chunk(), tier).group();
            for place in 0..64 {
                let info = Slot::in_group_of(tier, group, place).and_then(|slot| stored.chunk_info(slot));
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
            let is_here = matches!(hot(at, row_key, row)?, Lookup::Found(_));
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
