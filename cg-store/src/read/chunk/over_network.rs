//! Finds chunks where each call is a message: in few calls, and without a snapshot.
//!
//! | call | asks for | of |
//! |---|---|---|
//! | 1 | hot rows; the warm row with it, if one chunk is asked for | all chunks |
//! | 2 | warm rows | the chunks that are not hot |
//! | 3 | hot, warm and cold rows, in one call | the chunks that are neither |
//!
//! Between two calls a chunk may be saved, and its slot dropped from the cluster in which the next call looks. So a cold
//! copy, or none, is valid only if all three rows are of one state. That is what the third call reads. A warm row that
//! an earlier call has returned is not sent again: its header, which has its checksum, shows whether it is the same.

use std::collections::BTreeMap;

use cg_format::frame::LEN_BYTES;
use cg_format::{ChunkAt, ClusterTier, Lookup, Space, key};

use super::StoredChunk;
use super::find::{ROWS_AT_ONCE, RowKey, Search, clusters_at_once};
use crate::engine::{Engine, EngineError, RowSlice, Value};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The headers of warm rows that were read, by key.
type Headers = BTreeMap<RowKey, Vec<u8>>;

/// A row, if it is stored.
type Row<'v> = Result<Option<Value<'v>>, EngineError>;

impl<T, F: FnMut(StoredChunk<'_>) -> Result<T, Error>> Search<'_, T, F> {
    /// Searches all tiers. Returns one result per position.
    pub(super) fn over_network(mut self, engine: &dyn Engine) -> Vec<Result<Lookup<T>, Error>> {
        let mut headers = Headers::new();
        if let [at] = self.at {
            self.hot_and_warm(engine, *at, &mut headers);
        } else {
            self.hot(engine);
            self.warm(engine, &mut headers);
        }
        self.of_one_state(engine, &headers);
        self.run_on_snapshot(engine);
        self.found.into_iter().map(|found| found.unwrap_or(Ok(Lookup::NotFound))).collect()
    }

    /// Searches the hot and the warm row of the only chunk.
    fn hot_and_warm(&mut self, engine: &dyn Engine, at: ChunkAt, headers: &mut Headers) {
        let (hot, warm) = (key::chunk(at), key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1)));
        Counters::add(&self.counters.engine_reads, 2);
        let rows = engine.get_many(&[(Space::ChunkL0, &hot), (Space::ClusterL1, &warm)]);
        self.count_bytes(&rows);
        let mut rows = rows.into_iter();
        let mut row = || rows.next().unwrap_or(Ok(None));
        self.missing.clear();
        if !self.hot_row(0, &hot, row()) {
            self.cluster_row(engine, (ClusterTier::L1, &warm, row()), vec![0], |row| {
                headers.insert(warm, header(row));
            });
        }
    }

    /// Searches the warm rows of the missing chunks.
    fn warm(&mut self, engine: &dyn Engine, headers: &mut Headers) {
        let mut wanted: Vec<_> = self.take_missing(ClusterTier::L1).into_iter().collect();
        for wanted in wanted.chunks_mut(clusters_at_once(ClusterTier::L1)) {
            Counters::add(&self.counters.engine_reads, wanted.len() as u64);
            let keys: Vec<_> = wanted.iter().map(|(key, _)| (Space::ClusterL1, &key[..])).collect();
            let rows = engine.get_many(&keys);
            self.count_bytes(&rows);
            for ((key, places), row) in wanted.iter_mut().zip(rows) {
                self.cluster_row(engine, (ClusterTier::L1, key, row), std::mem::take(places), |row| {
                    headers.insert(*key, header(row));
                });
            }
        }
    }

    /// Searches all three rows of the missing chunks in one call, or in one for each few cold clusters. Leaves as missing
    /// the chunks whose warm row has changed, and those of a cluster that cannot be read.
    fn of_one_state(&mut self, engine: &dyn Engine, headers: &Headers) {
        let mut changed = Vec::new();
        for wanted in rounds(self.take_missing(ClusterTier::L2)) {
            let places: Vec<_> = wanted.iter().flat_map(|(_, places)| places).copied().collect();
            let hot: Vec<_> = places.iter().map(|place| key::chunk(self.at[*place])).collect();
            self.missing.clone_from(&places);
            let warm: Vec<_> = self.take_missing(ClusterTier::L1).into_iter().collect();

            let whole = |space, key| RowSlice { space, key, bytes: 0..usize::MAX };
            let mut asked: Vec<_> = hot.iter().map(|key| whole(Space::ChunkL0, &key[..])).collect();
            asked.extend(warm.iter().map(|(key, _)| {
                let end = if headers.contains_key(key) { LEN_BYTES } else { usize::MAX };
                RowSlice { space: Space::ClusterL1, key, bytes: 0..end }
            }));
            asked.extend(wanted.iter().map(|(key, _)| whole(Space::ClusterL2, &key[..])));
            Counters::add(&self.counters.engine_reads, asked.len() as u64);
            let rows = engine.get_slices(&asked);
            self.count_bytes(&rows);
            let mut rows = rows.into_iter();

            for ((place, key), row) in places.iter().zip(&hot).zip(rows.by_ref()) {
                self.hot_row(*place, key, row);
            }
            for ((key, mut places), row) in warm.into_iter().zip(rows.by_ref()) {
                places.retain(|place| self.found[*place].is_none());
                match (headers.get(&key), row) {
                    (None, row @ Ok(_)) => {
                        self.cluster_row(engine, (ClusterTier::L1, &key, row), places, |_| {});
                    }
                    (Some(header), Ok(Some(row))) if **header == *row => {}
                    // Reads after this call would be of another state.
                    (Some(_), _) | (None, Err(_)) => changed.append(&mut places),
                }
            }
            for ((key, places), row) in wanted.iter().zip(rows) {
                let is_open = |place: &usize| self.found[*place].is_none() && !changed.contains(place);
                let mut places: Vec<_> = places.iter().copied().filter(is_open).collect();
                if row.is_err() {
                    changed.append(&mut places);
                }
                self.cluster_row(engine, (ClusterTier::L2, key, row), places, |_| {});
            }
            self.missing.clear();
        }
        self.missing = changed;
    }

    fn count_bytes(&self, rows: &[Row<'_>]) {
        let len_bytes = |row: &Value<'_>| row.len() as u64;
        Counters::add(&self.counters.bytes_read, rows.iter().flatten().flatten().map(len_bytes).sum());
    }

    /// Searches one cluster row for chunks, if it is stored. Calls `seen` with it.
    fn cluster_row(
        &mut self,
        engine: &dyn Engine,
        (tier, key, row): (ClusterTier, &RowKey, Row<'_>),
        places: Vec<usize>,
        seen: impl FnOnce(&[u8]),
    ) {
        match row {
            Ok(None) => self.missing.extend(places),
            Ok(Some(row)) => {
                seen(&row);
                self.cluster(tier, (key, &row), places);
            }
            Err(error) => self.unreadable(tier, (key, error), places, engine),
        }
    }
}

/// The places of cold clusters, in parts of as many clusters and places as one call asks for.
fn rounds(wanted: BTreeMap<RowKey, Vec<usize>>) -> Vec<Vec<(RowKey, Vec<usize>)>> {
    let mut rounds: Vec<Vec<(RowKey, Vec<usize>)>> = Vec::new();
    let mut count = 0;
    for (key, places) in wanted {
        count += places.len();
        match rounds.last_mut() {
            Some(round) if round.len() < clusters_at_once(ClusterTier::L2) && count <= ROWS_AT_ONCE => {
                round.push((key, places));
            }
            _ => {
                count = places.len();
                rounds.push(vec![(key, places)]);
            }
        }
    }
    rounds
}

/// The part of a row that changes with each change of it.
fn header(row: &[u8]) -> Vec<u8> {
    row[..row.len().min(LEN_BYTES)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{
        Batch, Caps, CommitSeq, Guard, Latency, Level, MemEngine, Readable, Reopen, RowVisitor, Scan,
        Snapshot, Stamp, delegate,
    };
    use crate::read::chunk::{Rows, find, find_many};
    use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo};
    use cg_format::frame::{Codec, Draft};
    use cg_format::{ChunkPos, Dimension, Limits};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Rows that change before a call.
    struct Moving {
        engine: MemEngine,
        /// What is written before the last call of a search.
        moves: Mutex<Option<Batch>>,
        /// Whether the cold row cannot be read by that call, and is written after it.
        is_broken: bool,
        snapshots: AtomicU32,
    }

    impl std::fmt::Debug for Moving {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Moving").finish_non_exhaustive()
        }
    }

    impl Readable for Moving {
        fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Row<'_>> {
            let Some(batch) = self.moves.lock().unwrap().take() else {
                return self.engine.get_slices(slices);
            };
            let write = || self.engine.commit(batch, &[], Level::Process).unwrap();
            if !self.is_broken {
                write();
                return self.engine.get_slices(slices);
            }
            let rows = self.engine.get_slices(slices).into_iter().zip(slices);
            let broken = |(row, slice): (_, &RowSlice<'_>)| {
                let message = "by request".to_owned();
                if slice.space == Space::ClusterL2 { Err(EngineError::Unavailable { message }) } else { row }
            };
            let rows = rows.map(broken).collect();
            write();
            rows
        }

        fn get(&self, space: Space, key: &[u8]) -> Row<'_> {
            self.engine.get(space, key)
        }

        fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Row<'_>> {
            self.engine.get_many(keys)
        }

        fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
            self.engine.scan_rows(scan, visit)
        }
    }

    impl Engine for Moving {
        fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
            self.engine.commit(batch, guards, level)
        }

        fn caps(&self) -> Caps {
            let mut caps = self.engine.caps();
            caps.latency = Latency::Network;
            caps
        }

        fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
            self.snapshots.fetch_add(1, Ordering::Relaxed);
            self.engine.snapshot()
        }

        fn reopening(&self) -> Reopen {
            self.engine.reopening()
        }

        delegate! {
            engine => sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes
            disk_bytes address usage
        }
    }

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
    }

    fn put_hot(batch: &mut Batch, x: i64, value: &[u8]) {
        let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(value));
        batch.put(Space::ChunkL0, key::chunk(at(x)), row, Stamp::Commit);
    }

    fn put_cluster(batch: &mut Batch, tier: ClusterTier, chunks: &[(i64, &[u8])]) {
        let mut builder = ClusterBuilder::new(tier);
        for (x, value) in chunks {
            let info = SlotInfo { version: 1, schema_generation: 0 };
            builder.put(Slot::of(at(*x).pos, tier), info, value.to_vec());
        }
        let row = builder.finish(&mut Limits::default()).unwrap().unwrap();
        let key = key::cluster(at(chunks[0].0).dimension, at(chunks[0].0).pos.cluster(tier));
        batch.put(Space::of_cluster(tier), key, row, Stamp::Commit);
    }

    /// Rows with the cold chunks 0 and 1, and a warm chunk 2 in the warm cluster of both.
    fn rows(write: impl FnOnce(&mut Batch)) -> Moving {
        let (mut batch, mut later) = (Batch::new(), Batch::new());
        put_cluster(&mut batch, ClusterTier::L2, &[(0, b"cold 0"), (1, b"cold 1")]);
        put_cluster(&mut batch, ClusterTier::L1, &[(2, b"warm 2")]);
        write(&mut later);
        let engine = MemEngine::new();
        engine.commit(batch, &[], Level::Process).unwrap();
        Moving { engine, moves: Mutex::new(Some(later)), is_broken: false, snapshots: AtomicU32::new(0) }
    }

    /// The chunks 0 to 3, found together and alone, and the number of snapshots that each took.
    fn found(rows: impl Fn() -> Moving) -> [(Vec<Option<Vec<u8>>>, u32); 2] {
        let places = [0, 1, 2, 3].map(at);
        let value = |stored: StoredChunk<'_>| Ok(stored.value.to_vec());
        let counters = Counters::default();
        let together = rows();
        let all = find_many(Rows::Now(&together), &counters, &places, value);
        let all = all.into_iter().map(|found| found.unwrap().here()).collect();
        let mut snapshots = 0;
        let alone = places.map(|at| {
            let rows = rows();
            let found = find(Rows::Now(&rows), &counters, at, value).unwrap().here();
            snapshots += rows.snapshots.into_inner();
            found
        });
        [(all, together.snapshots.into_inner()), (alone.into(), snapshots)]
    }

    fn values(values: [&str; 3]) -> Vec<Option<Vec<u8>>> {
        let values = values.into_iter().map(|value| Some(value.as_bytes().to_vec()));
        values.chain([None]).collect()
    }

    #[test]
    fn chunks_are_found_in_the_state_of_the_last_call() {
        for (all, snapshots) in found(|| rows(|_| {})) {
            assert_eq!((all, snapshots), (values(["cold 0", "cold 1", "warm 2"]), 0));
        }
        let saved = || {
            rows(|batch| {
                put_hot(batch, 0, b"hot 0");
                put_cluster(batch, ClusterTier::L2, &[(1, b"cold 1")]);
            })
        };
        for (all, snapshots) in found(saved) {
            assert_eq!((all, snapshots), (values(["hot 0", "cold 1", "warm 2"]), 0));
        }
    }

    #[test]
    fn a_warm_row_that_changes_before_the_last_call_is_read_again() {
        let grown_warm = || {
            rows(|batch| {
                put_cluster(batch, ClusterTier::L1, &[(0, b"warm 0"), (1, b"warm 1"), (2, b"warm 2")]);
                batch.delete(
                    Space::ClusterL2,
                    key::cluster(at(0).dimension, at(0).pos.cluster(ClusterTier::L2)),
                );
            })
        };
        for (all, snapshots) in found(grown_warm) {
            assert_eq!(all, values(["warm 0", "warm 1", "warm 2"]));
            assert!(snapshots > 0);
        }
    }

    #[test]
    fn a_row_that_the_last_call_could_not_read_is_read_of_one_state() {
        let broken = || {
            let rows = rows(|batch| {
                put_hot(batch, 0, b"hot 0");
                put_cluster(batch, ClusterTier::L2, &[(1, b"cold 1")]);
            });
            Moving { is_broken: true, ..rows }
        };
        for (all, snapshots) in found(broken) {
            assert_eq!(all, values(["hot 0", "cold 1", "warm 2"]));
            assert!(snapshots > 0);
        }
    }
}
