//! Committing a transaction: it is prepared, checked for conflicts, and entered into the order of commits.

use std::fmt;
use std::sync::Arc;

use cg_format::ChunkAt;

use super::Transaction;
use super::prepare::prepare;
use super::world::WorldReads;
use crate::commit::commit_log::Committing;
use crate::commit::disk_guard::Reserve;
use crate::commit::queue::Admission;
use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, Level};
use crate::rt::stats::Counters;
use crate::rt::weak_world::WeakWorld;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::options::Durability;

/// How often a commit is prepared outside the commit lock before it is prepared under it.
const TRIES_OUTSIDE_THE_LOCK: u32 = 3;

/// Commits a transaction, and returns its commit sequence when the durability is reached.
pub(super) fn commit(tx: Transaction<'_>, durability: Durability) -> Result<u64, Error> {
    let world = tx.store.world;
    // Batches that the closure itself submitted are accepted first, too.
    world.apply_submitted()?;
    if durability.is_queued() {
        world.start_writing()?;
        return accept(tx, Admission::Try);
    }
    let group = (durability == Durability::SafeBatch).then(|| world.group_commit.join());
    let seq = accept(tx, Admission::Bypass)?;
    let level = if durability.is_synced() { Level::Power } else { Level::Process };
    world.persist_own(seq, level, group)?;
    Ok(seq)
}

/// Accepts a submitted batch, which has its room in the queue. Returns its commit sequence. Runs `say` again after a
/// conflict: another commit changed what they edit.
pub(crate) fn accept_reserved(
    world: &CommitState,
    say: impl Fn(&mut Transaction<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    loop {
        let mut tx = Transaction::begin(world, Reserve::Uses)?;
        let accepted = match say(&mut tx) {
            Ok(()) => accept(tx, Admission::Reserved),
            // Another commit may have led to it.
            Err(error) => Err(conflict_now(&tx).unwrap_or(error)),
        };
        match accepted {
            Err(Error::Conflict { .. }) => {}
            accepted => return accepted,
        }
    }
}

/// Gives a transaction its place in the order and makes it visible, either written or queued.
///
/// Preparation reads what is replaced and encodes what replaces it, outside any lock. If another commit changes what
/// was read, preparation is repeated, and at last under the lock. The closure of the transaction does not run again.
/// The transaction ends here: what other commits write is not recorded for it while it waits for the disk.
fn accept(tx: Transaction<'_>, room: Admission) -> Result<u64, Error> {
    let world = tx.store.world;
    let mut tries = 0;
    loop {
        let locked = (tries == TRIES_OUTSIDE_THE_LOCK).then(|| world.log.commit());
        if let Some(conflict) = locked.as_ref().and_then(|committing| conflict(&tx, committing)) {
            return Err(conflict);
        }
        let prepared = prepare(world, &tx.writes, room, tx.store.reserve);
        let committing = locked.unwrap_or_else(|| world.log.commit());
        let prepared = prepared.map_err(|error| refusal(&tx.store, &committing, error))?;
        if let Some(conflict) = conflict(&tx, &committing) {
            return Err(conflict);
        }
        if committing.written_since(prepared.since, &prepared.consulted).is_none() {
            return world.enter(committing, Some(&tx.store.begun), prepared, room);
        }
        Counters::add(&world.shared.counters.preparations_repeated, 1);
        tries += 1;
    }
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
#[derive(Debug)]
pub struct Committed<T> {
    /// The value that the closure returned.
    pub value: T,
    /// The number of the commit; that of the last commit if nothing was changed.
    pub seq: CommitSeq,
    keeper: Keeper,
}

/// Who has a commit.
#[derive(Debug, Clone)]
enum Keeper {
    World(WeakWorld<CommitState>),
    Layer(Arc<dyn KeepsCommits>),
}

/// A layer with commits of its own, as their tickets know it. It is not kept open by them.
pub trait KeepsCommits: fmt::Debug + Send + Sync {
    /// Whether a commit, and what it refers to below the layer, survives the event of a level. Never blocks.
    fn has_reached(&self, commit: CommitSeq, level: Level) -> bool;

    /// Waits until it does.
    ///
    /// # Errors
    /// If syncing fails; [`Error::Closed`] if the layer is closed and has not synced it.
    fn wait_for(&self, commit: CommitSeq, level: Level) -> Result<(), Error>;
}

impl<T> Committed<T> {
    pub(crate) fn new(world: WeakWorld<CommitState>, value: T, seq: u64) -> Self {
        Self { value, seq: CommitSeq::new(seq), keeper: Keeper::World(world) }
    }

    pub(crate) fn of_layer(layer: Arc<dyn KeepsCommits>, value: T, seq: u64) -> Self {
        Self { value, seq: CommitSeq::new(seq), keeper: Keeper::Layer(layer) }
    }

    /// A ticket that reports when the commit survives a killed process or a power cut.
    pub fn durable(&self) -> Durable {
        Durable { keeper: self.keeper.clone(), seq: self.seq.get() }
    }
}

/// A ticket of a commit. It reports or waits until the commit reaches the system or the disk. It needs no async runtime
/// and does not keep the world open.
#[derive(Debug, Clone)]
pub struct Durable {
    keeper: Keeper,
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
        match &self.keeper {
            Keeper::World(world) => world.with_world(reached).unwrap_or_else(|synced| synced) >= self.seq,
            Keeper::Layer(layer) => layer.has_reached(CommitSeq::new(self.seq), level),
        }
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
    /// It is [`Fenced`](crate::engine::EngineError::Fenced) if another writer has the world and the commit is not
    /// written.
    /// [`Error::Closed`] if the world is closed and closing could not save it.
    pub fn wait_for(&self, level: Level) -> Result<(), Error> {
        if self.has_reached(level) {
            return Ok(());
        }
        let world = match &self.keeper {
            Keeper::World(world) => world,
            Keeper::Layer(layer) => return layer.wait_for(CommitSeq::new(self.seq), level),
        };
        let persist = |world: &CommitState| {
            world.persist(self.seq, level, None).map_err(|error| world.fenced(self.seq, error))
        };
        match world.with_world(persist) {
            Ok(reached) => reached,
            // The world may have been closed since the first check.
            Err(synced) if synced >= self.seq => Ok(()),
            Err(_) => Err(Error::Closed),
        }
    }
}
