//! Promotions in progress. The threads of the store do them in the background, because an engine reads a cold cluster
//! as a whole.
//!
//! A tick waits for their results until its budget ends, if it has enough time. Otherwise it only counts the finished
//! ones. It does not wait if other work keeps all threads busy: its promotions come after that.

use std::collections::VecDeque;

use cg_tiering::Step;

use super::{Due, MoveCounts, Work};
use crate::maintain::background::{Awaited, Background};
use crate::maintain::move_tier::{Outcome, past_damage, promote};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// The promotions that were begun and are not known to have ended, the oldest first. Each is of another cube.
#[derive(Debug, Default)]
pub(super) struct Promoting(VecDeque<(Step, Background<Outcome>)>);

impl Promoting {
    pub(super) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }
}

impl MaintainState {
    /// Starts the held step on a thread of the pool.
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

    /// Waits until at most `most` promotions are in progress. Returns `false` if the deadline comes first, or if other
    /// work keeps all threads busy.
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
                // It may have been written.
                work.cube_index.moved(step.cube);
            }
            counts.promoted += self.end(work, &[step.cube], end?, counts);
        }
    }
}
