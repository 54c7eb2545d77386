//! The server: rows, commits, and numbered snapshots.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Batch, CommitSeq, EngineError, Family, Guard, Op, Space};

/// The position of a row: its family and its key.
pub(crate) type Place = (u8, Vec<u8>);
/// A row's key and bytes.
pub(crate) type Row = (Vec<u8>, Arc<[u8]>);
type Rows = BTreeMap<Place, Arc<[u8]>>;
/// The maximum number of snapshots. A new one evicts the oldest.
const SNAPSHOTS: usize = 64;

/// Rows that any number of engines may use.
#[derive(Debug, Default)]
pub struct Server(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    rows: Arc<Rows>,
    last_commit: CommitSeq,
    last_synced: CommitSeq,
    batches: u64,
    clients: u64,
    next_snapshot: u64,
    snapshots: BTreeMap<u64, (CommitSeq, Arc<Rows>)>,
    /// The number of each client's last commit, and its result.
    answers: HashMap<u64, (u64, Applied)>,
}

/// The result of a commit: the newest commit and the number of batches so far, or why nothing was written.
pub(crate) type Applied = Result<(CommitSeq, u64), Refused>;

/// Why a commit was refused.
#[derive(Debug, Clone)]
pub(crate) enum Refused {
    Fenced { next: CommitSeq },
    Conflict { guard: Guard, found: Option<u64> },
}

/// The server's state when a client connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) client: u64,
    pub(crate) last_commit: CommitSeq,
    pub(crate) last_synced: CommitSeq,
}

impl Server {
    /// A server without rows.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn connect(&self) -> Progress {
        let mut state = self.0.lock();
        state.clients += 1;
        let (client, last_commit, last_synced) = (state.clients, state.last_commit, state.last_synced);
        Progress { client, last_commit, last_synced }
    }

    /// Applies batches as the commits from `first` on. A repeated request gets the same answer.
    pub(crate) fn commit(
        &self,
        (client, request): (u64, u64),
        first: CommitSeq,
        batches: &mut Vec<Batch>,
        guards: &[Guard],
    ) -> Applied {
        let mut state = self.0.lock();
        if let Some((_, applied)) = state.answers.get(&client).filter(|(number, _)| *number == request) {
            return applied.clone();
        }
        let applied = state.apply_all(first, std::mem::take(batches), guards);
        state.answers.insert(client, (request, applied.clone()));
        applied
    }

    pub(crate) fn sync(&self) -> CommitSeq {
        let mut state = self.0.lock();
        state.last_synced = state.last_commit;
        state.last_synced
    }

    /// Creates a snapshot of the current rows.
    pub(crate) fn keep(&self) -> (u64, CommitSeq) {
        let mut state = self.0.lock();
        let number = state.next_snapshot;
        state.next_snapshot += 1;
        let kept = (state.last_commit, Arc::clone(&state.rows));
        state.snapshots.insert(number, kept);
        if state.snapshots.len() > SNAPSHOTS {
            state.snapshots.pop_first();
        }
        (number, state.last_commit)
    }

    pub(crate) fn release(&self, snapshot: u64) {
        self.0.lock().snapshots.remove(&snapshot);
    }

    /// Reads rows of the current state or of a snapshot. `None` if the snapshot no longer exists.
    pub(crate) fn get(&self, snapshot: Option<u64>, places: &[Place]) -> Option<Vec<Option<Arc<[u8]>>>> {
        let rows = self.rows(snapshot)?;
        Some(places.iter().map(|place| rows.get(place).cloned()).collect())
    }

    /// Reads parts of rows, as [`get`](Self::get).
    pub(crate) fn get_slices(
        &self,
        snapshot: Option<u64>,
        slices: &[(Place, Range<usize>)],
    ) -> Option<Vec<Option<Arc<[u8]>>>> {
        let rows = self.rows(snapshot)?;
        let slice = |(place, bytes): &(Place, Range<usize>)| {
            let row = rows.get(place)?;
            let end = bytes.end.min(row.len());
            row.get(bytes.start.min(end)..end).map(Arc::from)
        };
        Some(slices.iter().map(slice).collect())
    }

    /// Reads at most `limit` rows of a range, of the current state or of a snapshot. `None` if the snapshot no longer
    /// exists.
    pub(crate) fn page(
        &self,
        snapshot: Option<u64>,
        (from, to): (Bound<Place>, Bound<Place>),
        limit: usize,
    ) -> Option<Vec<Row>> {
        let rows = self.rows(snapshot)?;
        let page = rows.range((from, to)).take(limit);
        Some(page.map(|((_, key), row)| (key.clone(), Arc::clone(row))).collect())
    }

    /// The number of rows and bytes of each family.
    pub(crate) fn count(&self) -> Vec<(u64, u64)> {
        let rows = Arc::clone(&self.0.lock().rows);
        let mut counts = vec![(0, 0); Family::ALL.len()];
        for ((family, key), row) in &*rows {
            if let Some((count, bytes)) = counts.get_mut(usize::from(*family)) {
                *count += 1;
                *bytes += (key.len() + row.len()) as u64;
            }
        }
        counts
    }

    fn rows(&self, snapshot: Option<u64>) -> Option<Arc<Rows>> {
        let state = self.0.lock();
        match snapshot {
            None => Some(Arc::clone(&state.rows)),
            Some(number) => state.snapshots.get(&number).map(|(_, rows)| Arc::clone(rows)),
        }
    }
}

impl State {
    fn apply_all(&mut self, first: CommitSeq, batches: Vec<Batch>, guards: &[Guard]) -> Applied {
        let next = self.last_commit.next();
        if first != next {
            return Err(Refused::Fenced { next });
        }
        for guard in guards {
            let stored = self.rows.get(&place(guard.space, &guard.key));
            if let Err(EngineError::Conflict { found, .. }) = guard.check(stored.map(|row| &**row)) {
                return Err(Refused::Conflict { guard: guard.clone(), found });
            }
        }
        for batch in batches {
            self.apply(batch);
        }
        Ok((self.last_commit, self.batches))
    }

    fn apply(&mut self, batch: Batch) {
        let seq = if batch.is_maintenance() { self.last_commit } else { self.last_commit.next() };
        let rows = Arc::make_mut(&mut self.rows);
        batch.drain(seq, |op| match op {
            Op::Put { space, key, draft, version } => {
                let row = draft.seal(space, key, version);
                rows.insert(place(space, key), row.into());
            }
            Op::Delete { space, key } => {
                rows.remove(&place(space, key));
            }
            Op::DeleteRange { space, from, to } => {
                let range = place(space, from)..place(space, to);
                let gone: Vec<_> = rows.range(range).map(|(place, _)| place.clone()).collect();
                for place in gone {
                    rows.remove(&place);
                }
            }
        });
        self.last_commit = seq;
        self.batches += 1;
    }
}

pub(crate) fn place(space: Space, key: &[u8]) -> Place {
    (space.family() as u8, key.to_vec())
}
