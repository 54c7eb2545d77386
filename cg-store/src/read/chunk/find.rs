//! Finds the live copies of chunks: as hot rows, otherwise in warm clusters, otherwise in cold ones.
//!
//! All hot rows are read in one call, then all clusters of a tier in one call. Of each cluster only the requested groups
//! are decompressed.
//!
//! **Invariant**: the live copy of a chunk is the one in the lowest-numbered tier that has it. A lookup ends at the
//! first tier that has the key, damaged or not, so damage is never skipped in favour of an older copy.

use std::collections::BTreeMap;

use cg_format::cluster::{LastGroup, Slot, SlotInfo, StoredCluster};
use cg_format::{ChunkAt, ClusterTier, DecodeError, Limits, Lookup, Space, key};

use super::StoredChunk;
use super::hot::hot;
use crate::engine::{CommitSeq, Engine, EngineError, Latency, Readable, Value};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The maximum number of hot rows in one call, which bounds the number of pinned rows.
pub(super) const ROWS_AT_ONCE: usize = 4096;

/// The maximum number of clusters in one call. A cold one may take some megabytes.
pub(super) const fn clusters_at_once(tier: ClusterTier) -> usize {
    match tier {
        ClusterTier::L1 => 256,
        ClusterTier::L2 => 16,
    }
}

/// The key of a row of chunks.
pub(super) type RowKey = [u8; key::CHUNK_LEN_BYTES];

/// The rows in which chunks are looked up.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'r> {
    /// Those of the engine as it is now.
    Now(&'r dyn Engine),
    /// Those of a view that does not change.
    View(&'r dyn Readable),
}

impl<'r> Rows<'r> {
    pub(crate) fn readable(self) -> &'r dyn Readable {
        match self {
            Self::Now(engine) => engine,
            Self::View(view) => view,
        }
    }

    /// The engine, if each call to it is a message.
    fn over_network(self) -> Option<&'r dyn Engine> {
        match self {
            Self::Now(engine) if engine.caps().latency == Latency::Network => Some(engine),
            Self::Now(_) | Self::View(_) => None,
        }
    }

    /// A number that grows with each change of the rows.
    fn change_count(self) -> u64 {
        match self {
            Self::Now(engine) => engine.batch_count(),
            Self::View(_) => 0,
        }
    }
}

/// Finds a chunk's live copy and calls `read` with it. Costs one key read if it is hot, otherwise up to three. Over a
/// network it costs one call if it is hot or warm, otherwise two.
///
/// A hot row is read without the lists of a search: most chunks that are read alone are hot.
pub(crate) fn find<T>(
    rows: Rows<'_>,
    counters: &Counters,
    at: ChunkAt,
    read: impl FnOnce(StoredChunk<'_>) -> Result<T, Error>,
) -> Result<Lookup<T>, Error> {
    let mut read = Some(read);
    let mut take = |stored: StoredChunk<'_>| {
        let read = read.take().expect("each requested place is found at most once");
        read(stored)
    };
    let places = [at];
    let only = |found: Vec<_>| found.into_iter().next().unwrap_or(Ok(Lookup::NotFound));
    if let Some(engine) = rows.over_network() {
        return only(Search::of(counters, &places, take).over_network(engine));
    }
    let before = rows.change_count();
    let row_key = key::chunk(at);
    Counters::add(&counters.engine_reads, 1);
    if let Some(row) = rows.readable().get(Space::ChunkL0, &row_key)? {
        Counters::add(&counters.bytes_read, row.len() as u64);
        return match hot(at, &row_key, &row, &mut Vec::new())? {
            Lookup::Found(chunk) => take(chunk).map(Lookup::Found),
            Lookup::Tombstone | Lookup::NotFound => Ok(Lookup::Tombstone),
        };
    }
    only(Search::of(counters, &places, take).end(rows, before))
}

/// Finds the live copies of chunks and calls `read` with each, once. Returns one result per position, in the order asked.
///
/// Costs one call for the hot rows, then one for the clusters of each tier that may hold the rest. There are more calls
/// for more than [`ROWS_AT_ONCE`] rows or [`clusters_at_once`] clusters. Of a cluster, only the groups of requested
/// chunks are decompressed, each once. A damaged row fails only the chunks in it. What was not found hot or warm is
/// looked up again if there were commits meanwhile; over a network the last call is of one state instead.
pub(crate) fn find_many<T>(
    rows: Rows<'_>,
    counters: &Counters,
    at: &[ChunkAt],
    read: impl FnMut(StoredChunk<'_>) -> Result<T, Error>,
) -> Vec<Result<Lookup<T>, Error>> {
    if let Some(engine) = rows.over_network() {
        return Search::of(counters, at, read).over_network(engine);
    }
    if let [at] = at {
        return vec![find(rows, counters, *at, read)];
    }
    let before = rows.change_count();
    let mut search = Search::of(counters, at, read);
    search.hot(rows.readable());
    search.end(rows, before)
}

/// The state of a search: the missing chunks and the results.
pub(super) struct Search<'s, T, F> {
    pub(super) counters: &'s Counters,
    pub(super) at: &'s [ChunkAt],
    /// Is called with each found chunk.
    read: F,
    pub(super) found: Vec<Option<Result<Lookup<T>, Error>>>,
    /// Positions, as indices in `at`, that were not found yet.
    pub(super) missing: Vec<usize>,
    /// The last decompressed group.
    last: LastGroup,
    /// The last decompressed hot row.
    buffer: Vec<u8>,
}

impl<'s, T, F: FnMut(StoredChunk<'_>) -> Result<T, Error>> Search<'s, T, F> {
    fn of(counters: &'s Counters, at: &'s [ChunkAt], read: F) -> Self {
        let (found, missing) = (at.iter().map(|_| None).collect(), (0..at.len()).collect());
        Self { counters, at, read, found, missing, last: LastGroup::default(), buffer: Vec::new() }
    }

    /// Searches the clusters for what is not hot. Returns one result per position. `before` is the number of changes when
    /// the search began.
    fn end(mut self, rows: Rows<'_>, before: u64) -> Vec<Result<Lookup<T>, Error>> {
        self.below_hot(rows, before);
        self.found.into_iter().map(|found| found.unwrap_or(Ok(Lookup::NotFound))).collect()
    }

    /// Searches the tiers below the hottest one after the other.
    ///
    /// Between two reads a chunk may be saved into the hottest tier, and its slot then be dropped from its cluster. Then
    /// no read finds the live copy. That takes commits. So a cold copy, or none, is valid only if there were no commits
    /// since the search began. Otherwise the missing chunks are searched on a snapshot.
    fn below_hot(&mut self, rows: Rows<'_>, before: u64) {
        let has_changed = || rows.change_count() != before;
        self.clusters(ClusterTier::L1, rows.readable(), || false);
        self.clusters(ClusterTier::L2, rows.readable(), has_changed);
        if let Rows::Now(engine) = rows
            && has_changed()
        {
            self.run_on_snapshot(engine);
        }
    }

    /// Searches a snapshot of the engine for the missing chunks. Each failed snapshot fails one chunk.
    pub(super) fn run_on_snapshot(&mut self, engine: &dyn Engine) {
        while let Some(place) = self.missing.last().copied() {
            match engine.snapshot() {
                Ok(view) => {
                    self.hot(&view);
                    return self.below_hot(Rows::View(&view), 0);
                }
                Err(error) => self.found[place] = Some(Err(error.into())),
            }
            self.missing.pop();
        }
    }

    /// Searches the hot rows for the missing chunks.
    pub(super) fn hot(&mut self, view: &dyn Readable) {
        let wanted = std::mem::take(&mut self.missing);
        for wanted in wanted.chunks(ROWS_AT_ONCE) {
            let keys: Vec<_> = wanted.iter().map(|place| key::chunk(self.at[*place])).collect();
            let rows = read_rows(view, self.counters, Space::ChunkL0, &keys);
            for ((place, key), row) in wanted.iter().zip(&keys).zip(rows) {
                if !self.hot_row(*place, key, row) {
                    self.missing.push(*place);
                }
            }
        }
    }

    /// Takes a chunk from its hot row. Returns `false` if there is none.
    pub(super) fn hot_row(
        &mut self,
        place: usize,
        key: &RowKey,
        row: Result<Option<Value<'_>>, EngineError>,
    ) -> bool {
        let found = match row {
            Ok(None) => return false,
            Ok(Some(row)) => match hot(self.at[place], key, &row, &mut self.buffer) {
                Ok(Lookup::Found(chunk)) => (self.read)(chunk).map(Lookup::Found),
                Ok(Lookup::Tombstone | Lookup::NotFound) => Ok(Lookup::Tombstone),
                Err(error) => Err(error),
            },
            Err(error) => Err(error.into()),
        };
        self.found[place] = Some(found);
        true
    }

    /// Searches the clusters of a tier for the missing chunks, until the rows have changed.
    fn clusters(&mut self, tier: ClusterTier, view: &dyn Readable, has_changed: impl Fn() -> bool) {
        let wanted = self.take_missing(tier);
        let (keys, places): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        let mut places = places.into_iter();
        for keys in keys.chunks(clusters_at_once(tier)) {
            let rows = read_rows(view, self.counters, Space::of_cluster(tier), keys);
            if has_changed() {
                break;
            }
            for ((key, row), places) in keys.iter().zip(rows).zip(places.by_ref()) {
                match row {
                    Ok(None) => self.missing.extend(places),
                    Ok(Some(row)) => self.cluster(tier, (key, &row), places),
                    Err(error) => self.unreadable(tier, (key, error), places, view),
                }
            }
        }
        self.missing.extend(places.flatten());
        self.missing.sort_unstable();
    }

    /// Takes the missing chunks out, by the key of their cluster.
    pub(super) fn take_missing(&mut self, tier: ClusterTier) -> BTreeMap<RowKey, Vec<usize>> {
        let mut wanted: BTreeMap<RowKey, Vec<usize>> = BTreeMap::new();
        for place in std::mem::take(&mut self.missing) {
            let at = self.at[place];
            wanted.entry(key::cluster(at.dimension, at.pos.cluster(tier))).or_default().push(place);
        }
        wanted
    }

    /// Gives each chunk of an unreadable cluster its own error through a read of its own. If such a read succeeds, its
    /// result is used.
    pub(super) fn unreadable(
        &mut self,
        tier: ClusterTier,
        (key, error): (&RowKey, EngineError),
        places: Vec<usize>,
        view: &dyn Readable,
    ) {
        let mut first = Some(error);
        for place in places {
            match first.take().map_or_else(|| view.get(Space::of_cluster(tier), key), Err) {
                Err(error) => self.found[place] = Some(Err(error.into())),
                Ok(None) => self.missing.push(place),
                Ok(Some(row)) => self.cluster(tier, (key, &row), vec![place]),
            }
        }
    }

    /// Searches one cluster row for chunks.
    pub(super) fn cluster(&mut self, tier: ClusterTier, (key, row): (&RowKey, &[u8]), places: Vec<usize>) {
        Counters::add(&self.counters.clusters_read, 1);
        let cluster = match StoredCluster::open(tier, key, row) {
            Ok(cluster) => cluster,
            Err(problem) => return self.damaged(tier, key, places, problem),
        };
        let mut groups: BTreeMap<u8, Vec<(usize, SlotInfo)>> = BTreeMap::new();
        for place in places {
            let slot = Slot::of(self.at[place].pos, tier);
            match cluster.chunk_info(slot) {
                Some(info) => groups.entry(cluster.group_of(slot)).or_default().push((place, info)),
                None => self.missing.push(place),
            }
        }
        let mut last = std::mem::take(&mut self.last);
        for (index, members) in groups {
            let group = match cluster.group_after(index, &mut Limits::default(), &mut last) {
                Ok(group) => group.expect("the directory has slots of the group"),
                Err(problem) => {
                    self.damaged(tier, key, members.into_iter().map(|(place, _)| place), problem);
                    continue;
                }
            };
            Counters::add(&self.counters.bytes_decompressed, group.decompressed_bytes() as u64);
            for (place, info) in members {
                let at = self.at[place];
                let value =
                    group.chunk(Slot::of(at.pos, tier)).expect("the group holds what the directory says");
                let stored = in_cluster(at, tier, info, &value);
                self.found[place] = Some((self.read)(stored).map(Lookup::Found));
            }
        }
        self.last = last;
    }

    fn damaged(
        &mut self,
        tier: ClusterTier,
        key: &RowKey,
        places: impl IntoIterator<Item = usize>,
        problem: DecodeError,
    ) {
        for place in places {
            let damage = Damage::of_chunk(Space::of_cluster(tier), key, self.at[place], problem);
            self.found[place] = Some(Err(damage));
        }
    }
}

/// Reads rows of one kind in one call.
fn read_rows<'v>(
    view: &'v dyn Readable,
    counters: &Counters,
    space: Space,
    keys: &[RowKey],
) -> Vec<Result<Option<Value<'v>>, EngineError>> {
    Counters::add(&counters.engine_reads, keys.len() as u64);
    let rows = match keys {
        [key] => vec![view.get(space, key)],
        keys => view.get_many(&keys.iter().map(|key| (space, &key[..])).collect::<Vec<_>>()),
    };
    let len_bytes = |row: &Value<'_>| row.len() as u64;
    Counters::add(&counters.bytes_read, rows.iter().flatten().flatten().map(len_bytes).sum());
    rows
}

/// A chunk with the entry of its cluster's directory.
fn in_cluster(at: ChunkAt, tier: ClusterTier, info: SlotInfo, value: &[u8]) -> StoredChunk<'_> {
    let SlotInfo { version, schema_generation } = info;
    StoredChunk { at, version: CommitSeq::new(version), schema_generation, tier: tier.tier(), value }
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
        let found = find_many(Rows::Now(&engine), &Counters::default(), &[hot, warm], |stored| {
            if let Some(moves) = moves.take() {
                moves();
            }
            Ok(stored.value.to_vec())
        });
        let found: Vec<_> = found.into_iter().map(|found| found.unwrap().here()).collect();
        assert_eq!(found, [Some(b"hot".to_vec()), Some(b"after".to_vec())]);
    }
}
