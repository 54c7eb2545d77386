//! Transactions that are prepared while others commit, and accepted later within a moment.
//!
//! What makes a large commit long is reading what it replaces, checking it and writing it. The first two are done before
//! anybody has to wait, the last behind the moment from which it is seen: [`accept`](Ahead::accept) only numbers it and
//! shows it, and whoever drains the queue encodes and writes it.

use super::Transaction;
use super::commit::accept_prepared;
use super::prepare::{Encoding, Prepared, prepare};
use crate::durability::Durability;
use crate::error::{ConflictKey, Error};
use crate::world::World;
use crate::write_behind::Room;

/// A transaction that is not accepted yet. It does not pass the world's door: the caller sees to that.
pub(crate) struct Ahead<'w> {
    tx: Transaction<'w>,
    prepared: Option<Prepared>,
}

impl<'w> Ahead<'w> {
    /// Notes what is to be changed; chunks and entities of it that somebody changes from here on are a conflict.
    ///
    /// # Errors
    /// If the world is closed.
    pub(crate) fn begin(world: &'w World, fill: impl FnOnce(&mut Transaction<'w>)) -> Result<Self, Error> {
        let mut tx = Transaction::begin(world.settled()?)?;
        fill(&mut tx);
        tx.reads.extend(tx.writes.chunks.keys().copied().map(ConflictKey::Chunk));
        tx.reads.extend(tx.writes.entities.keys().copied().map(ConflictKey::Entity));
        Ok(Self { tx, prepared: None })
    }

    /// Reads what is replaced, and refuses what a transaction would be refused for, but for conflicts.
    ///
    /// # Errors
    /// As [`World::transaction`].
    pub(crate) fn prepare(&mut self) -> Result<(), Error> {
        let world = self.tx.world;
        let prepared = prepare(world, &self.tx.writes, Encoding::Later, Room::Taken)?;
        // Encoded again by who writes it: nobody waits for that, and the rows of many worlds are not held at once.
        self.prepared = Some(Prepared { rows: None, ..prepared });
        world.queue.check()
    }

    /// Compares with what others have committed since it began. They must not commit from here on; nothing that is prepared
    /// behind this is a conflict.
    ///
    /// # Errors
    /// [`Error::Conflict`], and as [`prepare`](Self::prepare), which is done again if it is stale.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        let world = self.tx.world;
        let committing = world.commits.commit();
        if let Some(key) = committing.written_since(self.tx.begun.at, &self.tx.reads) {
            return Err(Error::Conflict { key: key.clone() });
        }
        let is_fresh =
            |prepared: &Prepared| committing.written_since(prepared.since, &prepared.consulted).is_none();
        let is_fresh = self.prepared.as_ref().is_some_and(is_fresh);
        drop(committing);
        if !is_fresh {
            self.prepare()?;
        }
        self.tx.reads.clear();
        world.queue.check()
    }

    /// Gives it its place in the order and shows it to readers; it is written by whoever drains the queue.
    ///
    /// # Errors
    /// What the world says. It is not accepted then.
    pub(crate) fn accept(mut self) -> Result<u64, Error> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => prepare(self.tx.world, &self.tx.writes, Encoding::Later, Room::Taken)?,
        };
        accept_prepared(self.tx, prepared, Durability::Process, Room::Taken)
    }
}
