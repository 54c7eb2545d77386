//! The rows of `worldMeta`, read in one call, for an open.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use cg_format::Space;
use cg_format::key::Family;

use crate::engine::{ALL_KEYS, EngineError, Readable, ReadableExt as _, RowVisitor, Scan, Value};

/// All rows of `worldMeta` of one state. Of other families it has none.
#[derive(Debug, Default)]
pub(crate) struct MetaView(BTreeMap<Box<[u8]>, Box<[u8]>>);

impl MetaView {
    /// Reads them with one scan.
    ///
    /// # Errors
    /// As [`Readable::scan_rows`].
    pub(crate) fn read(view: &dyn Readable) -> Result<Self, EngineError> {
        let mut rows = BTreeMap::new();
        view.try_scan(Family::WorldMeta, ALL_KEYS, |key, row| {
            rows.insert(key.into(), row.into());
            Ok::<_, EngineError>(())
        })?;
        Ok(Self(rows))
    }
}

impl Readable for MetaView {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        let row = self.0.get(key).filter(|_| space == Space::WorldMeta);
        Ok(row.map(|row| Value::from(&**row)))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        keys.iter().map(|(space, key)| self.get(*space, key)).collect()
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        if scan.family == Family::WorldMeta {
            let is_asked = |key: &[u8]| RangeBounds::<[u8]>::contains(&scan.range, key);
            let mut rows = self.0.iter().filter(|(key, _)| is_asked(key)).take(scan.max_rows);
            let _ended = rows.try_for_each(|(key, row)| visit(key, row));
        }
        Ok(())
    }
}
