//! Promotions under way: the store's threads make them behind ticks, since an engine reads a cold cluster as a whole.
//!
//! A tick with time for it waits for their ends until its budget is over; one without counts those that it sees. It does
//! not wait where others keep all threads busy: its promotions come behind them.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use cg_tiering::Step;

use super::due::try_receive;
use super::{Due, MoveCounts, Work};
use crate::maintain::move_tier::{Outcome, past_damage, promote};
use crate::maintain::state::MaintainState;
use crate::rt::pool;
use crate::rt::visits::Visitor;
use crate::storage::error::Error;

/// The promotions that were begun and not seen to end, the oldest first. Each is of a cube of its own.
#[derive(Debug, Default)]
pub(super) struct Promoting(VecDeque<(Step, Receiver<Result<Outcome, Error>>)>);

impl Promoting {
    pub(super) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }
}

impl MaintainState {
    /// Has a thread of the pool take the step that is held.
    pub(super) fn begin_promotion(&self, visitor: &Visitor<MaintainState>, work: &mut Work, due: Due) {
        let Some(step) = work.next_step() else { return };
        let (sender, receiver) = channel();
        let visitor = visitor.clone();
        self.shared.pool.spawn(move || {
            // A world that is gone has nothing to be promoted in.
            let end = visitor.visit(|world| pool::told("promoting chunks", || world.promote(&step, due)));
            if let Ok(end) = end {
                let _ = sender.send(end);
            }
        });
        work.promoting.0.push_back((step, receiver));
    }

    fn promote(&self, step: &Step, due: Due) -> Result<Outcome, Error> {
        if !self.activity.tiering.observers(|seen| due.confirms(seen, step)) {
            return Ok(Outcome::Nothing);
        }
        past_damage(promote(&*self.shared.engine()?, &self.shared.counters, step.cube))
    }

    /// Waits until so many promotions are under way at most; `false` if the deadline comes first, or others keep all threads
    /// busy.
    pub(crate) fn await_promotions(
        &self,
        work: &mut Work,
        most: usize,
        due: Due,
        counts: &mut MoveCounts,
    ) -> Result<bool, Error> {
        loop {
            let count = work.promoting.0.len();
            let Some((step, receiver)) = work.promoting.0.front() else { return Ok(true) };
            let waits = count > most && !(due.has_end() && self.shared.pool.is_busy_beside(count));
            let end = if waits { due.receive(receiver) } else { try_receive(receiver) };
            let (step, end) = match end {
                Ok(end) => (*step, end),
                Err(RecvTimeoutError::Timeout) => return Ok(count <= most),
                // The thread went away with the world.
                Err(RecvTimeoutError::Disconnected) => (*step, Err(Error::Closed)),
            };
            work.promoting.0.pop_front();
            if matches!(end, Ok(Outcome::Overtaken) | Err(_)) {
                self.activity.tiering.observers(|seen| seen.again(step.cube));
            }
            if end.is_err() {
                // It may have been written all the same.
                work.known.moved(step.cube);
            }
            counts.promoted += self.end(work, &[step.cube], end?, counts);
        }
    }
}
