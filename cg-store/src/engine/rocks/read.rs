//! Reading rows, of now or as a snapshot has them.

use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::key::Family;
use rocksdb::{DBPinnableSlice, ReadOptions};

use super::super::{EngineError, KeyRange, ReadView, range};
use super::{RocksEngine, failure, tuning};

impl RocksEngine {
    pub(super) fn get_with(
        &self,
        space: Space,
        key: &[u8],
        reads: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, EngineError> {
        self.check_open()?;
        let family = space.family();
        let found = self.db.get_pinned_cf_opt(self.family(family), key, reads);
        found.map_err(|error| self.noticed(family, failure::reading_row(family, key, error)))
    }

    /// Reads keys family by family in ascending order, which lets RocksDB read each block once.
    pub(super) fn get_many_with<'a>(
        &'a self,
        keys: &[(Space, &[u8])],
        reads: &ReadOptions,
    ) -> Vec<Result<Option<DBPinnableSlice<'a>>, EngineError>> {
        let mut order: Vec<_> =
            keys.iter().enumerate().map(|(at, (space, key))| (space.family(), *key, at)).collect();
        order.sort_unstable();
        let mut found: Vec<_> = keys.iter().map(|_| self.check_open().map(|()| None)).collect();
        for run in order.chunk_by(|(a, ..), (b, ..)| a == b) {
            let Some((family, ..)) = run.first() else { continue };
            let run_keys = run.iter().map(|(_, key, _)| *key);
            let values = self.db.batched_multi_get_cf_opt(self.family(*family), run_keys, true, reads);
            for ((family, key, at), value) in run.iter().zip(values) {
                if found[*at].is_ok() {
                    let noticed = |error| self.noticed(*family, failure::reading_row(*family, key, error));
                    found[*at] = value.map_err(noticed);
                }
            }
        }
        found
    }

    pub(super) fn scan_with<B>(
        &self,
        family: Family,
        keys: KeyRange<'_>,
        mut reads: ReadOptions,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        self.check_open()?;
        if range::is_empty(keys) {
            return Ok(None);
        }
        if let Some(behind) = range::behind(keys.1) {
            reads.set_iterate_upper_bound(behind);
        }
        let mut rows = self.db.raw_iterator_cf_opt(self.family(family), reads);
        match range::first(keys.0) {
            Some(first) => rows.seek(first),
            None => rows.seek_to_first(),
        }
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

impl ReadView for RocksEngine {
    type Val<'a> = DBPinnableSlice<'a>;

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Self::Val<'_>>, EngineError> {
        self.get_with(space, key, &self.reads)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Self::Val<'_>>, EngineError>> {
        let one_family = keys.windows(2).all(|pair| matches!(pair, [a, b] if a.0.family() == b.0.family()));
        if one_family {
            return self.get_many_with(keys, &self.reads);
        }
        // Families are read one after the other: only a snapshot shows them in one state.
        let snapshot = self.db.snapshot();
        let mut reads = ReadOptions::default();
        reads.set_snapshot(&snapshot);
        self.get_many_with(keys, &reads)
    }

    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        self.scan_with(family, range, tuning::scan_reads(family), visit)
    }

    fn scan_past<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        let mut reads = ReadOptions::default();
        reads.fill_cache(false);
        self.scan_with(family, range, reads, visit)
    }
}
