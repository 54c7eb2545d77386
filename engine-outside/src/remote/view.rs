//! Reading: of now, and of a snapshot that the server keeps.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use cg_engine::{CommitSeq, EngineError, Readable, RowVisitor, Scan, Space, Value};

use super::Remote;
use crate::server::{Place, place};

/// At most this many rows come in one answer.
const PAGE_ROWS: usize = 256;

/// A state that the server keeps until the value is dropped, or until others push it out.
#[derive(Debug)]
pub(crate) struct Kept<'r> {
    remote: &'r Remote,
    number: u64,
    seq: CommitSeq,
}

impl<'r> Kept<'r> {
    pub(crate) fn new(remote: &'r Remote) -> Result<Self, EngineError> {
        remote.check_open()?;
        // A snapshot whose answer was lost is pushed out by later ones.
        let (number, seq) = remote.network.call(|| remote.server.keep())?;
        Ok(Self { remote, number, seq })
    }

    fn gone(&self) -> EngineError {
        EngineError::SnapshotGone { seq: self.seq }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        // No caller needs the answer, and later snapshots push out one that is not released.
        let _ = self.remote.network.call(|| self.remote.server.release(self.number));
    }
}

impl Readable for Kept<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.get_many(&[(space, key)]).pop().unwrap_or(Ok(None))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.remote.read_many(Some(self.number), keys, &|| self.gone())
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let family = scan.family as u8;
        let end = match scan.range.1 {
            Bound::Included(key) => Bound::Included((family, key.to_vec())),
            Bound::Excluded(key) => Bound::Excluded((family, key.to_vec())),
            Bound::Unbounded => Bound::Excluded((family + 1, Vec::new())),
        };
        let mut from = match scan.range.0 {
            Bound::Included(key) => Bound::Included((family, key.to_vec())),
            Bound::Excluded(key) => Bound::Excluded((family, key.to_vec())),
            Bound::Unbounded => Bound::Included((family, Vec::new())),
        };
        while is_range(&from, &end) {
            self.remote.check_open()?;
            let ask = || self.remote.server.page(self.number, (from.clone(), end.clone()), PAGE_ROWS);
            let page = self.remote.network.call(ask)?.ok_or_else(|| self.gone())?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            let next = Bound::Excluded((family, last.clone()));
            for (key, row) in &page {
                if visit(key, row).is_break() {
                    return Ok(());
                }
            }
            from = next;
        }
        Ok(())
    }
}

/// Whether a key can be between the ends: `BTreeMap` panics otherwise.
fn is_range(from: &Bound<Place>, to: &Bound<Place>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from < to
        }
        _ => true,
    }
}

impl Remote {
    fn read_many(
        &self,
        snapshot: Option<u64>,
        keys: &[(Space, &[u8])],
        gone: &dyn Fn() -> EngineError,
    ) -> Vec<Result<Option<Value<'static>>, EngineError>> {
        let places: Vec<_> = keys.iter().map(|(space, key)| place(*space, key)).collect();
        let read = || -> Result<_, EngineError> {
            self.check_open()?;
            self.network.call(|| self.server.get(snapshot, &places))?.ok_or_else(gone)
        };
        match read() {
            Ok(rows) => rows.into_iter().map(|row| Ok(row.map(Value::from))).collect(),
            Err(EngineError::Closed) => keys.iter().map(|_| Err(EngineError::Closed)).collect(),
            Err(error) => keys.iter().map(|_| Err(again(&error, gone))).collect(),
        }
    }
}

/// The same error once more: an error of the whole call is one of each key.
fn again(error: &EngineError, gone: &dyn Fn() -> EngineError) -> EngineError {
    match error {
        EngineError::Unavailable { message } => EngineError::Unavailable { message: message.clone() },
        _ => gone(),
    }
}

impl Readable for Remote {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.get_many(&[(space, key)]).pop().unwrap_or(Ok(None))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        let newest =
            || EngineError::SnapshotGone { seq: CommitSeq::new(self.last_commit.load(Ordering::Acquire)) };
        self.read_many(None, keys, &newest)
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        // All pages are of one state.
        Kept::new(self)?.scan_rows(scan, visit)
    }
}
