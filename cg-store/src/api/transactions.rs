//! Changing a world: transactions, submitted batches, and going on after a failure.

use crate::api::world::World;
use crate::commit::disk_guard::Reserve;
use crate::commit::submit::{Refused, WriteBatch, WriteTicket};
use crate::commit::transaction::{Committed, Transaction};
use crate::engine::CommitSeq;
use crate::storage::error::Error;
use crate::storage::options::Durability;

impl World {
    /// Runs a closure once and commits what it changed, or nothing if it returns an error.
    ///
    /// A transaction may be of any size: one that is larger than [`StoreLimits::batch_bytes`](crate::StoreLimits) is written in
    /// several batches, and is seen and survives whole or not at all like any other. What it changes is held in memory.
    ///
    /// The commit returns at the world's [`Durability`]. Blocks on reads of what is not in memory and on other commits;
    /// at [`Durability::Process`] on handing it to the system, at the safe levels on the disk.
    ///
    /// # Errors
    /// The closure's own error; [`Error::Busy`] if it is to be queued and the queue is full; [`Error::Conflict`] if something it loaded was changed meanwhile; [`Error::Nested`] if
    /// this thread is inside a transaction of this world; the ownership, damage and limit errors of [`Error`].
    /// Whatever the error, nothing was written, except where it says that syncing failed.
    pub fn transaction<T, X: From<Error>>(
        &self,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        self.transaction_at(self.rooms().shared.options.durability, body)
    }

    /// Runs a transaction until it commits: again after [`Error::Conflict`], and after [`Error::Busy`] once the queue has
    /// room. After a conflict it waits 20 µs at first and 5 ms at most, so that the other writers get done.
    ///
    /// The closure runs at most 100 times, each time in a new [`Transaction`]. So it must change nothing outside it. An
    /// error of the closure ends the call, unless another transaction has changed what this one had read: the closure may
    /// have seen parts of two states, and runs again.
    ///
    /// Blocks as [`transaction`](Self::transaction) and [`wait_for_room`](Self::wait_for_room) do. A tick thread uses
    /// `transaction`, and tries again in its next tick.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// let world = World::builder().in_memory()?;
    /// let uses = Property::Named(Name::new("game:uses")?);
    /// let count = || {
    ///     world.transact(|tx| {
    ///         let stored = tx.property(&uses)?.and_then(|bytes| bytes.try_into().ok());
    ///         let count = stored.map_or(0, u64::from_le_bytes) + 1;
    ///         tx.set_property(uses.clone(), Some(count.to_le_bytes().to_vec()));
    ///         Ok::<_, Error>(count)
    ///     })
    /// };
    /// std::thread::scope(|scope| {
    ///     let counted = [scope.spawn(count), scope.spawn(count)];
    ///     counted.map(|thread| thread.join().expect("no panic").map(|committed| committed.value))
    /// });
    /// assert_eq!(count()?.value, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction). `Conflict` and `Busy` of this world only if every run ended so.
    pub fn transact<T, X: From<Error>>(
        &self,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        self.rooms().commit.transact(body)
    }

    /// As [`transaction`](Self::transaction), returning at a level of its own.
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction).
    pub fn transaction_at<T, X: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
    ) -> Result<Committed<T>, X> {
        self.rooms().commit.transaction(durability, Reserve::Leaves, body)
    }

    /// Submits writes. They are accepted after this call, in the order of such calls, and at the latest when a thread reads.
    ///
    /// For threads that must not stall. It costs some hundred nanoseconds for each chunk, and never waits for the disk or for
    /// other commits. Every read and transaction that begins afterwards, on any thread, sees the batch whole; one that begins
    /// before a thread of the world has accepted it waits for that.
    ///
    /// Like a commit at [`Durability::Fast`](crate::Durability::Fast) it is written soon, and synced as the
    /// [`durability`](crate::WorldOptions::durability) of the world states. A killed process may lose the newest submissions, each
    /// whole, as it may lose the newest queued commits.
    ///
    /// What cannot be stored is found when it is accepted. Then nothing of the batch is written, and the [ticket](WriteTicket)
    /// reports it. If the ticket is dropped, the next [`flush`](Self::flush) or [`close`](Self::close) reports it.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// let world = World::builder().in_memory()?;
    /// let overworld = world.registry().register_dimension("game:overworld")?;
    /// let [air] = world.registry().register_blocks([":air"])?;
    ///
    /// let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
    /// let mut batch = WriteBatch::new();
    /// batch.save(at, Chunk::filled(air, &world.catalog().current_schema())?);
    /// let ticket = world.submit(batch)?;
    ///
    /// assert!(world.load(at)?.is_some());
    /// assert_eq!(ticket.wait()?.seq, world.last_commit());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue has no room; [`Error::LowDiskSpace`] if the disk has too little; [`Error::Closed`]; and why the
    /// world takes no commits, if it does not. Nothing was taken then: [`Refused`] gives the batch back.
    pub fn submit(&self, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
        self.rooms().commit.submit(batch, Reserve::Leaves)
    }

    /// Makes a world writable again that a failed write has made read-only, under the same handles. Call it when the disk has room
    /// again. Does nothing if the world is writable.
    ///
    /// Commits that were accepted and not written are kept in order. They are written and synced when this returns, and so are all
    /// before them, whose presence is checked. Tickets that failed can be waited for again. A commit that returned
    /// [`EngineError::WriteFailed`](crate::engine::EngineError::WriteFailed) is stored afterwards or not, as after an open.
    ///
    /// Blocks while the engine is opened, which takes as long as [`WorldBuilder::open`](crate::WorldBuilder::open). Commits, and
    /// reads that memory and the queue cannot serve, wait meanwhile. If this fails, it may be called again.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if there is less room than [`min_free_bytes`](crate::WorldOptions::min_free_bytes) demands.
    /// [`Error::NotResumed`] states why the world stays read-only:
    /// [`NotResumed::SyncFailed`](crate::error::NotResumed::SyncFailed),
    /// [`NotResumed::LostCommits`](crate::error::NotResumed::LostCommits) and
    /// [`NotResumed::Fenced`](crate::error::NotResumed::Fenced) are permanent. The error of writing the queue; the world is
    /// read-only again then.
    pub fn resume(&self) -> Result<(), Error> {
        self.rooms().commit.resume()
    }

    /// Shows the newest state of a world that another process writes, and returns its newest commit. For worlds that
    /// [`WorldBuilder::open_read_only_over`](crate::WorldBuilder::open_read_only_over) opens over shared rows.
    ///
    /// Between two calls the world shows one state: all reads see the same commit. Each commit is seen whole, and states are
    /// seen in order. Read views that were taken before keep their state. Calls of several threads run one after the other.
    ///
    /// Costs two round trips if nothing was committed. Otherwise also a scan of `worldMeta`, one of the deltas, and one read of
    /// the change marks of the 16³ cubes that are in memory; everything in cubes that changed is dropped from memory. A state
    /// keeps old rows alive, so call it every few seconds at least. While it runs, the engine holds two snapshots.
    ///
    /// A call that was begun before may still return what it read of the state before, beside chunks of the new one; a read view
    /// does not. A follower of a copy that was never opened for writing is refused once its owner opens it, which makes another
    /// world of it: open the owner first.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use cg_engine::conformance::remote::{Network, Remote, Server};
    /// use cg_store::prelude::*;
    /// // A server in memory, instead of a database.
    /// let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    /// let writer = World::builder().create_over(Remote::take(&server, &network)?)?;
    /// let follower = World::builder().open_read_only_over(Remote::read(&server, &network)?)?;
    /// writer.transaction(|tx| {
    ///     tx.set_property(Property::Time, Some(vec![7]));
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(follower.property(&Property::Time)?, None);
    /// assert_eq!(follower.refresh()?, writer.last_commit());
    /// assert_eq!(follower.property(&Property::Time)?, Some(vec![7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Unsupported`](crate::engine::EngineError::Unsupported) if the world is not followed.
    /// [`OpenError::OtherHistory`](crate::OpenError::OtherHistory) if the rows were replaced. [`Error::Corrupt`] or
    /// [`Error::Registry`] if rows are damaged that a world reads first. What the engine fails with. The world shows the state
    /// before then, and the call may be repeated.
    pub fn refresh(&self) -> Result<CommitSeq, Error> {
        self.rooms().commit.refresh()
    }
}
