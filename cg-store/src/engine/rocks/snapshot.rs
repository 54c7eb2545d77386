//! The rows of an engine as they were at one commit.

use std::fmt;
use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::key::Family;
use rocksdb::{DBPinnableSlice, ReadOptions, SnapshotWithThreadMode};

use super::super::{EngineError, KeyRange, ReadView};
use super::{Db, RocksEngine, tuning};

/// The rows of a [`RocksEngine`] as they were.
pub struct RocksSnapshot<'a> {
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

impl ReadView for RocksSnapshot<'_> {
    type Val<'a>
        = DBPinnableSlice<'a>
    where
        Self: 'a;

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Self::Val<'_>>, EngineError> {
        self.engine.get_with(space, key, &self.reads, Some(&self.snapshot))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Self::Val<'_>>, EngineError>> {
        self.engine.get_many_with(keys, &self.reads, Some(&self.snapshot))
    }

    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        self.engine.scan_with(family, range, Some(&self.snapshot), || tuning::scan_reads(family), visit)
    }
}

impl fmt::Debug for RocksSnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksSnapshot").field("engine", self.engine).finish_non_exhaustive()
    }
}
