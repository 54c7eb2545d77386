//! Moving chunks between tiers. Content, versions and schema generations are carried as they are: a move is no change.
//!
//! The unit is the 4³ cube: one warm cluster, or one group of a cold one.
//!
//! | move | one batch of |
//! |---|---|
//! | [`promote`] | puts into L0 |
//! | [`demote_warm`] | the warm cluster, and deletions of the hot rows that are now in it |
//! | [`ColdMerge`] | the cold cluster, and deletions of the warm clusters and hot rows that are now in it |
//! | [`drop_shadows`] | a cluster without the slots that a hotter tier hides |
//! | [`purge_tombstones`] | deletions of the marks of chunks that were deleted long ago and lie in no cluster |
//!
//! **Invariants**. The live copy of a chunk is in the lowest-numbered tier that has it, before and after every move;
//! copies below are older or equal. Each row that a move read or replaces is guarded: a save in between makes the
//! move give up, never the save. One move runs at a time, so no row of a cluster changes under a move by another.
//! Damage is never moved and never taken for absence: what lies in a damaged row stays there.

mod cold;
mod cube;
mod promote;
mod shadow;
#[cfg(test)]
mod tests;
mod tombstone;
mod warm;

use crate::engine::{Batch, Engine, EngineError, ErrorKind, Guard, Level};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

pub(crate) use cold::{ColdEnd, ColdMerge};
pub(crate) use cube::{hot_keys, row_of};
pub(crate) use promote::promote;
pub(crate) use shadow::drop_shadows;
pub(crate) use tombstone::purge_tombstones;
pub(crate) use warm::demote_warm;

/// How much a move moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    /// Chunks that lie in another tier now; for a cluster made smaller, the slots that it lost; or marks forgotten.
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

/// How a move ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There was nothing to move.
    Nothing,
    /// It was done.
    Done(Moved),
    /// A commit changed what was to be moved; nothing was written.
    Conflict,
    /// A row is damaged, so what lies in it stays where it is; nothing was written.
    Damaged(Error),
    /// The cluster would be too large to be formed; nothing was written.
    TooLarge,
}

/// What a move reads, guards and writes on its way.
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
        match engine.commit(self.batch.maintenance(), &self.guards, Level::Process) {
            Ok(_) => {
                Counters::add(&counters.moves, 1);
                Counters::add(&counters.rows_written, rows);
                Counters::add(&counters.bytes_written, bytes);
                Ok(Outcome::Done(self.moved))
            }
            Err(EngineError::Conflict { .. }) => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }
}

/// How a move ended that may have met what the engine cannot read: that is damage like any other.
pub(crate) fn past_damage(end: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match end {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(Outcome::Damaged(error)),
        end => end,
    }
}
