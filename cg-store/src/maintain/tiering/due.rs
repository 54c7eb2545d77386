//! Whose decisions are applied, for which moment, and until when.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use cg_format::Tier;
use cg_tiering::{CubeAt, Decision, GameTick, Observation, Observers, Step};

/// With less time than this nobody waits for another thread: a busy system wakes who sleeps milliseconds too late.
const WORTH_WAITING: Duration = Duration::from_millis(20);

/// Whose decisions are applied, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: GameTick,
    who: Who,
    /// When to stop; `None` for not before all is done.
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Players, holds and pins as they are.
    AsSeen,
    /// As if nobody were anywhere. Pins hold.
    Nobody,
}

impl Due {
    /// What is due at a tick as things are, worked at until a deadline.
    pub(crate) const fn until(at: GameTick, deadline: Option<Instant>) -> Self {
        Self { at, who: Who::AsSeen, deadline }
    }

    /// The same, worked at for a part of the time that is left.
    pub(crate) fn for_part(self, one_of: u32) -> Self {
        let now = Instant::now();
        let deadline = self.deadline.map(|deadline| now + deadline.saturating_duration_since(now) / one_of);
        Self { deadline, ..self }
    }

    /// What will be due at a tick if nobody comes till then.
    pub(crate) const fn when_nobody_comes(at: GameTick) -> Self {
        Self { at, who: Who::Nobody, deadline: None }
    }

    /// The tick whose decisions are applied.
    pub(crate) const fn at(&self) -> GameTick {
        self.at
    }

    /// Whether it makes the world smaller: without players, chunks are only demoted.
    pub(super) fn shrinks(&self) -> bool {
        self.who == Who::Nobody
    }

    /// Whether there is a deadline at all.
    pub(super) const fn has_end(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether there is time enough to wait for another thread.
    pub(super) fn waits(&self) -> bool {
        self.deadline
            .is_none_or(|deadline| deadline.saturating_duration_since(Instant::now()) >= WORTH_WAITING)
    }

    /// Takes what another thread makes, and waits for it until the deadline if that is far enough away.
    pub(crate) fn receive<T>(&self, receiver: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        match self.deadline {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) if self.waits() => {
                receiver.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
            Some(_) => try_receive(receiver),
        }
    }

    /// Where the chunks of a cube which lie in a tier are to be moved, if they are.
    pub(super) fn decide(
        &self,
        seen: &Observers,
        cube: CubeAt,
        tier: Tier,
    ) -> (Observation, Option<Decision>) {
        let here = seen.observe(cube, tier);
        let here = match self.who {
            Who::AsSeen => here,
            Who::Nobody => Observation { pinned: here.pinned, ..Observation::alone(tier, here.last_access) },
        };
        (here, seen.policy().due(&here, self.at))
    }

    /// Whether a step that was planned some time ago is still right.
    pub(super) fn confirms(&self, seen: &Observers, step: &Step) -> bool {
        self.who == Who::Nobody || seen.confirms(step, self.at)
    }
}

/// Takes what another thread has made, if it has.
pub(crate) fn try_receive<T>(receiver: &Receiver<T>) -> Result<T, RecvTimeoutError> {
    receiver.try_recv().map_err(|error| match error {
        TryRecvError::Empty => RecvTimeoutError::Timeout,
        TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
    })
}
