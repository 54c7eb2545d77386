//! Which decisions are applied: for which players, for which time, and until which deadline.

use std::time::{Duration, Instant};

use cg_format::Tier;
use cg_tiering::{CubeAt, Decision, GameTick, Observation, Observers, Step};

/// With less time than this a tick does not wait for another thread: a busy system may wake it milliseconds too late.
const WORTH_WAITING: Duration = Duration::from_millis(20);

/// Which decisions are applied, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: GameTick,
    who: Who,
    /// When to stop; `None`: when all is done.
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Players, holds and pins as they are.
    AsSeen,
    /// As if there were no players and no holds. Pins apply.
    Nobody,
}

impl Due {
    /// What is due at a tick with the current players, until a deadline.
    pub(crate) const fn until(at: GameTick, deadline: Option<Instant>) -> Self {
        Self { at, who: Who::AsSeen, deadline }
    }

    /// The same, with a part of the remaining time.
    pub(crate) fn for_part(self, one_of: u32) -> Self {
        let now = Instant::now();
        let deadline = self.deadline.map(|deadline| now + deadline.saturating_duration_since(now) / one_of);
        Self { deadline, ..self }
    }

    /// What will be due at a tick if no player comes until then.
    pub(crate) const fn when_nobody_comes(at: GameTick) -> Self {
        Self { at, who: Who::Nobody, deadline: None }
    }

    /// The tick whose decisions are applied.
    pub(crate) const fn at(&self) -> GameTick {
        self.at
    }

    /// Whether this makes the world smaller: without players, chunks are only demoted.
    pub(super) fn shrinks(&self) -> bool {
        self.who == Who::Nobody
    }

    /// Whether there is a deadline.
    pub(super) const fn has_end(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// How long to wait for another thread: not at all if little time is left. `None`: until it is done.
    pub(crate) fn time_to_wait(&self) -> Option<Duration> {
        let left = self.deadline?.saturating_duration_since(Instant::now());
        Some(if left >= WORTH_WAITING { left } else { Duration::ZERO })
    }

    /// Whether there is enough time to wait for another thread.
    pub(super) fn waits(&self) -> bool {
        self.time_to_wait() != Some(Duration::ZERO)
    }

    /// Where the chunks of a cube that are in a tier are to be moved, if they are.
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
