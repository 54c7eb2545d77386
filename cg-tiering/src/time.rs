//! Game time: simulated ticks, counted by the host. Wall time is never used.

use std::fmt;

/// A moment in game time, in simulated ticks since the world began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GameTick(u64);

impl GameTick {
    /// Ticks in a second of game time, for the defaults that are given in minutes.
    pub const PER_SECOND: u64 = 20;

    /// The moment after this many ticks.
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since the world began.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Ticks from an earlier moment to this one; 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for GameTick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GameTick({})", self.0)
    }
}

/// A clock that the host advances. It goes back only if it is [set](Self::set).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GameClock {
    now: GameTick,
    clamped: u64,
}

impl GameClock {
    /// Creates a clock at a moment.
    pub const fn new(now: GameTick) -> Self {
        Self { now, clamped: 0 }
    }

    /// Advances the clock. A moment before the present one is replaced by the present one, and counted.
    pub fn advance(&mut self, to: GameTick) -> GameTick {
        if to < self.now {
            self.clamped += 1;
        } else {
            self.now = to;
        }
        self.now
    }

    /// Sets the clock to any moment, even an earlier one.
    pub const fn set(&mut self, to: GameTick) {
        self.now = to;
    }

    /// The present moment.
    pub const fn now(&self) -> GameTick {
        self.now
    }

    /// How often the host tried to set the clock back.
    pub const fn clamped(&self) -> u64 {
        self.clamped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back_and_counts_the_tries() {
        let mut clock = GameClock::new(GameTick::new(5));
        assert_eq!(clock.advance(GameTick::new(9)), GameTick::new(9));
        assert_eq!(clock.advance(GameTick::new(3)), GameTick::new(9));
        assert_eq!((clock.now(), clock.clamped()), (GameTick::new(9), 1));
        clock.set(GameTick::new(2));
        assert_eq!((clock.now(), clock.clamped()), (GameTick::new(2), 1));
        assert_eq!(GameTick::new(3).since(GameTick::new(9)), 0);
    }
}
