//! The server: rows, commits, and numbered snapshots.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Batch, CommitSeq, EngineError, Family, Fence, Guard, Op, SealedRow, Space};

/// The position of a row: its family and its key.
pub(crate) type Place = (u8, Vec<u8>);
/// A row's key and bytes.
pub(crate) type Row = (Vec<u8>, Arc<[u8]>);
type Rows = BTreeMap<Place, Arc<[u8]>>;
/// The time between the two halves of a torn read.
const TORN: Duration = Duration::from_millis(5);
/// The maximum number of snapshots. A new one evicts the oldest.
const SNAPSHOTS: usize = 64;

/// Rows that any number of engines may use, on several nodes.
#[derive(Debug, Default)]
pub struct Server {
    state: Mutex<State>,
    defect: Option<Defect>,
}

/// A defect of a server, for tests that show that the suite finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// A commit of an earlier owner applies.
    NoEpoch,
    /// A commit of an earlier connection of the owner applies.
    NoSession,
    /// A commit of any number applies.
    NoNumber,
    /// An owner that connects again takes the rows from another one.
    NewEpochAgain,
    /// Each page of a scan is of the state at its time.
    TornScan,
    /// Each half of the rows of a call is of the state at its time.
    TornRead,
    /// A commit is acknowledged before another node has it.
    NoQuorum,
    /// An owner that connects again reads what one node alone may have.
    DoubtByRead,
    /// A request that is sent again is judged anew.
    NoAnswers,
    /// Each batch of a run is replicated by itself.
    RunInParts,
}

#[derive(Debug, Default)]
struct State {
    rows: Arc<Rows>,
    last_commit: CommitSeq,
    last_synced: CommitSeq,
    batches: u64,
    /// Changes with the owner.
    epoch: u64,
    /// Changes with each connection of one owner, so that no late request of an earlier connection applies.
    session: u64,
    next_snapshot: u64,
    snapshots: BTreeMap<u64, (CommitSeq, Arc<Rows>)>,
    /// The number of each session's last commit, and its result.
    answers: HashMap<Owner, (u64, Applied)>,
    /// What more than one node has.
    replicated: Replica,
    /// Whether the next commit reaches one node alone.
    stalls: bool,
}

/// The part of the state that nodes share.
#[derive(Debug, Clone, Default)]
struct Replica {
    rows: Arc<Rows>,
    last_commit: CommitSeq,
    batches: u64,
    epoch: u64,
    session: u64,
}

/// The right to write of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    epoch: u64,
    session: u64,
}

/// The result of a commit: the newest commit and the number of batches so far, or why nothing was written.
pub(crate) type Applied = Result<(CommitSeq, u64), Refused>;

/// Why a commit was refused.
#[derive(Debug, Clone)]
pub(crate) enum Refused {
    Fenced(Fence),
    Conflict {
        guard: Guard,
        found: Option<u64>,
    },
    /// The node does not know whether another node has the commit.
    Stalled,
}

/// The newest commits when a client connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) last_commit: CommitSeq,
    pub(crate) last_synced: CommitSeq,
}

impl Server {
    /// A server without rows.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A server without rows, with a defect.
    pub fn with_defect(defect: Defect) -> Arc<Self> {
        Arc::new(Self { defect: Some(defect), ..Self::default() })
    }

    /// Lets the next commit reach one node alone. It is applied there, and not acknowledged.
    pub(crate) fn stall_next(&self) {
        self.state.lock().stalls = true;
    }

    /// Loses what one node alone has.
    pub(crate) fn fail_over(&self) {
        let mut state = self.state.lock();
        let Replica { rows, last_commit, batches, epoch, session } = state.replicated.clone();
        (state.rows, state.last_commit, state.batches) = (rows, last_commit, batches);
        (state.epoch, state.session) = (epoch, session);
        state.answers.clear();
    }

    /// Connects a reader.
    pub(crate) fn connect(&self) -> Progress {
        self.state.lock().progress()
    }

    /// Connects a new owner, which fences the one before it.
    pub(crate) fn take(&self) -> (Owner, Progress) {
        let mut state = self.state.lock();
        state.epoch += 1;
        state.session += 1;
        state.replicate();
        (state.owner(), state.progress())
    }

    /// Connects an owner again, if the rows were not taken by another one.
    pub(crate) fn take_again(&self, owner: Owner) -> Result<(Owner, Progress), Fence> {
        let mut state = self.state.lock();
        if owner.epoch != state.epoch {
            if self.defect != Some(Defect::NewEpochAgain) {
                return Err(state.fence());
            }
            state.epoch += 1;
        }
        state.session += 1;
        // What is found must survive as an acknowledged commit does.
        if self.defect != Some(Defect::DoubtByRead) {
            state.replicate();
        }
        Ok((state.owner(), state.progress()))
    }

    /// Applies batches as the commits from `first` on. A repeated request gets the same answer.
    pub(crate) fn commit(
        &self,
        (owner, request): (Owner, u64),
        first: CommitSeq,
        batches: &mut Vec<Batch>,
        guards: &[Guard],
    ) -> Applied {
        let mut state = self.state.lock();
        let is_repeated =
            |(number, _): &&(u64, _)| *number == request && self.defect != Some(Defect::NoAnswers);
        if let Some((_, applied)) = state.answers.get(&owner).filter(is_repeated) {
            return applied.clone();
        }
        let is_owner = match self.defect {
            Some(Defect::NoEpoch) => true,
            Some(Defect::NoSession) => owner.epoch == state.epoch,
            _ => owner == state.owner(),
        };
        if is_owner && self.defect == Some(Defect::RunInParts) {
            for batch in batches.drain(..batches.len().saturating_sub(1)) {
                state.apply(batch);
                state.replicate();
            }
        }
        let any_number = matches!(self.defect, Some(Defect::NoNumber | Defect::RunInParts));
        let first = if any_number { state.last_commit.next() } else { first };
        let mut applied = if is_owner {
            state.apply_all(first, std::mem::take(batches), guards)
        } else {
            Err(Refused::Fenced(state.fence()))
        };
        if std::mem::take(&mut state.stalls) {
            applied = Err(Refused::Stalled);
        } else if self.defect != Some(Defect::NoQuorum) {
            state.replicate();
        }
        state.answers.insert(owner, (request, applied.clone()));
        applied
    }

    /// Stores rows as they are, before the first commit. Returns the number of batches. A repeated request changes
    /// nothing.
    pub(crate) fn load(&self, owner: Owner, rows: &[SealedRow], seq: CommitSeq) -> Result<u64, Fence> {
        let mut state = self.state.lock();
        if owner != state.owner() {
            return Err(state.fence());
        }
        if state.last_commit != CommitSeq::NONE && state.last_commit != seq {
            let next = state.last_commit.next();
            return Err(Fence::Number { given: CommitSeq::NONE.next(), next });
        }
        let stored = Arc::make_mut(&mut state.rows);
        for SealedRow { family, key, bytes } in rows {
            stored.insert((*family as u8, key.to_vec()), bytes.to_vec().into());
        }
        state.last_commit = seq;
        state.batches += 1;
        state.replicate();
        Ok(state.batches)
    }

    pub(crate) fn sync(&self, owner: Owner) -> Result<CommitSeq, Fence> {
        let mut state = self.state.lock();
        if owner != state.owner() {
            return Err(state.fence());
        }
        state.last_synced = state.last_commit;
        Ok(state.last_synced)
    }

    /// Creates a snapshot of the current rows.
    pub(crate) fn keep(&self) -> (u64, CommitSeq) {
        let mut state = self.state.lock();
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
        self.state.lock().snapshots.remove(&snapshot);
    }

    /// Reads rows of the current state or of a snapshot. `None` if the snapshot no longer exists.
    pub(crate) fn get(&self, snapshot: Option<u64>, places: &[Place]) -> Option<Vec<Option<Arc<[u8]>>>> {
        self.read_halves(places, |places| {
            let rows = self.rows(snapshot)?;
            Some(places.iter().map(|place| rows.get(place).cloned()).collect())
        })
    }

    /// Reads parts of rows, as [`get`](Self::get).
    pub(crate) fn get_slices(
        &self,
        snapshot: Option<u64>,
        slices: &[(Place, Range<usize>)],
    ) -> Option<Vec<Option<Arc<[u8]>>>> {
        let slice = |rows: &Rows, (place, bytes): &(Place, Range<usize>)| {
            let row = rows.get(place)?;
            let end = bytes.end.min(row.len());
            row.get(bytes.start.min(end)..end).map(Arc::from)
        };
        self.read_halves(slices, |slices| {
            let rows = self.rows(snapshot)?;
            Some(slices.iter().map(|asked| slice(&rows, asked)).collect())
        })
    }

    /// Reads all of a list at once, unless the server has the defect that it reads one half after the other.
    fn read_halves<A, R>(&self, asked: &[A], read: impl Fn(&[A]) -> Option<Vec<R>>) -> Option<Vec<R>> {
        if self.defect != Some(Defect::TornRead) {
            return read(asked);
        }
        let (first, second) = asked.split_at(asked.len() / 2);
        let mut found = read(first)?;
        std::thread::sleep(TORN);
        found.extend(read(second)?);
        Some(found)
    }

    /// Reads at most `limit` rows of a range, of the current state or of a snapshot. `None` if the snapshot no longer
    /// exists.
    pub(crate) fn page(
        &self,
        snapshot: Option<u64>,
        (from, to): (Bound<Place>, Bound<Place>),
        limit: usize,
    ) -> Option<Vec<Row>> {
        let snapshot = snapshot.filter(|_| self.defect != Some(Defect::TornScan));
        let rows = self.rows(snapshot)?;
        let page = rows.range((from, to)).take(limit);
        Some(page.map(|((_, key), row)| (key.clone(), Arc::clone(row))).collect())
    }

    /// The number of rows and bytes of each family.
    pub(crate) fn count(&self) -> Vec<(u64, u64)> {
        let rows = Arc::clone(&self.state.lock().rows);
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
        let state = self.state.lock();
        match snapshot {
            None => Some(Arc::clone(&state.rows)),
            Some(number) => state.snapshots.get(&number).map(|(_, rows)| Arc::clone(rows)),
        }
    }
}

impl State {
    fn owner(&self) -> Owner {
        Owner { epoch: self.epoch, session: self.session }
    }

    fn progress(&self) -> Progress {
        Progress { last_commit: self.last_commit, last_synced: self.last_synced }
    }

    /// Sends everything to the other nodes.
    fn replicate(&mut self) {
        self.replicated = Replica {
            rows: Arc::clone(&self.rows),
            last_commit: self.last_commit,
            batches: self.batches,
            epoch: self.epoch,
            session: self.session,
        };
    }

    /// Why only the present owner may write.
    fn fence(&self) -> Fence {
        Fence::Owner { who: format!("owner {} in session {}", self.epoch, self.session) }
    }

    fn apply_all(&mut self, first: CommitSeq, batches: Vec<Batch>, guards: &[Guard]) -> Applied {
        let next = self.last_commit.next();
        if first != next {
            return Err(Refused::Fenced(Fence::Number { given: first, next }));
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
