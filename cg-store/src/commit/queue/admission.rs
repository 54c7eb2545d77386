//! The order in which waiting callers get room in the queue. A commit that needs much room gets it, however many small
//! commits arrive.
//!
//! **Invariants**.
//! - The first waiting caller gets the next room that is enough for it, before any caller that does not wait.
//! - While a caller waits, other callers get at most `max_bytes` of room in total. Then they are refused until the
//!   first waiting caller is admitted.
//! - A reservation can be used by its own thread only, until the thread has committed or [`KEPT`] has passed.

use std::collections::VecDeque;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::{CommitQueue, State};
use crate::storage::error::Error;

/// How long room is kept for a thread that waited for it.
const KEPT: Duration = Duration::from_secs(2);
/// The maximum number of remembered refusals, one for each thread. The oldest is forgotten first.
const REMEMBERED_REFUSALS: usize = 256;

/// How often a caller that waits for room checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The queued bytes, and their limit.
#[derive(Debug, Clone, Copy)]
struct Fill {
    bytes: u64,
    max_bytes: u64,
    is_empty: bool,
}

impl Fill {
    fn has_room(self, bytes: u64) -> bool {
        self.bytes.saturating_add(bytes) <= self.max_bytes
    }
}

/// The place of a waiting caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u64);

/// The callers that wait for room in one queue.
#[derive(Debug, Default)]
pub(super) struct AdmissionQueue {
    waiting: VecDeque<Waiting>,
    reserved: Vec<Reservation>,
    refused: VecDeque<(ThreadId, u64)>,
    /// The bytes of commits that were admitted before the first waiting caller.
    passed_bytes: u64,
    places: u64,
}

#[derive(Debug)]
struct Waiting {
    place: Place,
    thread: ThreadId,
    /// The size of the refused commit; 0 if none was refused.
    bytes: u64,
    /// The caller is admitted when this much room is free, or when the queue is empty.
    enough_bytes: u64,
}

#[derive(Debug)]
struct Reservation {
    place: Place,
    thread: ThreadId,
    bytes: u64,
    /// The end of the reservation. `None` until its thread has seen it.
    until: Option<Instant>,
}

impl CommitQueue {
    /// Waits in line until half of the queue is free, or as much as this thread was refused last if that is more. If
    /// that is more than the whole queue, waits until the queue is empty. A commit that is being written still takes
    /// its room.
    ///
    /// # Errors
    /// The error of a failed write.
    pub(crate) fn wait_for_room(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        let fill = self.fill(&state);
        let place = state.admission.wait(thread::current().id(), fill);
        loop {
            let now = Instant::now();
            let fill = self.fill(&state);
            if state.admission.admit_waiting(fill, now) {
                // Other callers may have been admitted too.
                self.left.notify_all();
            }
            if state.ended || state.failed.is_some() {
                state.admission.leave(place);
                return state.check();
            }
            if state.admission.is_admitted(place, now) {
                return Ok(());
            }
            // A reservation in front may expire without a signal.
            self.left.wait_for(&mut state, LOOK_AGAIN);
        }
    }

    /// Admits a commit if it fits and it is its turn.
    pub(super) fn admit(&self, state: &mut State, bytes: u64) -> Result<(), Error> {
        let fill = self.fill(state);
        let fits = fill.is_empty || fill.bytes.saturating_add(bytes) <= fill.max_bytes;
        // Usually no caller waits. Then the id of this thread is not needed.
        let is_admitted = (fits && state.admission.is_idle())
            || state.admission.admit(thread::current().id(), bytes, fill, Instant::now());
        if is_admitted {
            Ok(())
        } else {
            Err(Error::Busy { queued_bytes: fill.bytes, limit_bytes: fill.max_bytes })
        }
    }

    fn fill(&self, state: &State) -> Fill {
        let is_empty = self.is_empty() && state.bytes == 0;
        Fill { bytes: state.bytes, max_bytes: self.max_bytes, is_empty }
    }

    /// Admits waiting callers. Done under the same lock, so that no caller that did not wait comes before them.
    pub(super) fn made_room(&self, state: &mut State) {
        if !state.admission.is_idle() {
            let fill = self.fill(state);
            state.admission.admit_waiting(fill, Instant::now());
        }
        self.left.notify_all();
    }
}

impl AdmissionQueue {
    /// Whether no caller waits, has a reservation or was refused.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.reserved.is_empty() && self.refused.is_empty()
    }

    /// Whether a commit of `bytes` by this thread is admitted now. A refusal is remembered.
    fn admit(&mut self, thread: ThreadId, bytes: u64, fill: Fill, now: Instant) -> bool {
        self.lapse(now);
        let is_admitted = self.redeem(thread, bytes) || self.may_overtake(bytes, fill);
        self.refused.retain(|(refused, _)| *refused != thread);
        if !is_admitted {
            if self.refused.len() >= REMEMBERED_REFUSALS {
                self.refused.pop_front();
            }
            self.refused.push_back((thread, bytes));
        }
        is_admitted
    }

    /// Whether the thread has a reservation that is large enough. The reservation ends here in either case.
    fn redeem(&mut self, thread: ThreadId, bytes: u64) -> bool {
        let Some(at) = self.reserved.iter().position(|reserved| reserved.thread == thread) else {
            return false;
        };
        self.reserved.swap_remove(at).bytes >= bytes
    }

    /// Whether a commit that did not wait may be admitted before the waiting ones.
    fn may_overtake(&mut self, bytes: u64, fill: Fill) -> bool {
        let reserved_bytes = self.reserved_bytes();
        let is_alone = fill.is_empty && reserved_bytes == 0;
        let fits = is_alone || fill.has_room(bytes.saturating_add(reserved_bytes));
        if self.waiting.is_empty() {
            return fits;
        }
        let passed_bytes = self.passed_bytes.saturating_add(bytes);
        let passes = fits && passed_bytes <= fill.max_bytes;
        if passes {
            self.passed_bytes = passed_bytes;
        }
        passes
    }

    /// Takes the last place. The caller needs the size of its last refused commit, but at least half of the queue.
    fn wait(&mut self, thread: ThreadId, fill: Fill) -> Place {
        // A caller that waits again loses its reservation.
        self.reserved.retain(|reserved| reserved.thread != thread);
        let refused = self.refused.iter().position(|(refused, _)| *refused == thread);
        let bytes = refused.and_then(|at| self.refused.remove(at)).map_or(0, |(_, bytes)| bytes);
        self.places += 1;
        let place = Place(self.places);
        let enough_bytes = bytes.max(fill.max_bytes - fill.max_bytes / 2);
        self.waiting.push_back(Waiting { place, thread, bytes, enough_bytes });
        place
    }

    /// Admits callers from the front while there is room for them. Returns whether any was admitted.
    fn admit_waiting(&mut self, fill: Fill, now: Instant) -> bool {
        self.lapse(now);
        let mut was_admitted = false;
        while let Some(front) = self.waiting.front() {
            let reserved_bytes = self.reserved_bytes();
            let is_alone = fill.is_empty && reserved_bytes == 0;
            if !is_alone && !fill.has_room(front.enough_bytes.saturating_add(reserved_bytes)) {
                break;
            }
            let Some(Waiting { place, thread, bytes, .. }) = self.waiting.pop_front() else { break };
            self.reserved.push(Reservation { place, thread, bytes, until: None });
            self.passed_bytes = 0;
            was_admitted = true;
        }
        was_admitted
    }

    /// Whether the caller of a place was admitted. Its reservation lasts for [`KEPT`] from here on.
    fn is_admitted(&mut self, place: Place, now: Instant) -> bool {
        let Some(at) = self.reserved.iter().position(|reserved| reserved.place == place) else {
            return false;
        };
        if let Some(reserved) = self.reserved.get_mut(at) {
            reserved.until = now.checked_add(KEPT);
            if reserved.bytes == 0 {
                // No commit of this caller was refused, so nothing is reserved for it.
                self.reserved.swap_remove(at);
            }
        }
        true
    }

    /// Gives up a place.
    fn leave(&mut self, place: Place) {
        self.waiting.retain(|waiting| waiting.place != place);
        self.reserved.retain(|reserved| reserved.place != place);
        if self.waiting.is_empty() {
            self.passed_bytes = 0;
        }
    }

    fn lapse(&mut self, now: Instant) {
        self.reserved.retain(|reserved| reserved.until.is_none_or(|until| now < until));
    }

    fn reserved_bytes(&self) -> u64 {
        self.reserved.iter().fold(0, |sum, reserved| sum.saturating_add(reserved.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fill of a queue of 100 bytes.
    const fn filled(bytes: u64) -> Fill {
        Fill { bytes, max_bytes: 100, is_empty: bytes == 0 }
    }

    /// Ids of distinct threads.
    fn threads<const N: usize>() -> [ThreadId; N] {
        [(); N].map(|()| thread::spawn(|| thread::current().id()).join().unwrap())
    }

    #[test]
    fn who_waits_first_is_let_in_first_and_small_ones_pass_for_a_queues_worth() {
        let ([large, small, next], now) = (threads(), Instant::now());
        let mut admission = AdmissionQueue::default();
        assert!(admission.admit(small, 40, filled(0), now) && admission.is_idle());
        assert!(!admission.admit(large, 90, filled(40), now));
        let first = admission.wait(large, filled(40));
        assert!(!admission.admit(next, 70, filled(40), now));
        let second = admission.wait(next, filled(40));
        let passed = (0..100).take_while(|_| admission.admit(small, 10, filled(40), now)).count();
        assert_eq!(passed, 10, "a queue's worth");
        assert!(!admission.admit_waiting(filled(20), now), "90 do not fit, and nobody goes before them");
        assert!(admission.admit_waiting(filled(10), now));
        assert_eq!((admission.is_admitted(first, now), admission.is_admitted(second, now)), (true, false));
        // Another thread cannot use reserved room, even if the queue is empty.
        assert!(!admission.admit(small, 20, filled(0), now));
        assert!(admission.admit(small, 10, filled(0), now));
        assert!(
            admission.admit(large, 90, filled(20), now),
            "what was promised is there, whatever came since"
        );
        assert!(!admission.admit_waiting(filled(40), now));
        assert!(admission.admit_waiting(filled(30), now) && admission.is_admitted(second, now));
        assert!(admission.admit(next, 70, filled(30), now));
        assert!(admission.admit(small, 10, filled(30), now) && admission.is_idle());
    }

    #[test]
    fn what_is_larger_than_the_queue_is_let_in_alone() {
        let ([large, small], now) = (threads(), Instant::now());
        let mut admission = AdmissionQueue::default();
        assert!(!admission.admit(large, 1000, filled(1), now));
        let place = admission.wait(large, filled(1));
        assert!(!admission.admit_waiting(filled(1), now));
        assert!(admission.admit_waiting(filled(0), now) && admission.is_admitted(place, now));
        assert!(!admission.admit(small, 1, filled(0), now), "it has the whole queue");
        assert!(admission.admit(large, 1000, filled(0), now));
        assert!(admission.admit(small, 1, filled(0), now));
    }

    #[test]
    fn room_that_nobody_uses_is_kept_for_a_while_only() {
        let ([large, small], now) = (threads(), Instant::now());
        let mut admission = AdmissionQueue::default();
        assert!(!admission.admit(large, 90, filled(40), now));
        let place = admission.wait(large, filled(40));
        assert!(admission.admit_waiting(filled(0), now));
        assert!(!admission.admit(small, 20, filled(0), now + 9 * KEPT), "its thread has not woken yet");
        assert!(admission.is_admitted(place, now));
        assert!(!admission.admit(small, 20, filled(0), now + KEPT / 2));
        assert!(admission.admit(small, 20, filled(0), now + KEPT));
        assert!(!admission.admit(large, 90, filled(20), now + KEPT), "it must wait again");
        // A caller that was refused nothing gets no reservation.
        let place = admission.wait(small, filled(40));
        assert!(admission.admit_waiting(filled(40), now) && admission.is_admitted(place, now));
        assert!(admission.admit(small, 60, filled(40), now));
    }

    #[test]
    fn refusals_of_threads_that_never_come_back_are_forgotten() {
        let now = Instant::now();
        let mut admission = AdmissionQueue::default();
        for _ in 0..=REMEMBERED_REFUSALS {
            let [gone] = threads();
            assert!(!admission.admit(gone, 90, filled(40), now));
        }
        assert_eq!(admission.refused.len(), REMEMBERED_REFUSALS);
    }
}
