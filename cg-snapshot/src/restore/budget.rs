//! How much of a tick the queue may use.

use std::time::Duration;

/// What [`RestoreQueue::run`](crate::RestoreQueue::run) may do in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBudget {
    /// The time. Default 30 ms, which is 60 % of a tick of 50 ms.
    pub time: Duration,
    /// Sections that are captured, restored, lit again, or brought to the host's ids. Default: as many as the time allows.
    pub sections: usize,
    /// Chunks for which a ticket is held at once. Default 64.
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

/// What a section is expected to take: the longest of late, which is slowly forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected(Duration);

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
            || (self.done < self.budget.sections && spent + expected.0 <= self.budget.time)
    }

    /// Counts a section, and learns what sections take.
    pub(crate) fn count(&mut self, expected: &mut Expected) {
        let now = (self.now)();
        let took = now.saturating_sub(self.last);
        expected.0 = took.max(expected.0 * 7 / 8);
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
    fn a_tick_of_50_ms_leaves_30() {
        assert_eq!(TickBudget::of_tick(Duration::from_millis(50)), TickBudget::default());
    }
}
