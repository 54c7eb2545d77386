//! How the world of a segment accepts a batch that waited for it.

use std::thread;
use std::time::Duration;

use cg_store::error::ConflictKey;
use cg_store::layer::{DeferredOutcome, batch, promised_transaction, replace_writes};
use cg_store::{Committed, Durability, Error, ErrorKind, Refused, World, WriteBatch};

use super::borders::Borders;
use super::home::SegmentHome;
use super::placed_commit::with_places;
use super::pos::SegmentPos;
use super::reads::SegmentReads;

/// How often a batch is tried that conflicts with other commits: for about ten seconds. A function of the host may return a
/// conflict for ever.
const MAX_RUNS: u32 = 2000;
/// The pause before the second try, and the longest one. Each is twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(5)];

impl<H: SegmentHome> Borders<H> {
    /// Gives a batch to a segment's world. One of chunks alone goes to the queue of that; any other is committed, and the keys
    /// that it deletes are added to `deleted`.
    ///
    /// # Errors
    /// Why the world does not take it now. The batch is as it was.
    pub(super) fn accept(
        &self,
        segment: SegmentPos,
        world: &World,
        batch: &mut WriteBatch,
        deleted: &mut Vec<ConflictKey>,
    ) -> Result<DeferredOutcome, Error> {
        let ([mut pause, longest], mut runs) = (PAUSES, 0);
        loop {
            runs += 1;
            let accepted = if batch::has_values(batch) {
                self.commit(segment, world, batch, deleted).map(DeferredOutcome::Accepted)
            } else {
                submit_to(world, batch).map(DeferredOutcome::Given)
            };
            let error = match accepted {
                Ok(accepted) => return Ok(accepted),
                Err(error) => error,
            };
            match error {
                Error::Conflict { .. } if runs < MAX_RUNS => {
                    thread::sleep(pause);
                    pause = longest.min(pause * 2);
                }
                Error::Busy { .. } => world.wait_for_room()?,
                // This thread runs a transaction of the segment: the batch comes after it.
                Error::Nested if self.open().refuse_inside().is_err() => return Err(Error::Nested),
                // A function of the host may return such an error too.
                error if may_pass(&error) && self.is_failing(world) => return Err(error),
                error => return Ok(DeferredOutcome::Refused(error)),
            }
        }
    }

    /// Whether the segment or the root takes no commits.
    fn is_failing(&self, world: &World) -> bool {
        [world, self.open().root().world()].into_iter().any(|world| self.open().flush(world).is_err())
    }

    /// As a [transaction](crate::SegmentedWorld::transaction).
    fn commit(
        &self,
        segment: SegmentPos,
        world: &World,
        batch: &WriteBatch,
        gone: &mut Vec<ConflictKey>,
    ) -> Result<Committed<()>, Error> {
        let side_chunks = self.open().root().side_chunks();
        let elsewhere = |key: &ConflictKey| Ok(self.find_free(segment, key)?.deleted);
        let (mut putting, mut deleted, mut places) = (None, Vec::new(), None);
        let committed = promised_transaction(world, Durability::Fast, |tx| {
            self.open().inside(|| batch::write_batch(batch, tx))?;
            let mut writes = batch::take_writes(tx);
            let has_dead = self.is_unfinished();
            let mut reads = SegmentReads { tx, segment, side_chunks, elsewhere: &elsewhere, has_dead };
            // Held until the segment has accepted it.
            (putting, deleted) = self.claim_written(&mut reads, &mut writes)?;
            places = self.open().root().unsynced();
            replace_writes(reads.tx, writes);
            Ok::<_, Error>(())
        })?;
        drop(putting);
        gone.append(&mut deleted);
        Ok(with_places(committed, places))
    }
}

fn submit_to(world: &World, batch: &mut WriteBatch) -> Result<cg_store::WriteTicket, Error> {
    batch::submit_promised(world, std::mem::take(batch)).map_err(|refused| {
        let Refused { error, batch: given_back } = *refused;
        *batch = given_back;
        error
    })
}

/// Whether an error is that of storage that may take writes later.
pub(super) fn may_pass(error: &Error) -> bool {
    use ErrorKind as K;
    matches!(
        error.kind(),
        K::Busy | K::LowDisk | K::ReadOnly | K::Fenced | K::Unavailable | K::InDoubt | K::Engine
    )
}
