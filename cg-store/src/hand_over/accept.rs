//! Accepting: by the thread of the world, or by whoever cannot do without.

use std::cell::Cell;

use cg_format::ChunkAt;

use super::queue::Waiting;
use crate::engine::Engine;
use crate::error::Error;
use crate::pool::told;
use crate::stats::Counters;
use crate::transaction::accept_promised;
use crate::world::{Inner, World};

thread_local! {
    /// Whether this thread accepts a batch: what it calls meanwhile, a function of the host for example, sees the world
    /// as it was before.
    static ACCEPTS: Cell<bool> = const { Cell::new(false) };
}

/// Does something that settles nothing. It does not panic.
pub(super) fn while_accepting<T>(accept: impl FnOnce() -> T) -> T {
    ACCEPTS.set(true);
    let accepted = accept();
    ACCEPTS.set(false);
    accepted
}

impl<E: Engine> World<E> {
    /// The world once what concerns the columns of some chunks is accepted or refused.
    ///
    /// # Errors
    /// Why the world takes no commits, if something that concerns them waits for that.
    #[inline]
    pub(crate) fn settled_for(&self, at: &[ChunkAt]) -> Result<&Inner<E>, Error> {
        let inner = self.unsettled();
        if inner.has_hand_overs() {
            inner.settle_for(at)?;
        }
        Ok(inner)
    }
}

impl<E: Engine> Inner<E> {
    /// Whether anything waits to be accepted.
    #[inline]
    pub(crate) fn has_hand_overs(&self) -> bool {
        !self.hand_overs.is_empty()
    }

    /// Accepts or refuses everything that was handed over before this call.
    ///
    /// # Errors
    /// Why the world takes no commits, if that is so: the rest waits.
    #[inline]
    pub(crate) fn settle_hand_overs(&self) -> Result<(), Error> {
        if self.has_hand_overs() { self.settle_up_to(self.hand_overs.last()) } else { Ok(()) }
    }

    /// As [`settle_hand_overs`](Self::settle_hand_overs), as far as it concerns the columns of some chunks.
    ///
    /// # Errors
    /// As [`settle_hand_overs`](Self::settle_hand_overs).
    #[cold]
    pub(crate) fn settle_for(&self, at: &[ChunkAt]) -> Result<(), Error> {
        self.hand_overs.last_concerning(at).map_or(Ok(()), |number| self.settle_up_to(number))
    }

    /// Whether something waits that concerns the column of a chunk.
    #[inline]
    pub(crate) fn awaits_acceptance(&self, at: ChunkAt) -> bool {
        self.has_hand_overs() && self.hand_overs.last_concerning(&[at]).is_some()
    }

    /// Accepts or refuses the batches up to a number.
    #[cold]
    pub(super) fn settle_up_to(&self, number: u64) -> Result<(), Error> {
        if ACCEPTS.get() {
            return Ok(());
        }
        loop {
            let _in_order = self.hand_overs.begin_accepting();
            let Some(next) = self.hand_overs.next_up_to(number) else { return Ok(()) };
            self.accept_next(&next)?;
        }
    }

    /// Accepts or refuses the next batch.
    pub(super) fn settle_one(&self) -> Result<(), Error> {
        let _in_order = self.hand_overs.begin_accepting();
        self.hand_overs.next_up_to(u64::MAX).map_or(Ok(()), |next| self.accept_next(&next))
    }

    fn accept_next(&self, next: &Waiting) -> Result<(), Error> {
        let accept =
            || told("accepting what was handed over", || accept_promised(self, |tx| next.batch.say(tx)));
        let accepted = while_accepting(accept);
        if accepted.is_err() {
            // It is not the batch that is refused, if no other would be taken.
            self.queue.check()?;
            drop(self.engine()?);
        }
        if let Err(error) = &accepted {
            tracing::error!(%error, "a batch that was handed over is refused, and nothing of it is written");
            Counters::add(&self.counters.hand_overs_refused, 1);
        }
        let is_refused = accepted.is_err();
        next.outcome.settle(accepted);
        self.hand_overs.leave(is_refused);
        Ok(())
    }

    /// The oldest refusal of which nobody knows yet.
    pub(crate) fn check_hand_overs(&self) -> Result<(), Error> {
        self.hand_overs.untold().map_or(Ok(()), |error| Err(Error::HandedOver { error: Box::new(error) }))
    }
}
