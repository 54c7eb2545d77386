//! The store of a transaction: where it reads, and how its reads are guarded. A world's guards them until the commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkBox, Dimension, EntityId, RecordId};
use cg_registry::Catalog;

use super::Committed;
use super::commit::{commit, conflict_now, refusal};
use super::tx::Tx;
use crate::commit::commit_log::Begun;
use crate::commit::disk_guard::Reserve;
use crate::commit::state::CommitState;
use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::read::chunk::positions_in;
use crate::rt::reentry::{Doing, ReentryGuard};
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;
use crate::storage::options::Durability;

/// A world, an overlay or a segment, from which its transactions read chunks and entities. Every read is recorded,
/// because the commit depends on it.
///
/// Implemented by this crate only: no other code can create a [`Tx`](super::Tx).
pub trait TxStore {
    /// The current names. `begun` are those at the beginning of the transaction. Ids never change, so a name that was
    /// registered since may be used.
    fn current_catalog(&self, begun: &Arc<Catalog>) -> Arc<Catalog> {
        Arc::clone(begun)
    }

    /// The error with which a call is refused. It is another error if a commit since the beginning of the transaction
    /// may have caused it.
    fn refused(&self, error: Error) -> Error {
        error
    }

    /// A chunk, or `None` if it is not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged; the errors of the store.
    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error>;

    /// Many chunks, one result per position in the order asked.
    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>>;

    /// An entity, or `None` if it is not stored.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error>;

    /// Many entities, one result per id in the order asked.
    fn entities(&mut self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        ids.iter().map(|id| self.entity(*id)).collect()
    }
}

/// A store that also has properties, objects and records.
pub trait ValueStore: TxStore {
    /// A property, or `None` if it was never set.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error>;

    /// The stored state of an object, deleted or not.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error>;

    /// A record, or `None` if it is not stored.
    ///
    /// # Errors
    /// As [`chunk`](TxStore::chunk).
    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error>;
}

/// A running transaction of a world.
///
/// Everything it loads is guarded: if another transaction changes it before this one commits, the commit fails with
/// [`Error::Conflict`] and nothing is written.
pub type Transaction<'w> = Tx<WorldReads<'w>>;

/// A world, and what a transaction has read of it.
#[derive(Debug)]
pub struct WorldReads<'w> {
    pub(super) world: &'w CommitState,
    pub(super) begun: Begun<'w>,
    pub(super) reads: BTreeSet<ConflictKey>,
    pub(super) listings: Vec<Listing>,
    /// What the commit does with the room of the disk that is to stay free.
    pub(super) reserve: Reserve,
}

/// A box whose stored chunks a transaction has listed. The set of chunks must not change before it commits.
#[derive(Debug)]
pub(super) struct Listing {
    /// The last commit that the listing certainly contains.
    pub(super) since: u64,
    pub(super) dimension: Dimension,
    pub(super) area: ChunkBox,
}

impl TxStore for WorldReads<'_> {
    fn current_catalog(&self, _: &Arc<Catalog>) -> Arc<Catalog> {
        self.world.shared.registry.catalog()
    }

    fn refused(&self, error: Error) -> Error {
        refusal(self, &self.world.log.commit(), error)
    }

    fn chunk(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        self.reads.insert(ConflictKey::Chunk(at));
        Ok(self.world.read.stored(at)?.here().map(|stored| stored.chunk))
    }

    fn chunks(&mut self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        self.reads.extend(at.iter().map(|at| ConflictKey::Chunk(*at)));
        let stored = self.world.read.stored_many(at).into_iter();
        stored.map(|stored| Ok(stored?.here().map(|stored| stored.chunk))).collect()
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.reads.insert(ConflictKey::Entity(id));
        self.world.read.entity(id)
    }

    fn entities(&mut self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        self.reads.extend(ids.iter().map(|id| ConflictKey::Entity(*id)));
        self.world.read.entities(ids)
    }
}

impl ValueStore for WorldReads<'_> {
    fn property(&mut self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        self.reads.insert(ConflictKey::Property(property.to_string()));
        self.world.read.property(property)
    }

    fn object(&mut self, key: &ObjectKey) -> Result<Option<StoredObject>, Error> {
        self.reads.insert(ConflictKey::Object(key.clone()));
        self.world.read.stored_object(key)
    }

    fn record(&mut self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        self.reads.insert(ConflictKey::Record(id));
        self.world.read.stored_record(id)
    }
}

impl<'w> Transaction<'w> {
    pub(super) fn begin(world: &'w CommitState, reserve: Reserve) -> Result<Self, Error> {
        world.shared.check_open()?;
        let begun = world.log.begin();
        let catalog = world.shared.registry.catalog();
        Ok(Self::new(
            WorldReads { world, begun, reads: BTreeSet::new(), listings: Vec::new(), reserve },
            catalog,
        ))
    }
}

impl Transaction<'_> {
    /// Deletes every stored chunk of a box, as [`delete`](Self::delete) does. Returns the number of chunks.
    ///
    /// The box is guarded: after the commit it contains only chunks that this transaction saves there later. A listed
    /// chunk that another transaction changes meanwhile is deleted all the same. A chunk that another transaction
    /// stores where there was none is a conflict.
    ///
    /// Costs a scan of the rows of the box, of clusters only up to their directories: nothing is decompressed. The
    /// commit reads every deleted chunk, for its entities and its outline.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row of the box is damaged, and if the storage fails. At commit: [`Error::Conflict`].
    pub fn delete_box(&mut self, dimension: Dimension, area: ChunkBox) -> Result<u64, Error> {
        // A later commit may or may not be in the listing.
        let since = self.store.world.log.published();
        let view = self.store.world.drained_engine()?;
        let counters = &self.store.world.shared.counters;
        let stored = positions_in(&view.snapshot()?, counters, dimension, area)?;
        self.store.listings.push(Listing { since, dimension, area });
        let written = self.writes.chunks.iter().filter_map(|(at, chunk)| chunk.as_ref().map(|_| *at));
        let written: Vec<_> =
            written.filter(|at| at.dimension == dimension && area.contains(at.pos)).collect();
        let all: BTreeSet<_> = stored.into_iter().chain(written).collect();
        let mut count = 0;
        for at in all {
            if self.writes.chunks.insert(at, None) != Some(None) {
                count += 1;
            }
        }
        Ok(count)
    }
}

impl CommitState {
    /// See [`World::transaction`](crate::World::transaction).
    pub(crate) fn transaction<T, X: From<Error>>(
        &self,
        durability: Durability,
        reserve: Reserve,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        let _running = self.transactions.start("a transaction");
        let _on_this_thread = ReentryGuard::enter_once(Doing::Transaction, self).ok_or(Error::Nested)?;
        self.apply_submitted()?;
        let mut tx = Transaction::begin(self, reserve)?;
        let value = body(&mut tx)?;
        let seq = commit(tx, durability)?;
        Ok(Committed::new(self.weak_world.clone(), value, seq))
    }
}

/// How often [`CommitState::transact`] runs its closure at most.
const MAX_RUNS: u32 = 100;

/// How long a transaction waits after each of its first conflicts. A writer that commits one transaction after another would
/// overtake it each time if it began again at once: it learns of a conflict when the other has begun again already.
const FIRST_WAIT: Duration = Duration::from_micros(10);

/// How often the wait doubles: to 5 ms.
const DOUBLINGS: u32 = 9;

/// Why a run did not commit.
enum Failed<X> {
    /// The closure returned an error, and what it had read is still current.
    Refused(X),
    /// The world refused it.
    Store(Error),
}

impl<X> From<Error> for Failed<X> {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl CommitState {
    /// See [`World::transact`](crate::World::transact).
    pub(crate) fn transact<T, X: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        let durability = self.shared.options.durability;
        let mut runs = 0;
        loop {
            runs += 1;
            match self.run_once(durability, &mut body) {
                Ok(committed) => return Ok(committed),
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Store(error)) if runs < MAX_RUNS => self.wait_after(error, runs)?,
                Err(Failed::Store(error)) => return Err(error.into()),
            }
        }
    }

    fn run_once<T, X: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, Failed<X>> {
        self.transaction(durability, Reserve::Leaves, |tx| {
            body(tx).map_err(|error| match conflict_now(tx) {
                Some(conflict) => Failed::Store(conflict),
                None => Failed::Refused(error),
            })
        })
    }

    /// Waits until a transaction that was refused may run again.
    ///
    /// # Errors
    /// The refusal, if another run does not help; what a queued write failed with.
    fn wait_after(&self, refusal: Error, runs: u32) -> Result<(), Error> {
        match refusal {
            Error::Conflict { .. } => {
                thread::sleep(FIRST_WAIT * 2_u32.pow(runs.min(DOUBLINGS)));
                Ok(())
            }
            Error::Busy { .. } => self.wait_for_room(),
            refusal => Err(refusal),
        }
    }

    /// See [`World::wait_for_room`](crate::World::wait_for_room).
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        self.shared.check_open()?;
        self.apply_submitted()?;
        self.queue.wait_for_room()
    }
}
