//! Finds many chunks: all hot rows in one call, then all clusters of a tier in one call. Of each cluster only the
//! requested groups are decompressed.
//!
//! Keeps the invariant of [`find`](super::find): a lookup ends at the first tier that has the key.

use std::collections::BTreeMap;

use cg_format::cluster::{LastGroup, Slot, SlotInfo, StoredCluster};
use cg_format::{ChunkAt, ClusterTier, DecodeError, Limits, Lookup, Space, key};

use super::StoredChunk;
use super::find::{hot, in_group};
use crate::engine::{Engine, EngineError, Readable};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The maximum number of hot rows in one call, which bounds the number of pinned rows.
const ROWS_AT_ONCE: usize = 4096;

/// The maximum number of clusters in one call. A cold one may take some megabytes.
const fn clusters_at_once(tier: ClusterTier) -> usize {
    match tier {
        ClusterTier::L1 => 256,
        ClusterTier::L2 => 16,
    }
}

/// Finds the live copies of chunks and calls `read` with each. Returns one result per position, in the order asked.
///
/// Costs one call for the hot rows, then one for the clusters of each tier that may hold the rest. There are more calls
/// for more than [`ROWS_AT_ONCE`] rows or [`clusters_at_once`] clusters. Of a cluster, only the 4³ groups of requested
/// chunks are decompressed, each once. A damaged row fails only the chunks in it.
pub(crate) fn find_many<T>(
    engine: &dyn Engine,
    counters: &Counters,
    at: &[ChunkAt],
    mut read: impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
) -> Vec<Result<Lookup<T>, Error>> {
    let before = engine.batch_count();
    let mut search = Search::new(at);
    search.run(engine, counters, &mut read);
    // A chunk may have moved from a tier not yet searched to one already searched. That takes commits. So absent
    // results are valid only if there were none. A chunk that was found cold may have been saved hot meanwhile.
    if engine.batch_count() != before && search.begin_again() {
        search.run_on_snapshot(engine, counters, &mut read);
    }
    search.end()
}

/// As [`find_many`], in a view that does not change.
pub(crate) fn find_many_in<T>(
    view: &dyn Readable,
    counters: &Counters,
    at: &[ChunkAt],
    mut read: impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
) -> Vec<Result<Lookup<T>, Error>> {
    let mut search = Search::new(at);
    search.run(view, counters, &mut read);
    search.end()
}

/// The state of a search: the missing chunks and the results.
struct Search<'p, T> {
    at: &'p [ChunkAt],
    found: Vec<Option<Result<Lookup<T>, Error>>>,
    /// Positions, as indices in `at`, that were not found yet.
    missing: Vec<usize>,
    /// Positions that were found where only a snapshot can confirm the live copy.
    doubtful: Vec<usize>,
    /// The last decompressed group.
    last: LastGroup,
}

impl<'p, T> Search<'p, T> {
    fn new(at: &'p [ChunkAt]) -> Self {
        let found = at.iter().map(|_| None).collect();
        Self { at, found, missing: (0..at.len()).collect(), doubtful: Vec::new(), last: LastGroup::default() }
    }

    /// Drops the results that a commit during the search may have invalidated. Returns `false` if there are none.
    fn begin_again(&mut self) -> bool {
        self.missing.append(&mut self.doubtful);
        self.missing.sort_unstable();
        for place in &self.missing {
            self.found[*place] = None;
        }
        !self.missing.is_empty()
    }

    fn end(self) -> Vec<Result<Lookup<T>, Error>> {
        self.found.into_iter().map(|found| found.unwrap_or(Ok(Lookup::NotFound))).collect()
    }

    fn run(
        &mut self,
        view: &dyn Readable,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        self.hot(view, counters, read);
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            if self.missing.is_empty() {
                return;
            }
            self.clusters(tier, view, counters, read);
        }
    }

    /// Runs on a snapshot of the engine. Each failed snapshot fails one chunk.
    fn run_on_snapshot(
        &mut self,
        engine: &dyn Engine,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        while let Some(place) = self.missing.last().copied() {
            match engine.snapshot() {
                Ok(view) => return self.run(&view, counters, read),
                Err(error) => self.found[place] = Some(Err(error.into())),
            }
            self.missing.pop();
        }
    }

    /// Searches the hot rows for the missing chunks.
    fn hot(
        &mut self,
        view: &dyn Readable,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        let wanted = std::mem::take(&mut self.missing);
        for wanted in wanted.chunks(ROWS_AT_ONCE) {
            Counters::add(&counters.engine_reads, wanted.len() as u64);
            let keys: Vec<_> = wanted.iter().map(|place| key::chunk(self.at[*place])).collect();
            let asked: Vec<_> = keys.iter().map(|key| (Space::ChunkL0, &key[..])).collect();
            for ((place, key), row) in wanted.iter().zip(&keys).zip(view.get_many(&asked)) {
                let at = self.at[*place];
                if let Ok(Some(row)) = &row {
                    Counters::add(&counters.bytes_read, row.len() as u64);
                }
                self.found[*place] = match row {
                    Ok(None) => {
                        self.missing.push(*place);
                        continue;
                    }
                    Err(error) => Some(Err(error.into())),
                    Ok(Some(row)) => Some(match hot(at, key, &row) {
                        Ok(Lookup::Found(chunk)) => read(chunk).map(Lookup::Found),
                        Ok(Lookup::Tombstone | Lookup::NotFound) => Ok(Lookup::Tombstone),
                        Err(error) => Err(error),
                    }),
                };
            }
        }
    }

    /// Searches the clusters of a tier for the missing chunks.
    fn clusters(
        &mut self,
        tier: ClusterTier,
        view: &dyn Readable,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        let mut wanted: BTreeMap<[u8; key::CHUNK_LEN_BYTES], Vec<usize>> = BTreeMap::new();
        for place in std::mem::take(&mut self.missing) {
            let at = self.at[place];
            wanted.entry(key::cluster(at.dimension, at.pos.cluster(tier))).or_default().push(place);
        }
        let (keys, places): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        let (space, mut places) = (Space::of_cluster(tier), places.into_iter());
        for keys in keys.chunks(clusters_at_once(tier)) {
            Counters::add(&counters.engine_reads, keys.len() as u64);
            let asked: Vec<_> = keys.iter().map(|key| (space, &key[..])).collect();
            for ((key, row), places) in keys.iter().zip(view.get_many(&asked)).zip(places.by_ref()) {
                match row {
                    Ok(None) => self.missing.extend(places),
                    Ok(Some(row)) => {
                        Counters::add(&counters.clusters_read, 1);
                        self.cluster(tier, (key, &row), places, counters, read);
                    }
                    Err(error) => self.unreadable(tier, (key, error), places, view, counters, read),
                }
            }
        }
        self.missing.sort_unstable();
    }

    /// Gives each chunk of an unreadable cluster its own error through a read of its own. If such a read succeeds, its
    /// result is used.
    fn unreadable(
        &mut self,
        tier: ClusterTier,
        (key, error): (&[u8; key::CHUNK_LEN_BYTES], EngineError),
        places: Vec<usize>,
        view: &dyn Readable,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        let mut first = Some(error);
        for place in places {
            match first.take().map_or_else(|| view.get(Space::of_cluster(tier), key), Err) {
                Err(error) => self.found[place] = Some(Err(error.into())),
                Ok(None) => self.missing.push(place),
                Ok(Some(row)) => self.cluster(tier, (key, &row), vec![place], counters, read),
            }
        }
    }

    /// Searches one cluster row for chunks.
    fn cluster(
        &mut self,
        tier: ClusterTier,
        (key, row): (&[u8; key::CHUNK_LEN_BYTES], &[u8]),
        places: Vec<usize>,
        counters: &Counters,
        read: &mut impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
    ) {
        Counters::add(&counters.bytes_read, row.len() as u64);
        let cluster = match StoredCluster::open(tier, key, row) {
            Ok(cluster) => cluster,
            Err(problem) => return self.damaged(tier, key, places, problem),
        };
        let mut groups: BTreeMap<u8, Vec<(usize, SlotInfo)>> = BTreeMap::new();
        for place in places {
            let slot = Slot::of(self.at[place].pos, tier);
            match cluster.chunk_info(slot) {
                Some(info) => groups.entry(slot.group()).or_default().push((place, info)),
                None => self.missing.push(place),
            }
        }
        let mut last = std::mem::take(&mut self.last);
        for (index, members) in groups {
            match cluster.group_after(index, &mut Limits::default(), &mut last) {
                Err(problem) => {
                    self.damaged(tier, key, members.into_iter().map(|(place, _)| place), problem);
                }
                Ok(group) => {
                    let group = group.expect("the directory has slots of the group");
                    Counters::add(&counters.bytes_decompressed, group.decompressed_bytes() as u64);
                    for (place, info) in members {
                        let stored = in_group(self.at[place], tier, info, &group);
                        self.record(tier, place, read(stored).map(Lookup::Found));
                    }
                }
            }
        }
        self.last = last;
    }

    fn damaged(
        &mut self,
        tier: ClusterTier,
        key: &[u8],
        places: impl IntoIterator<Item = usize>,
        problem: DecodeError,
    ) {
        for place in places {
            let damage = Damage::of_chunk(Space::of_cluster(tier), key, self.at[place], problem);
            self.record(tier, place, Err(damage));
        }
    }

    /// Records the result of a chunk from a cluster.
    fn record(&mut self, tier: ClusterTier, place: usize, found: Result<Lookup<T>, Error>) {
        self.found[place] = Some(found);
        if tier == ClusterTier::L2 {
            self.doubtful.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Level, MemEngine, Stamp};
    use cg_format::cluster::ClusterBuilder;
    use cg_format::frame::{Codec, Draft};
    use cg_format::{ChunkPos, Dimension};

    fn hot_row(batch: &mut Batch, at: ChunkAt, value: &[u8]) {
        let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(value));
        batch.put(Space::ChunkL0, key::chunk(at), row, Stamp::Commit);
    }

    #[test]
    fn a_chunk_that_moves_while_it_is_looked_for_is_found() {
        let engine = MemEngine::new();
        let [hot, warm] = [0, 1].map(|x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0)));
        let cluster = key::cluster(warm.dimension, warm.pos.cluster(ClusterTier::L1));
        let mut builder = ClusterBuilder::new(ClusterTier::L1);
        let info = SlotInfo { version: 1, schema_generation: 0 };
        builder.put(Slot::of(warm.pos, ClusterTier::L1), info, &b"before"[..]);
        let row = builder.finish(&mut Limits::default()).unwrap().unwrap();
        let mut batch = Batch::new();
        hot_row(&mut batch, hot, b"hot");
        batch.put(Space::ClusterL1, cluster, row, Stamp::Commit);
        engine.commit(batch, &[], Level::Process).unwrap();

        // After the hot rows were read, the other chunk is saved and its cluster, which then is empty, is dropped.
        let mut moves = Some(|| {
            let mut batch = Batch::new();
            hot_row(&mut batch, warm, b"after");
            batch.delete(Space::ClusterL1, cluster);
            engine.commit(batch, &[], Level::Process).unwrap();
        });
        let found = find_many(&engine, &Counters::default(), &[hot, warm], |stored| {
            if let Some(moves) = moves.take() {
                moves();
            }
            Ok(stored.value.to_vec())
        });
        let found: Vec<_> = found.into_iter().map(|found| found.unwrap().here()).collect();
        assert_eq!(found, [Some(b"hot".to_vec()), Some(b"after".to_vec())]);
    }
}
