//! The queue: writes that the world has taken and the engine does not hold yet.
//!
//! | stage | what an entry is | who brings it to the next stage |
//! |---|---|---|
//! | submitted | a batch that was [submitted](crate::World::submit) and is not accepted | the accepting thread, or a caller that needs it |
//! | numbered | a commit: checked and numbered under the commit lock, and visible to readers | the writing thread, or a caller that waits for the write |
//! | written | a commit in the engine: it is no longer in the queue | |
//!
//! The commit of a transaction enters the queue numbered. A batch becomes a commit when it is accepted, or is refused.
//! Readers apply submitted batches first, and ask the queue for numbered commits before they ask the engine. One limit
//! of memory and one [line](admission) hold for all that is queued.
//!
//! **Invariants**.
//! - Batches are accepted one at a time, in the order in which they were submitted.
//! - Commits are written in the order of their numbers, each of them whole. One call of the engine may write several.
//!   After a crash the world is in the state after some commit: no commit is partly there, and none is missing before a
//!   later one.
//! - The numbers in the queue follow the engine's newest commit without a gap. Every other kind of commit takes the
//!   commit lock and drains the queue first. Moves take no number.
//! - A change leaves [`PendingValues`] only after it is in the engine.
//! - After a failed write nothing is accepted or written until the world is [resumed](crate::World::resume). All entries
//!   stay, with the failed commit in front, and readers still see the commits in memory.

mod admission;
mod cubes;
mod submitted;

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use admission::AdmissionQueue;
use cg_format::{ClusterPos, Dimension};
use cubes::QueuedCubes;

use crate::commit::transaction::{Changeable, Changed, Changes, Rows};
use crate::commit::write::Ran;
use crate::each_kind;
use crate::engine::EngineError;
use crate::kinds::kind;
use crate::read::state::{Newest, PendingValues, PendingWrites};
use crate::rt::lock_order::{Condvar, Mutex, MutexGuard, rank};
use crate::rt::parker::Parker;
use crate::storage::error::Error;
pub(crate) use submitted::Submitted;

/// The queue of one world.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    state: Mutex<State, rank::Queue>,
    /// The submitted batches, the oldest first. Batches enter under the state. Readers search them without it, so a search
    /// holds up no commit.
    waiting: Mutex<VecDeque<Arc<Submitted>>, rank::Submitted>,
    /// Signalled when a batch is submitted, or the accepting thread must end.
    submitted: Parker,
    /// Signalled when a commit is queued, or the writing thread must end.
    numbered: Parker,
    /// Signalled when an entry leaves its stage, or a write fails.
    left: Condvar,
    /// Held while a batch is accepted, so that batches are accepted in order.
    accepting: Mutex<(), rank::Accepting>,
    /// Held while commits are taken out of the queue and encoded, and until they may be written.
    encoding: Mutex<(), rank::Encoding>,
    /// Held while commits are written, so that they are written in order.
    writing: Mutex<(), rank::Writing>,
    /// The number of submitted batches, readable without the lock. A batch that is being accepted is included.
    submitted_len: AtomicU64,
    /// The number of numbered commits, readable without the lock. A commit that is being written is included.
    len: AtomicU64,
    /// The number of the oldest commit; [`u64::MAX`] if there is none. A commit that is being written is included.
    oldest: AtomicU64,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the newest batch in the order of submissions.
    last_submitted: u64,
    /// The [refusals](Error::DeferredWrite) that were not reported and whose tickets are gone.
    unreported: Option<Error>,
    numbered: VecDeque<Queued>,
    pending: PendingValues,
    /// Where the chunks of `pending` are.
    cubes: QueuedCubes,
    /// The memory of everything that is queued.
    bytes: u64,
    /// The callers that wait for room.
    admission: AdmissionQueue,
    /// The first write that failed.
    failed: Option<Arc<EngineError>>,
    /// The last commit that the engine was given in the failed call.
    given_up_to: u64,
    /// The queue takes no more batches.
    is_closed: bool,
    /// The threads must end.
    ended: bool,
}

/// The maximum number of commits in a run, which the engine gets in one call.
const RUN_COMMITS: usize = 64;
/// A run that holds more memory than this gets no further commit.
const RUN_BYTES: u64 = 1 << 20;

/// One queued commit.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its number.
    pub(crate) seq: u64,
    pub(crate) changes: Arc<Changes>,
    /// Its rows, if they are already encoded.
    pub(crate) rows: Option<Rows>,
    /// The memory that it holds.
    bytes: u64,
}

impl Queued {
    pub(crate) fn new(seq: u64, changes: Arc<Changes>, rows: Option<Rows>) -> Self {
        let bytes = changes.memory_bytes() + rows.as_ref().map_or(0, Rows::len_bytes);
        Self { seq, changes, rows, bytes }
    }
}

/// How a commit is admitted to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The caller does not wait for the write: the commit is refused if it does not fit.
    Try,
    /// The caller waits for the write, and holds the memory of the commit anyway. So the caller encodes the commit, and
    /// writes it at once if nothing is queued.
    Bypass,
    /// The commit is a submitted batch, which has its room in the queue already.
    Reserved,
}

impl CommitQueue {
    /// Creates an empty queue that takes at most `max_bytes`, or one commit that is larger.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            state: Mutex::default(),
            waiting: Mutex::default(),
            submitted: Parker::default(),
            numbered: Parker::default(),
            left: Condvar::new(),
            accepting: Mutex::new(()),
            encoding: Mutex::new(()),
            writing: Mutex::new(()),
            submitted_len: AtomicU64::new(0),
            len: AtomicU64::new(0),
            oldest: AtomicU64::new(u64::MAX),
            max_bytes,
        }
    }

    /// Whether every accepted commit is in the engine.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Whether a commit up to this number is not yet completely in the engine.
    pub(crate) fn holds_up_to(&self, seq: u64) -> bool {
        self.oldest.load(Ordering::Acquire) <= seq
    }

    /// The number of queued commits, and the memory of all that is queued.
    pub(crate) fn load(&self) -> (u64, u64) {
        let state = self.state.lock();
        (self.len.load(Ordering::Relaxed), state.bytes)
    }

    /// Adds a commit, which readers see from now on. The caller holds the commit lock.
    ///
    /// # Errors
    /// [`Error::Busy`] if it does not fit, and the error of an earlier failed write. The commit was not added then.
    pub(crate) fn push(&self, commit: Queued, room: Admission) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.check()?;
        if room == Admission::Try {
            self.admit(&mut state, commit.bytes)?;
        }
        if self.is_empty() {
            self.oldest.store(commit.seq, Ordering::Release);
        }
        state.bytes += commit.bytes;
        add_values(&mut state.pending, commit.seq, &commit.changes);
        state.cubes.add(&commit.changes.chunks);
        state.numbered.push_back(commit);
        self.len.fetch_add(1, Ordering::Release);
        drop(state);
        self.numbered.wake();
        Ok(())
    }

    /// Whether more is queued than there is room for, and writing can free some.
    pub(crate) fn is_overfull(&self) -> bool {
        !self.is_empty() && self.state.lock().bytes > self.max_bytes
    }

    /// The right to take and encode the next commits. One holder at a time.
    pub(super) fn begin_encoding(&self) -> MutexGuard<'_, ()> {
        self.encoding.lock()
    }

    /// The right to write the next commits. One holder at a time. A thread that has commits to write takes it before it
    /// gives up the right to encode, so that no later commit is written first.
    pub(super) fn begin_writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// Waits until no commit is being encoded or written, and keeps it so while the result is held.
    pub(super) fn stop_writing(&self) -> [MutexGuard<'_, ()>; 2] {
        [self.begin_encoding(), self.begin_writing()]
    }

    /// Takes the next commits up to a number out of the queue. They stay pending until [`finish`](Self::finish). The
    /// caller has the right to encode.
    pub(super) fn take_run(&self, up_to: u64) -> Result<Vec<Queued>, Error> {
        let mut state = self.state.lock();
        state.check()?;
        let (mut run, mut bytes) = (Vec::new(), 0);
        while run.len() < RUN_COMMITS && bytes <= RUN_BYTES {
            let Some(next) = state.take_front(up_to) else { break };
            bytes += next.bytes;
            run.push(next);
        }
        Ok(run)
    }

    /// Returns commits that were taken and not written to their places in the queue.
    pub(super) fn put_back(&self, run: Vec<Queued>) {
        self.state.lock().put_back(run);
    }

    /// Records which commits of a run are in the engine, and why the others are not. Those return to the queue.
    pub(super) fn finish(&self, mut run: Vec<Queued>, ran: Ran) -> Result<(), Error> {
        let Ran { given, written, ended } = ran;
        let given_up_to = run.get(..given).and_then(<[_]>::last).map_or(0, |commit| commit.seq);
        let mut state = self.state.lock();
        state.put_back(run.split_off(written));
        for commit in &run {
            self.leave_written(&mut state, commit);
        }
        let Err(error) = ended else { return Ok(()) };
        let commit = state.numbered.front().map(|commit| commit.seq);
        tracing::error!(%error, commit, "a queued commit could not be written; no more are taken");
        // An engine that was fenced before has sent nothing of what it was given.
        let is_unsent = error.fence().is_some() && error.wrote_nothing();
        state.given_up_to = if is_unsent { 0 } else { given_up_to };
        state.failed = Some(Arc::new(error));
        self.left.notify_all();
        state.check()
    }

    fn leave_written(&self, state: &mut State, commit: &Queued) {
        remove_values(&mut state.pending, commit.seq, &commit.changes);
        state.cubes.remove(&commit.changes.chunks);
        state.bytes -= commit.bytes;
        // The numbers have no gaps. Later commits may have been taken already, so the queue does not tell.
        let is_last = self.len.load(Ordering::Relaxed) == 1;
        self.oldest.store(if is_last { u64::MAX } else { commit.seq + 1 }, Ordering::Release);
        // Only now: a reader that finds the queue empty reads the engine.
        self.len.fetch_sub(1, Ordering::Release);
        self.made_room(state);
    }

    /// The number of commits that were taken and are not in the engine yet.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        let state = self.state.lock();
        self.len.load(Ordering::Relaxed) - state.numbered.len() as u64
    }

    /// The last commit that the engine may hold after a write has failed; 0 if it was given none.
    pub(crate) fn given_up_to(&self) -> u64 {
        self.state.lock().given_up_to
    }

    /// Why nothing is written any more.
    pub(crate) fn failure(&self) -> Option<Arc<EngineError>> {
        self.state.lock().failed.clone()
    }

    /// Checks that commits are taken.
    ///
    /// # Errors
    /// The error of a failed write.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.state.lock().check()
    }

    /// Refuses commits and writes nothing until [`go_on`](Self::go_on).
    pub(crate) fn fail(&self, cause: Arc<EngineError>) {
        self.state.lock().failed = Some(cause);
        self.left.notify_all();
    }

    /// Accepts commits again, and writes what is queued.
    pub(crate) fn go_on(&self) {
        let mut state = self.state.lock();
        (state.failed, state.given_up_to) = (None, 0);
        drop(state);
        self.numbered.wake();
        self.left.notify_all();
    }

    /// Records that the engine holds the commits up to a number. Returns whether any of them was queued. The caller has
    /// the right to write.
    pub(crate) fn was_written(&self, up_to: u64) -> bool {
        let mut state = self.state.lock();
        let mut was_queued = false;
        while let Some(commit) = state.take_front(up_to) {
            self.leave_written(&mut state, &commit);
            was_queued = true;
        }
        was_queued
    }

    /// Waits for a commit that can be written. Returns `false` when the writing thread must end.
    pub(super) fn wait_for_commit(&self) -> bool {
        let mut state = self.state.lock();
        let is_idle = |state: &State| (state.numbered.is_empty() || state.failed.is_some()) && !state.ended;
        self.numbered.wait_while(&mut state, is_idle);
        !state.ended
    }

    /// Takes no more batches. Those that were submitted are still accepted.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
    }

    /// Ends the threads.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.submitted.wake_all();
        self.numbered.wake_all();
        self.left.notify_all();
    }
}

impl PendingWrites for CommitQueue {
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    fn look(&self, look: &mut dyn FnMut(&PendingValues)) {
        look(&self.state.lock().pending);
    }

    fn are_queued(&self, dimension: Dimension, cubes: &[ClusterPos]) -> Vec<bool> {
        if self.is_empty() {
            return vec![false; cubes.len()];
        }
        let state = self.state.lock();
        cubes.iter().map(|cube| state.cubes.has(dimension, *cube)).collect()
    }
}

impl State {
    /// Takes the commit in front, if its number is at most `up_to`.
    fn take_front(&mut self, up_to: u64) -> Option<Queued> {
        if self.numbered.front()?.seq <= up_to { self.numbered.pop_front() } else { None }
    }

    /// Inserts consecutive commits before the first with a higher number.
    fn put_back(&mut self, run: Vec<Queued>) {
        let Some(first) = run.first() else { return };
        let place = self.numbered.partition_point(|commit| commit.seq < first.seq);
        let later = self.numbered.split_off(place);
        self.numbered.extend(run.into_iter().chain(later));
    }

    fn check(&self) -> Result<(), Error> {
        match &self.failed {
            Some(cause) => Err(EngineError::ReadOnly { cause: Arc::clone(cause) }.into()),
            None => Ok(()),
        }
    }
}

/// Adds the changes of a commit.
fn add_values(pending: &mut PendingValues, seq: u64, changes: &Changes) {
    fn add<K: Changeable>(newest: &mut Newest<K>, seq: u64, changes: &Changed<K>) {
        newest.extend(changes.iter().map(|(key, change)| (key.clone(), (seq, K::new(change).cloned()))));
    }
    each_kind!(mut pending, changes, |newest, changes: K| add::<K>(newest, seq, changes));
}

/// Forgets the changes of a commit, except those that a later commit replaced.
fn remove_values(pending: &mut PendingValues, seq: u64, changes: &Changes) {
    fn remove<K: Changeable>(newest: &mut Newest<K>, seq: u64, changes: &Changed<K>) {
        for (key, _) in changes {
            if let Entry::Occupied(entry) = newest.entry(key.clone())
                && entry.get().0 == seq
            {
                entry.remove();
            }
        }
    }
    each_kind!(mut pending, changes, |newest, changes: K| remove::<K>(newest, seq, changes));
}
