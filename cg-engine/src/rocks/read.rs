//! Reading rows of the current state or of a snapshot.
//!
//! A large value is stored in a blob file whose checksum covers the whole value. If the checksum does not match, the
//! value is read without it, and returned if its own frame is intact. So in a damaged cluster all groups except the
//! damaged one can be read. A block of a sorted file is always read with its checksum, because RocksDB does not
//! validate what it parses there.

use std::ops::{Bound, ControlFlow};

use cg_format::Space;
use cg_format::frame::FrameView;
use cg_format::key::Family;
use rocksdb::{DBPinnableSlice, ReadOptions, SnapshotWithThreadMode};

use super::super::{Engine as _, EngineError, KeyRange, Readable, RowVisitor, Scan, Value, range};
use super::{Db, RocksEngine, failure, held, tuning};

/// The maximum number of rows in one call of RocksDB. The lists of more rows are so long that the allocator gets them
/// from the system and returns them with each call.
const ROWS_AT_ONCE: usize = 512;

/// The state from which rows are read. `None` is the current one.
pub(super) type State<'s, 'db> = Option<&'s SnapshotWithThreadMode<'db, Db>>;

/// Options that read a value without its blob's checksum, and without filling a cache.
fn unchecked(state: State<'_, '_>) -> ReadOptions {
    let mut reads = ReadOptions::default();
    if let Some(snapshot) = state {
        reads.set_snapshot(snapshot);
    }
    reads.set_verify_checksums(false);
    reads.fill_cache(false);
    reads
}

/// The options with which a scan reads.
fn reads_of(scan: Scan<'_>) -> ReadOptions {
    if scan.is_uncached {
        let mut reads = ReadOptions::default();
        reads.fill_cache(false);
        reads
    } else {
        tuning::scan_reads(scan.family)
    }
}

/// Whether a read failed at a value in a blob file.
fn is_of_blob(error: &EngineError) -> bool {
    matches!(error, EngineError::Corrupt { message, .. } if held::is_of_blob(message))
}

/// Whether a row's own frame is intact. In a cluster the frame covers the directory; each group has its own checksum.
fn is_whole(family: Family, key: &[u8], row: &[u8]) -> bool {
    Space::of_row(family, key).is_some_and(|space| FrameView::open(space, key, row).is_ok())
}

impl RocksEngine {
    pub(super) fn get_with(
        &self,
        space: Space,
        key: &[u8],
        reads: &ReadOptions,
        state: State<'_, '_>,
    ) -> Result<Option<Value<'_>>, EngineError> {
        self.check_open()?;
        let family = space.family();
        let found = self.db.get_pinned_cf_opt(self.family(family), key, reads);
        Ok(found.or_else(|error| self.past_blob(family, key, state, error))?.map(Value::from))
    }

    /// Reads keys family by family in ascending order, so that RocksDB reads each block once. Without a state, families and
    /// parts of more than [`ROWS_AT_ONCE`] keys may show different ones.
    pub(super) fn get_many_with<'a>(
        &'a self,
        keys: &[(Space, &[u8])],
        reads: &ReadOptions,
        state: State<'_, '_>,
    ) -> Vec<Result<Option<Value<'a>>, EngineError>> {
        let mut order: Vec<_> =
            keys.iter().enumerate().map(|(at, (space, key))| (space.family(), *key, at)).collect();
        order.sort_unstable();
        let mut found: Vec<_> = keys.iter().map(|_| self.check_open().map(|()| None)).collect();
        let runs = order.chunk_by(|(a, ..), (b, ..)| a == b);
        for run in runs.flat_map(|run| run.chunks(ROWS_AT_ONCE)) {
            let Some((family, ..)) = run.first() else { continue };
            let run_keys = run.iter().map(|(_, key, _)| *key);
            let values = self.db.batched_multi_get_cf_opt(self.family(*family), run_keys, true, reads);
            for ((family, key, at), value) in run.iter().zip(values) {
                if found[*at].is_ok() {
                    let value = value.or_else(|error| self.past_blob(*family, key, state, error));
                    found[*at] = value.map(|value| value.map(Value::from));
                }
            }
        }
        found
    }

    /// Handles a failed read of a row. Returns the row if only its blob's checksum does not match.
    fn past_blob(
        &self,
        family: Family,
        key: &[u8],
        state: State<'_, '_>,
        error: rocksdb::Error,
    ) -> Result<Option<DBPinnableSlice<'_>>, EngineError> {
        let error = self.noticed(family, failure::reading_row(family, key, error));
        if !is_of_blob(&error) {
            return Err(error);
        }
        match self.db.get_pinned_cf_opt(self.family(family), key, &unchecked(state)) {
            Ok(Some(row)) if is_whole(family, key, &row) => Ok(Some(row)),
            // The row was deleted meanwhile.
            Ok(None) => Ok(None),
            _ => Err(error),
        }
    }

    /// Scans one state.
    pub(super) fn scan_with(
        &self,
        scan: Scan<'_>,
        state: State<'_, '_>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), EngineError> {
        let Scan { family, range: keys, max_rows, .. } = scan;
        self.check_open()?;
        if range::is_empty(keys) || max_rows == 0 {
            return Ok(());
        }
        let mut shown = 0;
        let mut visit = |key: &[u8], row: &[u8]| {
            shown += 1;
            let seen = visit(key, row);
            if shown == max_rows { ControlFlow::Break(()) } else { seen }
        };
        let batches = self.batch_count();
        // With damage a scan may need several iterators, which must see the same state.
        let mut taken = (state.is_none() && self.is_held(family)).then(|| self.db.snapshot());
        let mut from = keys.0.map(<[u8]>::to_vec);
        loop {
            let range = (from.as_ref().map(Vec::as_slice), keys.1);
            let mut last = None::<Vec<u8>>;
            let mut checked = reads_of(scan);
            if let Some(snapshot) = state.or(taken.as_ref()) {
                checked.set_snapshot(snapshot);
            }
            let scanned = self.iterate(family, range, checked, |key, row| {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                visit(key, row)
            });
            let error = match scanned {
                Err(error) if is_of_blob(&error) => error,
                Err(error) => return Err(self.in_table(error)),
                done => return done.map(drop),
            };
            if state.is_none() && taken.is_none() {
                // No thread writes while this lock is held. If the count is unchanged, the snapshot has the state of
                // the scan.
                let _newest = self.newest.lock();
                if self.batch_count() != batches {
                    return Err(error);
                }
                taken = Some(self.db.snapshot());
            }
            if let Some(last) = last {
                from = Bound::Excluded(last);
            }
            let range = (from.as_ref().map(Vec::as_slice), keys.1);
            let mut key = Vec::new();
            let shown =
                self.iterate(family, range, unchecked(state.or(taken.as_ref())), |row_key, row| {
                    key.extend_from_slice(row_key);
                    ControlFlow::Break(is_whole(family, row_key, row).then(|| visit(row_key, row)))
                })?;
            match shown {
                Some(Some(ControlFlow::Continue(()))) => from = Bound::Excluded(key),
                Some(Some(ControlFlow::Break(()))) => return Ok(()),
                Some(None) => return Err(failure::in_row(family, &key, error)),
                None => return Err(error),
            }
        }
    }

    /// Visits the rows of a range with one iterator.
    pub(super) fn iterate<B>(
        &self,
        family: Family,
        keys: KeyRange<'_>,
        mut reads: ReadOptions,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        if let Some(behind) = range::behind(keys.1) {
            reads.set_iterate_upper_bound(behind);
        }
        let mut rows = self.db.raw_iterator_cf_opt(self.family(family), reads);
        // Unlike a step to the first row, a seek skips rows that a newer range deletion covers.
        rows.seek(range::first(keys.0).unwrap_or_default());
        while let Some((key, value)) = rows.item() {
            if let ControlFlow::Break(result) = visit(key, value) {
                return Ok(Some(result));
            }
            rows.next();
        }
        rows.status().map_err(|error| self.noticed(family, failure::reading(family, error)))?;
        Ok(None)
    }
}

impl Readable for RocksEngine {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.get_with(space, key, &self.reads, None)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        let one_family = keys.windows(2).all(|pair| matches!(pair, [a, b] if a.0.family() == b.0.family()));
        if one_family && keys.len() <= ROWS_AT_ONCE {
            return self.get_many_with(keys, &self.reads, None);
        }
        // Families, and parts of many rows, are read one after the other. Only a snapshot shows them in one state.
        let snapshot = self.db.snapshot();
        let mut reads = ReadOptions::default();
        reads.set_snapshot(&snapshot);
        self.get_many_with(keys, &reads, Some(&snapshot))
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.scan_with(scan, None, visit)
    }
}

/// The rows of a [`RocksEngine`] at one commit.
pub(super) struct RocksSnapshot<'a> {
    engine: &'a RocksEngine,
    snapshot: SnapshotWithThreadMode<'a, Db>,
    reads: ReadOptions,
}

impl<'a> RocksSnapshot<'a> {
    pub(super) fn new(engine: &'a RocksEngine) -> Self {
        let snapshot = engine.db.snapshot();
        let mut reads = ReadOptions::default();
        reads.set_snapshot(&snapshot);
        Self { engine, snapshot, reads }
    }
}

impl Readable for RocksSnapshot<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.engine.get_with(space, key, &self.reads, Some(&self.snapshot))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.engine.get_many_with(keys, &self.reads, Some(&self.snapshot))
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.engine.scan_with(scan, Some(&self.snapshot), visit)
    }
}
