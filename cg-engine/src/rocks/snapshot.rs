//! The rows of an engine as they were at one commit.

use cg_format::Space;
use rocksdb::{ReadOptions, SnapshotWithThreadMode};

use super::super::{EngineError, Readable, RowVisitor, Scan, Value};
use super::{Db, RocksEngine};

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
