//! Promotions under way: the store's threads make them in the background, since an engine reads a cold cluster as a whole.
//!
//! A tick with time for it waits for their ends until its budget is over; one without counts those that it sees. It does
//! not wait where others keep all threads busy: its promotions come after them.

use std::collections::VecDeque;

use cg_tiering::Step;

use super::{Due, MoveCounts, Work};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{Outcome, past_damage, promote};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The promotions that were begun and not seen to end, the oldest first. Each is of a cube of its own.
#[derive(Debug, Default)]
pub(super) struct Promoting(VecDeque<(Step, Background<Outcome>)>);

impl Promoting {
    pub(super) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }
}

impl MaintainState {
    /// Has a thread of the pool take the step that is held.
    pub(super) fn begin_promotion(&self, work: &mut Work, due: Due) {
        let Some(step) = work.next_step() else { return };
        let promoting = self.in_background("promoting chunks", move |world| world.promote(&step, due));
        work.promoting.0.push_back((step, promoting));
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
            let Some((step, promoting)) = work.promoting.0.pop_front() else { return Ok(true) };
            let waits = count > most && !(due.has_end() && self.shared.pool.is_busy_beside(count));
            let end = match if waits { promoting.wait(due) } else { promoting.look() } {
                Awaited::Done(end) => end,
                Awaited::Running(promoting) => {
                    work.promoting.0.push_front((step, promoting));
                    return Ok(count <= most);
                }
            };
            if matches!(end, Ok(Outcome::Conflict) | Err(_)) {
                self.activity.tiering.observers(|seen| seen.again(step.cube));
            }
            if end.is_err() {
                // It may have been written all the same.
                work.cube_index.moved(step.cube);
            }
            counts.promoted += self.end(work, &[step.cube], end?, counts);
        }
    }
}
