//! Reads of the current state, and of a snapshot on the server.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::engine::Remote;
use super::network::Network;
use super::server::{Place, Row, Server, place};
use crate::{CommitSeq, EngineError, Readable, RowSlice, RowVisitor, Scan, Space, Value};

/// The maximum number of rows in one answer.
const PAGE_ROWS: usize = 256;

/// The part of an engine that reads use. Snapshots may outlive the engine.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    pub(super) server: Arc<Server>,
    pub(super) network: Arc<Network>,
    pub(super) last_commit: Arc<AtomicU64>,
    pub(super) closed: Arc<AtomicBool>,
}

/// A snapshot on the server, until the value is dropped or newer snapshots evict it.
#[derive(Debug)]
pub(super) struct Kept {
    reads: Reads,
    number: u64,
    seq: CommitSeq,
}

impl Kept {
    pub(super) fn new(reads: &Reads) -> Result<Self, EngineError> {
        reads.check_open()?;
        // If the answer is lost, later snapshots evict the snapshot.
        let (number, seq) = reads.network.call(|| reads.server.keep())?;
        Ok(Self { reads: reads.clone(), number, seq })
    }

    fn gone(&self) -> EngineError {
        EngineError::SnapshotGone { seq: self.seq }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // No caller needs the answer. Later snapshots evict one that is not released.
        let _ = self.reads.network.call(|| self.reads.server.release(self.number));
    }
}

impl Readable for Kept {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        self.get_many(&[(space, key)]).pop().unwrap_or(Ok(None))
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.reads.read_many(Some(self.number), keys, &|| self.gone())
    }

    fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.reads.read_slices(Some(self.number), slices, &|| self.gone())
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let mut rest = Rest::of(scan);
        while rest.is_any() {
            self.reads.check_open()?;
            let (range, limit) = rest.next_page();
            let ask = || self.reads.server.page(Some(self.number), range.clone(), limit);
            let page = self.reads.network.call(ask)?.ok_or_else(|| self.gone())?;
            if rest.show(page, visit).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The rest of a scan.
struct Rest {
    family: u8,
    from: Bound<Place>,
    to: Bound<Place>,
    max_rows: usize,
}

impl Rest {
    fn of(scan: Scan<'_>) -> Self {
        let family = scan.family as u8;
        let from = match scan.range.0 {
            Bound::Included(key) => Bound::Included((family, key.to_vec())),
            Bound::Excluded(key) => Bound::Excluded((family, key.to_vec())),
            Bound::Unbounded => Bound::Included((family, Vec::new())),
        };
        let to = match scan.range.1 {
            Bound::Included(key) => Bound::Included((family, key.to_vec())),
            Bound::Excluded(key) => Bound::Excluded((family, key.to_vec())),
            Bound::Unbounded => Bound::Excluded((family + 1, Vec::new())),
        };
        Self { family, from, to, max_rows: scan.max_rows }
    }

    fn is_any(&self) -> bool {
        self.max_rows > 0 && is_range(&self.from, &self.to)
    }

    /// The remaining range, and the maximum number of rows on its next page.
    fn next_page(&self) -> ((Bound<Place>, Bound<Place>), usize) {
        ((self.from.clone(), self.to.clone()), self.max_rows.min(PAGE_ROWS))
    }

    /// Visits the rows of a page. Breaks if `visit` breaks, and after the last page.
    fn show(&mut self, page: Vec<Row>, visit: &mut RowVisitor<'_>) -> ControlFlow<()> {
        for (key, row) in &page {
            visit(key, row)?;
        }
        self.max_rows -= page.len();
        match page.into_iter().next_back() {
            Some((last, _)) => {
                self.from = Bound::Excluded((self.family, last));
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// Whether a key can be between the bounds. `BTreeMap` panics otherwise.
fn is_range(from: &Bound<Place>, to: &Bound<Place>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from < to
        }
        _ => true,
    }
}

impl Reads {
    pub(super) fn new(server: &Arc<Server>, network: &Arc<Network>, last_commit: CommitSeq) -> Self {
        Self {
            server: Arc::clone(server),
            network: Arc::clone(network),
            last_commit: Arc::new(AtomicU64::new(last_commit.get())),
            closed: Arc::default(),
        }
    }

    pub(super) fn check_open(&self) -> Result<(), EngineError> {
        if self.closed.load(Ordering::Acquire) { Err(EngineError::Closed) } else { Ok(()) }
    }

    fn read_many(
        &self,
        snapshot: Option<u64>,
        keys: &[(Space, &[u8])],
        gone: &dyn Fn() -> EngineError,
    ) -> Vec<Result<Option<Value<'static>>, EngineError>> {
        let places: Vec<_> = keys.iter().map(|(space, key)| place(*space, key)).collect();
        self.read_rows(places.len(), || self.server.get(snapshot, &places), gone)
    }

    fn read_slices(
        &self,
        snapshot: Option<u64>,
        slices: &[RowSlice<'_>],
        gone: &dyn Fn() -> EngineError,
    ) -> Vec<Result<Option<Value<'static>>, EngineError>> {
        let place = |slice: &RowSlice<'_>| (place(slice.space, slice.key), slice.bytes.clone());
        let places: Vec<_> = slices.iter().map(place).collect();
        self.read_rows(places.len(), || self.server.get_slices(snapshot, &places), gone)
    }

    /// Requests `count` rows, or parts of rows. `ask` returns `None` if the snapshot no longer exists.
    fn read_rows(
        &self,
        count: usize,
        ask: impl FnMut() -> Option<Vec<Option<Arc<[u8]>>>>,
        gone: &dyn Fn() -> EngineError,
    ) -> Vec<Result<Option<Value<'static>>, EngineError>> {
        let read = || -> Result<_, EngineError> {
            self.check_open()?;
            self.network.call(ask)?.ok_or_else(gone)
        };
        match read() {
            Ok(rows) => rows.into_iter().map(|row| Ok(row.map(Value::from))).collect(),
            Err(EngineError::Closed) => (0..count).map(|_| Err(EngineError::Closed)).collect(),
            Err(error) => (0..count).map(|_| Err(again(&error, gone))).collect(),
        }
    }

    /// The error for an absent snapshot. Reads of the newest state never return it.
    fn no_snapshot(&self) -> EngineError {
        EngineError::SnapshotGone { seq: CommitSeq::new(self.last_commit.load(Ordering::Acquire)) }
    }
}

/// Copies an error: an error of the whole call is one of each key.
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
        self.reads.read_many(None, keys, &|| self.reads.no_snapshot())
    }

    fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.reads.read_slices(None, slices, &|| self.reads.no_snapshot())
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        if scan.max_rows > PAGE_ROWS {
            // All pages must come from one state.
            return Kept::new(&self.reads)?.scan_rows(scan, visit);
        }
        self.reads.check_open()?;
        let mut rest = Rest::of(scan);
        if rest.is_any() {
            let (range, limit) = rest.next_page();
            let ask = || self.reads.server.page(None, range.clone(), limit);
            let page = self.reads.network.call(ask)?.ok_or_else(|| self.reads.no_snapshot())?;
            let _done = rest.show(page, visit);
        }
        Ok(())
    }
}
