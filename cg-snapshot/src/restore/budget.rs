//! The share of a tick that the queue may use.

use std::time::Duration;

/// The limits of [`RestoreQueue::run`](crate::RestoreQueue::run) in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBudget {
    /// The time. Default 30 ms, which is 60 % of a tick of 50 ms.
    pub time: Duration,
    /// Sections that are captured, copied, restored, relit or converted to the host's ids. Default: as many as the time allows.
    pub sections: usize,
    /// The maximum number of chunks with a ticket. Default 64. One operation may hold all of them. When another
    /// operation needs tickets, one that waits for a chunk releases those above an equal share.
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

/// The time that is used in one tick. The caller provides the clock.
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

/// The expected time of a section: the longest of this tick and the last one. A tick has time for thousands of
/// sections. If a long one were forgotten within the tick, the next such section could exceed the budget.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    this_tick: Duration,
    last_tick: Duration,
}

impl Expected {
    /// Begins the next tick.
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

    /// Whether another section may begin. The first always may, unless an operation ended, so that the queue makes
    /// progress.
    pub(crate) fn allows(&self, expected: Expected) -> bool {
        let spent = self.last.saturating_sub(self.began);
        (self.done == 0 && !self.has_ended)
            || (self.done < self.budget.sections && spent + expected.time() <= self.budget.time)
    }

    /// Counts a section and measures it.
    pub(crate) fn count(&mut self, expected: &mut Expected) {
        let now = (self.now)();
        let took = now.saturating_sub(self.last);
        expected.this_tick = expected.this_tick.max(took);
        self.last = now;
        self.done += 1;
    }

    /// An operation ended. That may have taken time without a section.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
        self.look();
    }

    /// Reads the clock without counting a section: other work belongs to the tick too.
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
        // The first section takes 5 ms, the others 1 ms. The next tick still expects 5 ms.
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
