//! Committing: checks what was read, writes one batch, makes it visible.

use std::fmt;
use std::sync::Arc;

use cg_format::ChunkAt;

use super::prepare::{Encoding, Prepared, prepare};
use super::world::WorldReads;
use super::{Changes, Rows, Transaction};
use crate::commit::commit_log::{Begun, Committing};
use crate::commit::queue::{Admission, Queued};
use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, EngineError, Level};
use crate::rt::stats::Counters;
use crate::rt::weak_world::WeakWorld;
use crate::storage::durability::Durability;
use crate::storage::error::{ConflictKey, Error};

/// How often a commit is prepared outside the commit lock before it is prepared under it.
const TRIES_OUTSIDE_THE_LOCK: u32 = 3;

/// Commits a transaction, and returns its commit sequence when the durability is reached.
pub(super) fn commit(tx: Transaction<'_>, durability: Durability) -> Result<u64, Error> {
    let world = tx.store.world;
    let coming = (durability == Durability::SafeBatch).then(|| world.group_commit.join());
    let room = if durability.is_queued() { Admission::Try } else { Admission::Bypass };
    let seq = accept(tx, durability, room)?;
    if !durability.is_queued() {
        world.drain_to(seq).map_err(in_doubt)?;
    }
    if durability.is_synced() && world.shared.slot.reached()[1].get() < seq {
        if let Some(coming) = coming {
            coming.wait(Durability::GROUP_COMMIT_WAIT);
        }
        let synced = world.shared.engine().and_then(|engine| engine.sync());
        synced.map_err(|error| in_doubt(error.into()))?;
    }
    Ok(seq)
}

/// Accepts writes for which room was reserved when they were submitted. Returns their commit sequence. Runs `say` again
/// after a conflict: another commit changed what they edit.
pub(crate) fn accept_reserved(
    world: &CommitState,
    say: impl Fn(&mut Transaction<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    loop {
        let mut tx = Transaction::begin(world)?;
        let accepted = match say(&mut tx) {
            Ok(()) => accept(tx, Durability::Fast, Admission::Reserved),
            // Another commit may have led to it.
            Err(error) => Err(conflict_now(&tx).unwrap_or(error)),
        };
        match accepted {
            Err(Error::Conflict { .. }) => {}
            accepted => return accepted,
        }
    }
}

/// Commits a saved or deleted snapshot, and waits until it is written. Other commits are accepted meanwhile.
pub(crate) fn commit_snapshot(world: &CommitState, changes: Changes) -> Result<u64, Error> {
    let changes = Arc::new(changes);
    // No conflict check depends on a snapshot.
    let prepared = Prepared { changes, rows: None, written: Vec::new(), since: 0, consulted: Vec::new() };
    let seq = enter(world, world.log.commit(), None, prepared, Durability::Process, Admission::Bypass)?;
    world.drain_to(seq).map_err(in_doubt)?;
    Ok(seq)
}

/// Converts an error of a commit that was accepted before. The result never states that nothing was written.
fn in_doubt(error: Error) -> Error {
    match error {
        Error::Engine(EngineError::ReadOnly { cause }) => EngineError::WriteFailed { cause }.into(),
        // The engine could not be opened again, or another writer appeared, while the commit was being written.
        Error::Engine(error @ (EngineError::NotReopened { .. } | EngineError::Fenced { .. })) => {
            EngineError::WriteFailed { cause: Arc::new(error) }.into()
        }
        error => error,
    }
}

/// Gives a transaction its place in the order and makes it visible, either written or queued.
///
/// Preparation reads what is replaced and encodes what replaces it, outside any lock. If another commit changes what
/// was read, preparation is repeated. The closure of the transaction does not run again.
fn accept(tx: Transaction<'_>, durability: Durability, room: Admission) -> Result<u64, Error> {
    let (world, encoding) = (tx.store.world, encoding_at(durability));
    let mut prepared = prepare_or_conflict(&tx, encoding, room)?;
    let mut tries = 0;
    loop {
        let committing = world.log.commit();
        if let Some(conflict) = conflict(&tx, &committing) {
            return Err(conflict);
        }
        if committing.written_since(prepared.since, &prepared.consulted).is_some() {
            Counters::add(&world.shared.counters.preparations_repeated, 1);
            tries += 1;
            if tries < TRIES_OUTSIDE_THE_LOCK {
                drop(committing);
                prepared = prepare_or_conflict(&tx, encoding, room)?;
                continue;
            }
            let again = prepare(world, &tx.writes, encoding, room);
            prepared = again.map_err(|error| refusal(&tx.store, &committing, error))?;
        }
        return enter(world, committing, Some(&tx.store.begun), prepared, durability, room);
    }
}

/// As [`prepare`], with the errors of [`refusal`].
fn prepare_or_conflict(tx: &Transaction<'_>, encoding: Encoding, room: Admission) -> Result<Prepared, Error> {
    let world = tx.store.world;
    prepare(world, &tx.writes, encoding, room).map_err(|error| refusal(&tx.store, &world.log.commit(), error))
}

/// The error of a refused transaction: a conflict if another commit since its beginning may have caused the error. So
/// the caller tries again, and gets the original error only if the cause persists.
pub(super) fn refusal(reads: &WorldReads<'_>, committing: &Committing<'_>, error: Error) -> Error {
    let named = match &error {
        Error::EntityOwned { id, .. } | Error::EntityUnknown { id, .. } => Some(ConflictKey::Entity(*id)),
        Error::OwnerAbsent { at, .. } => Some(ConflictKey::Chunk(*at)),
        Error::VersionGoesBack { key, .. } | Error::VersionsUsedUp { key } => {
            Some(ConflictKey::Object(key.clone()))
        }
        _ => None,
    };
    // The key may be written without having been read.
    let named = named.filter(|key| committing.written_since(reads.begun.at, [key]).is_some());
    changed(reads, committing).or_else(|| Some(lost_to(reads, named?))).unwrap_or(error)
}

/// The conflict between what a transaction has read and what was committed since it began.
fn changed(reads: &WorldReads<'_>, committing: &Committing<'_>) -> Option<Error> {
    let key = committing.written_since(reads.begun.at, &reads.reads).cloned()?;
    Some(lost_to(reads, key))
}

/// As [`conflict`], with the commits so far.
pub(super) fn conflict_now(tx: &Transaction<'_>) -> Option<Error> {
    conflict(tx, &tx.store.world.log.commit())
}

/// The conflict between a transaction and what was committed since it began.
fn conflict(tx: &Transaction<'_>, committing: &Committing<'_>) -> Option<Error> {
    let key = || new_in_listings(tx, committing).map(ConflictKey::Chunk);
    changed(&tx.store, committing).or_else(|| Some(lost_to(&tx.store, key()?)))
}

fn lost_to(reads: &WorldReads<'_>, key: ConflictKey) -> Error {
    Counters::add(&reads.world.shared.counters.conflicts, 1);
    Error::Conflict { key }
}

const fn encoding_at(durability: Durability) -> Encoding {
    if durability.is_queued() { Encoding::Later } else { Encoding::Now }
}

/// Numbers prepared changes, writes or queues them, and makes them visible to readers.
fn enter(
    world: &CommitState,
    mut committing: Committing<'_>,
    begun: Option<&Begun<'_>>,
    prepared: Prepared,
    durability: Durability,
    room: Admission,
) -> Result<u64, Error> {
    let Prepared { changes, rows, written, .. } = prepared;
    if changes.is_empty() {
        return Ok(world.log.published());
    }
    // Closing has written the queue. A commit added after that would never be written.
    world.shared.check_open()?;
    let engine = world.shared.engine()?;
    world.queue.check()?;
    if engine.caps().read_only {
        // Queued, the commit would never be written, and every reader would wait for it.
        return Err(EngineError::OpenedReadOnly.into());
    }
    // Only tests write to the engine without the world.
    let seq = world.log.published().max(engine.last_commit().get()) + 1;
    drop(engine);
    let announced = world.read.cache.announce(changes.chunks.iter().map(|(at, _)| *at));
    match rows {
        // Queued commits were accepted before this one. A staged commit must be in the queue until all its rows are in
        // place.
        Some(rows)
            if !durability.is_queued()
                && world.queue.is_empty()
                && rows.max_len_bytes() <= world.shared.batch_limit()? =>
        {
            world.write(rows, seq).inspect_err(|error| world.note_failure(error, written.iter().cloned()))?;
        }
        rows => {
            let bytes = changes.memory_bytes() + rows.as_ref().map_or(0, Rows::len_bytes);
            let commit = Queued { seq, changes: Arc::clone(&changes), rows, bytes };
            world.queue.push(commit, room).inspect_err(|error| {
                Counters::add(&world.shared.counters.busy, u64::from(matches!(error, Error::Busy { .. })));
            })?;
        }
    }
    Counters::add(&world.shared.counters.commits, 1);
    world.tell_accepted(seq, &changes, &announced);
    drop(announced);
    committing.publish_last_of(begun, seq, written);
    Ok(seq)
}

/// Returns a chunk of a listed box that another commit has written and that the listing did not contain.
///
/// Chunks that the listing contained are in the transaction's writes, and are replaced whatever they are now.
fn new_in_listings(tx: &Transaction<'_>, committing: &Committing<'_>) -> Option<ChunkAt> {
    tx.store.listings.iter().find_map(|listing| {
        let mut written = committing.chunks_written_since(listing.since, listing.dimension, listing.area);
        written.find(|at| !tx.writes.chunks.contains_key(at))
    })
}

/// The result of a committed transaction: the value of the closure and the commit of its changes.
pub struct Committed<T> {
    /// What the closure returned.
    pub value: T,
    /// The number of the commit; that of the last commit if nothing was changed.
    pub seq: CommitSeq,
    world: WeakWorld<CommitState>,
}

impl<T> Committed<T> {
    pub(crate) fn new(world: WeakWorld<CommitState>, value: T, seq: u64) -> Self {
        Self { value, seq: CommitSeq::new(seq), world }
    }

    /// A ticket that reports when the commit survives a killed process or a power cut.
    pub fn durable(&self) -> Durable {
        Durable { world: self.world.clone(), seq: self.seq.get() }
    }
}

/// A ticket of a commit. It reports or waits until the commit reaches the system or the disk. It needs no async runtime
/// and does not keep the world open.
pub struct Durable {
    world: WeakWorld<CommitState>,
    seq: u64,
}

impl Durable {
    /// Whether the commit survives a power cut. Never blocks.
    pub fn is_durable(&self) -> bool {
        self.has_reached(Level::Power)
    }

    /// Whether the commit survives the event of a level. Never blocks.
    pub fn has_reached(&self, level: Level) -> bool {
        let reached = |world: &CommitState| {
            let [written, synced] = world.shared.slot.reached();
            match level {
                Level::Process => written.get(),
                Level::Power => synced.get(),
            }
        };
        self.world.with_world(reached).unwrap_or_else(|synced| synced) >= self.seq
    }

    /// Waits until the commit survives a power cut. Callers that wait together share one sync.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_for(Level::Power)
    }

    /// Waits until the commit survives the event of a level.
    ///
    /// # Errors
    /// [`Error::Engine`] if writing or syncing failed; the world is read-only from then on, and the commit may be lost.
    /// [`Error::Closed`] if the world is closed and closing could not save it.
    pub fn wait_for(&self, level: Level) -> Result<(), Error> {
        if self.has_reached(level) {
            return Ok(());
        }
        let reach = |world: &CommitState| {
            world.drain_to(self.seq)?;
            if level == Level::Power { Ok(world.shared.engine()?.sync()?) } else { Ok(()) }
        };
        match self.world.with_world(reach) {
            Ok(reached) => reached,
            // The world may have been closed since the first check.
            Err(synced) if synced >= self.seq => Ok(()),
            Err(_) => Err(Error::Closed),
        }
    }
}

// Not derived: a derived implementation would require `Debug` and `Clone` of types that have no need of them.
impl<T: fmt::Debug> fmt::Debug for Committed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("value", &self.value)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}

impl Clone for Durable {
    fn clone(&self) -> Self {
        Self { world: self.world.clone(), seq: self.seq }
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").field("seq", &self.seq).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_is_never_said_to_have_left_nothing() {
        let cause = Arc::new(EngineError::OpenedReadOnly);
        let not_reopened = EngineError::NotReopened { cause: Arc::clone(&cause) };
        for error in [EngineError::ReadOnly { cause }, not_reopened] {
            assert!(error.wrote_nothing(), "{error}");
            let Error::Engine(told) = in_doubt(error.into()) else { panic!("it is the engine's") };
            assert!(matches!(told, EngineError::WriteFailed { .. }), "{told}");
        }
    }
}
