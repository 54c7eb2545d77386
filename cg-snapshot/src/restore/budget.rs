//! How much of a tick the queue may use.

use std::time::Duration;

/// What [`RestoreQueue::run`](crate::RestoreQueue::run) may do in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBudget {
    /// The time. Default 30 ms, which is 60 % of a tick of 50 ms.
    pub time: Duration,
    /// Sections that are captured, restored, lit again, or brought to the host's ids. Default: as many as the time allows.
    pub sections: usize,
    /// Chunks for which a ticket is held at once. Default 64. One operation may hold all; one that waits for a chunk gives
    /// back what is more than an equal part when another needs some.
    pub concurrent_chunks: usize,
}

impl Default for TickBudget {
    fn default() -> Self {
        Self { time: Duration::from_millis(30), sections: usize::MAX, concurrent_chunks: 64 }
    }
}

impl TickBudget {
    /// 60 % of a tick of this length, and the other defaults.
    pub fn of_tick(tick: Duration) -> Self {
        Self { time: tick * 3 / 5, ..Self::default() }
    }
}

/// The time of one tick as it is used up. The clock is the caller's.
#[derive(Debug)]
pub(crate) struct Spending<C> {
    now: C,
    began: Duration,
    last: Duration,
    done: usize,
    /// An operation has ended.
    has_ended: bool,
    budget: TickBudget,
}

/// What a section is expected to take: the longest of this tick and the one before. A tick has room for thousands, so
/// what is forgotten within one comes again as its last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    this_tick: Duration,
    last_tick: Duration,
}

impl Expected {
    /// Another tick begins.
    pub(crate) fn turn(&mut self) {
        *self = Self { this_tick: Duration::ZERO, last_tick: self.this_tick };
    }

    fn time(self) -> Duration {
        self.this_tick.max(self.last_tick)
    }
}

impl<C: FnMut() -> Duration> Spending<C> {
    pub(crate) fn begin(budget: TickBudget, mut now: C) -> Self {
        let began = now();
        Self { now, began, last: began, done: 0, has_ended: false, budget }
    }

    /// Whether another section may begin. The first always may, unless something else was done: a queue must not stand
    /// still.
    pub(crate) fn allows(&self, expected: Expected) -> bool {
        let spent = self.last.saturating_sub(self.began);
        (self.done == 0 && !self.has_ended)
            || (self.done < self.budget.sections && spent + expected.time() <= self.budget.time)
    }

    /// Counts a section, and learns what sections take.
    pub(crate) fn count(&mut self, expected: &mut Expected) {
        let now = (self.now)();
        let took = now.saturating_sub(self.last);
        expected.this_tick = expected.this_tick.max(took);
        self.last = now;
        self.done += 1;
    }

    /// An operation has ended, which may have taken time and done no section.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
        self.look();
    }

    /// Looks at the clock without counting: what was done beside sections belongs to the tick too.
    pub(crate) fn look(&mut self) {
        self.last = (self.now)();
    }

    pub(crate) const fn done(&self) -> usize {
        self.done
    }

    pub(crate) fn spent(&self) -> Duration {
        self.last.saturating_sub(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_begins_only_if_its_like_fits() {
        let mut times = [0, 4, 8, 12].into_iter().map(Duration::from_millis);
        let budget = TickBudget { time: Duration::from_millis(15), ..TickBudget::default() };
        let mut spending = Spending::begin(budget, || times.next().expect("looked at four times"));
        let mut expected = Expected::default();
        for done in 0..3 {
            assert!(spending.allows(expected), "after {done}");
            spending.count(&mut expected);
        }
        assert!(!spending.allows(expected), "12 of 15 ms are spent and a section takes 4");
        assert_eq!((spending.done(), spending.spent()), (3, Duration::from_millis(12)));
    }

    #[test]
    fn the_longest_section_is_remembered_until_the_tick_behind_the_next() {
        let budget = TickBudget { time: Duration::from_millis(10), ..TickBudget::default() };
        let mut expected = Expected::default();
        // One section of 5 ms, then such of 1 ms: what fits beside one of 5.
        let mut ticks = [[5, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]].into_iter().map(|takes| {
            expected.turn();
            let mut takes = [0].into_iter().chain(takes).chain(std::iter::repeat(1));
            let mut now = 0;
            let clock = || {
                now += takes.next().unwrap_or_default();
                Duration::from_millis(now)
            };
            let mut spending = Spending::begin(budget, clock);
            while spending.allows(expected) {
                spending.count(&mut expected);
            }
            spending.done()
        });
        assert_eq!([ticks.next(), ticks.next(), ticks.next()], [Some(2), Some(6), Some(10)]);
    }

    #[test]
    fn a_tick_of_50_ms_leaves_30() {
        assert_eq!(TickBudget::of_tick(Duration::from_millis(50)), TickBudget::default());
    }
}
