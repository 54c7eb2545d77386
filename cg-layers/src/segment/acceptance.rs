//! How the world of a segment accepts a batch that waited for it.

use std::thread;
use std::time::Duration;

use cg_store::error::ConflictKey;
use cg_store::layer::{DeferredOutcome, batch};
use cg_store::{Committed, Durability, Error, ErrorKind, Refused, World, WriteBatch};

use super::borders::Borders;
use super::error::SegmentError;
use super::home::SegmentHome;
use super::pos::SegmentPos;

/// How often a batch is tried that conflicts with other commits.
const MAX_RUNS: u32 = 100;
/// The pause before the next try.
const PAUSE: Duration = Duration::from_micros(100);

impl<H: SegmentHome> Borders<H> {
    /// Gives a batch to a segment's world. Without entities it goes to the queue of that; with entities it is committed, and
    /// those that it deletes are added to `deleted`.
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
        let mut runs = 0;
        loop {
            runs += 1;
            let accepted = if batch::touches_entities(batch) {
                self.commit(segment, world, batch, deleted).map(DeferredOutcome::Accepted)
            } else {
                submit_to(world, batch).map(DeferredOutcome::Given)
            };
            let error = match accepted {
                Ok(accepted) => return Ok(accepted),
                Err(error) => error,
            };
            match error {
                Error::Conflict { .. } if runs < MAX_RUNS => thread::sleep(PAUSE),
                Error::Busy { .. } => world.wait_for_room()?,
                // This thread runs a transaction of the segment: the batch comes after it.
                Error::Nested if self.open().refuse_inside().is_err() => return Err(Error::Nested),
                error @ Error::LowDiskSpace { .. } => return Err(error),
                // A function of the host may return such an error too.
                error if may_pass(&error) && self.is_failing(world) => return Err(error),
                error => return Ok(DeferredOutcome::Refused(error)),
            }
        }
    }

    /// Whether the segment or the root takes no commits.
    fn is_failing(&self, world: &World) -> bool {
        let fails = |world: &World| match world.flush() {
            Err(refusal @ Error::DeferredWrite { .. }) => {
                self.open().note_refusal(refusal);
                false
            }
            flushed => flushed.is_err(),
        };
        fails(world) || fails(self.open().root().world())
    }

    /// As a [transaction](crate::SegmentedWorld::transaction).
    fn commit(
        &self,
        segment: SegmentPos,
        world: &World,
        batch: &WriteBatch,
        gone: &mut Vec<ConflictKey>,
    ) -> Result<Committed<()>, Error> {
        let root = self.open().root();
        let (mut putting, mut deleted) = (None, Vec::new());
        let committed = world.transaction_at(Durability::Fast, |tx| {
            self.open().inside(|| batch::write_batch(batch, tx))?;
            let writes = batch::writes_of(tx);
            if let Some(at) = batch::places_of(writes).find(|at| !segment.has(*at, root.side_chunks())) {
                let second = root.segment_of(at);
                return Err(SegmentError::TwoSegments { first: segment, second }.into());
            }
            let put;
            let keys = batch::entities_of(writes);
            [put, deleted] = keys.map(|ids| ids.into_iter().map(ConflictKey::Entity).collect::<Vec<_>>());
            // Held until the segment has accepted it.
            if !put.is_empty() {
                putting = Some(self.put(segment, &put)?);
            }
            Ok::<_, Error>(())
        })?;
        drop(putting);
        gone.append(&mut deleted);
        Ok(committed)
    }
}

fn submit_to(world: &World, batch: &mut WriteBatch) -> Result<cg_store::WriteTicket, Error> {
    world.submit(std::mem::take(batch)).map_err(|refused| {
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
