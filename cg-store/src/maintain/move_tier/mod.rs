//! Moves of chunks between tiers. Content, versions and schema generations are preserved: a move is not a change.
//!
//! The unit is the 4³ cube: one warm cluster, or one group of a cold one.
//!
//! | move | one batch of |
//! |---|---|
//! | [`promote`] | puts into L0 |
//! | [`demote_warm`] | the warm cluster, and deletions of the hot rows that are now in it |
//! | [`ColdMerge`] | the cold cluster, and deletions of the warm clusters and hot rows that are now in it |
//! | [`drop_shadows`] | a cluster without the slots that a hotter tier hides |
//! | [`purge_tombstones`] | deletions of the tombstones of chunks deleted before the horizon and stored in no cluster |
//!
//! **Invariants**. The live copy of a chunk is in the lowest-numbered tier that has it, before and after every move;
//! copies below are older or equal. Each row that a move read or replaces is guarded: a save in between makes the move
//! fail, never the save. One move runs at a time, so no other move changes a row of a cluster meanwhile. Damage is
//! never moved and never treated as absence: the content of a damaged row stays there.

mod cold;
mod cube;
mod promote;
mod shadow;
#[cfg(test)]
mod tests;
mod tombstone;
mod warm;

use crate::engine::{Batch, Engine, ErrorKind, Guard};
use crate::maintain::guarded::commit_guarded;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

pub(crate) use cold::{ColdEnd, ColdMerge, GroupMade};
pub(crate) use cube::{hot_keys, row_of};
pub(crate) use promote::promote;
pub(crate) use shadow::drop_shadows;
pub(crate) use tombstone::purge_tombstones;
pub(crate) use warm::demote_warm;

/// The amount of work that a move did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// The chunks that are now in another tier. For a rewritten cluster, the slots that it lost; for a purge, the
    /// tombstones.
    pub(crate) chunks: u64,
    /// Bytes of the rows that were read.
    pub(crate) bytes_read: u64,
    /// Bytes of the rows that were written.
    pub(crate) bytes_written: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

/// The result of a move.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There was nothing to move.
    Nothing,
    /// The move was committed.
    Done(Moved),
    /// A commit changed what was to be moved; nothing was written.
    Conflict,
    /// A row is damaged, so its content stays where it is; nothing was written.
    Damaged(Error),
    /// The cluster would be too large; nothing was written.
    TooLarge,
}

/// The reads, guards and writes of a move.
#[derive(Debug, Default)]
struct MoveWrites {
    batch: Batch,
    guards: Vec<Guard>,
    moved: Moved,
}

impl MoveWrites {
    fn append(&mut self, other: Self) {
        self.batch.append(other.batch);
        self.guards.extend(other.guards);
        self.moved += other.moved;
    }

    fn commit(mut self, engine: &dyn Engine, counters: &Counters) -> Result<Outcome, Error> {
        if self.batch.is_empty() {
            return Ok(Outcome::Nothing);
        }
        let bytes = self.batch.len_bytes();
        self.moved.bytes_written = bytes;
        let rows = self.batch.op_count() as u64;
        if !commit_guarded(engine, self.batch, &self.guards)? {
            return Ok(Outcome::Conflict);
        }
        Counters::add(&counters.moves, 1);
        Counters::add(&counters.rows_written, rows);
        Counters::add(&counters.bytes_written, bytes);
        Ok(Outcome::Done(self.moved))
    }
}

/// Separates damage, which blocks one move, from errors that block all of them.
pub(crate) fn split_damage<T>(done: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match done {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(Err(error)),
        done => done.map(Ok),
    }
}

/// Converts an error about damage into the result of a move.
pub(crate) fn past_damage(end: Result<Outcome, Error>) -> Result<Outcome, Error> {
    Ok(split_damage(end)?.unwrap_or_else(Outcome::Damaged))
}
