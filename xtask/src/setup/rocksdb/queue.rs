//! The units that wait and those that are compiled: which comes next, and what follows from how one ended.

use std::collections::BTreeMap;

use super::unit::{PEAK_BYTES, Unit};
use super::verdict::Verdict;

/// How many units are compiled at once on this many cores with this much memory to take.
pub(super) fn at_once(cores: usize, available_bytes: Option<u64>) -> usize {
    let by_memory = available_bytes.map_or(usize::MAX, |bytes| (bytes / PEAK_BYTES) as usize);
    cores.min(by_memory).max(1)
}

/// A unit that is being compiled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    id: usize,
    pub(super) unit: Unit,
}

/// The consequence of the end of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The unit's object is there.
    Compiled,
    /// Its files wait to be compiled one by one.
    Split,
    /// It waits again, and fewer are compiled at once from now on.
    Again { at_once: usize },
    /// It was killed although nothing else was being compiled.
    TooLarge,
    /// Another try would end in the same way.
    Failed(Verdict),
}

/// Every unit that is not compiled yet.
#[derive(Debug)]
pub(super) struct Queue {
    /// The longest last.
    waiting: Vec<Unit>,
    /// How many were running at once, at most, since each began.
    running: BTreeMap<usize, usize>,
    at_once: usize,
    turns: usize,
}

impl Queue {
    pub(super) fn new(units: Vec<Unit>, at_once: usize) -> Self {
        let mut queue = Self { waiting: Vec::new(), running: BTreeMap::new(), at_once, turns: 0 };
        queue.wait(units);
        queue
    }

    /// The longest unit, if one more may run. `None` with nothing running means that all is compiled.
    pub(super) fn start(&mut self) -> Option<Turn> {
        if self.running.len() >= self.at_once {
            return None;
        }
        let unit = self.waiting.pop()?;
        let id = self.turns;
        self.turns += 1;
        self.running.insert(id, 0);
        let count = self.running.len();
        for most in self.running.values_mut() {
            *most = count.max(*most);
        }
        Some(Turn { id, unit })
    }

    pub(super) fn end(&mut self, turn: Turn, verdict: Verdict) -> Next {
        let most = self.running.remove(&turn.id).unwrap_or_default();
        match verdict {
            Verdict::Compiled => Next::Compiled,
            Verdict::Rejected if turn.unit.single().is_none() => {
                self.wait(turn.unit.split());
                Next::Split
            }
            Verdict::Killed if most > 1 => {
                self.at_once = self.at_once.min(most / 2).max(1);
                self.wait(vec![turn.unit]);
                Next::Again { at_once: self.at_once }
            }
            Verdict::Killed => Next::TooLarge,
            Verdict::Rejected | Verdict::DiskFull | Verdict::Broken => Next::Failed(verdict),
        }
    }

    fn wait(&mut self, units: Vec<Unit>) {
        self.waiting.extend(units);
        self.waiting.sort_by_key(Unit::size_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::unit::{PEAK_BYTES, Source, Unit};
    use super::super::verdict::Verdict;
    use super::{Next, Queue, Turn, at_once};

    fn unit(sizes: &[usize]) -> Unit {
        let source = |size: &usize| Source { path: format!("{size}.cc"), size_bytes: *size };
        Unit { sources: sizes.iter().map(source).collect() }
    }

    fn start(queue: &mut Queue) -> Turn {
        queue.start().expect("a unit waits and may run")
    }

    /// The sizes of the units that the queue starts, one after the other.
    fn rest(queue: &mut Queue) -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Some(turn) = queue.start() {
            sizes.push(turn.unit.size_bytes());
            assert_eq!(queue.end(turn, Verdict::Compiled), Next::Compiled);
        }
        sizes
    }

    #[test]
    fn as_many_run_as_cores_and_memory_allow() {
        assert_eq!(at_once(2, Some(24_000_000_000)), 2);
        assert_eq!(at_once(64, Some(4 * PEAK_BYTES + 1)), 4);
        assert_eq!(at_once(8, Some(1)), 1);
        assert_eq!(at_once(8, None), 8);
    }

    #[test]
    fn the_longest_starts_first_and_no_more_than_allowed() {
        let mut queue = Queue::new(vec![unit(&[1, 4]), unit(&[9]), unit(&[7])], 2);
        let (first, second) = (start(&mut queue), start(&mut queue));
        assert_eq!((first.unit, second.unit.size_bytes()), (unit(&[9]), 7));
        assert_eq!(queue.start(), None);
        assert_eq!(queue.end(second, Verdict::Compiled), Next::Compiled);
        assert_eq!(rest(&mut queue), [5]);
    }

    #[test]
    fn a_rejected_unit_is_compiled_file_by_file() {
        let mut queue = Queue::new(vec![unit(&[3, 8]), unit(&[5])], 1);
        let turn = start(&mut queue);
        assert_eq!(queue.end(turn, Verdict::Rejected), Next::Split);
        assert_eq!(rest(&mut queue), [8, 5, 3]);
        let mut queue = Queue::new(vec![unit(&[5])], 1);
        let turn = start(&mut queue);
        assert_eq!(queue.end(turn, Verdict::Rejected), Next::Failed(Verdict::Rejected));
    }

    #[test]
    fn after_a_kill_fewer_run_at_once_and_nothing_is_split() {
        let mut queue = Queue::new(vec![unit(&[1]), unit(&[2]), unit(&[3, 3]), unit(&[9])], 4);
        let [first, second, third, _fourth] = [(); 4].map(|()| start(&mut queue));
        assert_eq!(queue.end(second, Verdict::Killed), Next::Again { at_once: 2 });
        assert_eq!(queue.start(), None, "three still run");
        assert_eq!(queue.end(third, Verdict::Killed), Next::Again { at_once: 2 });
        assert_eq!(queue.end(first, Verdict::Compiled), Next::Compiled);
        assert_eq!(rest(&mut queue), [6, 2], "beside the fourth");
    }

    #[test]
    fn two_that_are_killed_together_are_both_tried_again() {
        let mut queue = Queue::new(vec![unit(&[1]), unit(&[2])], 2);
        let (first, second) = (start(&mut queue), start(&mut queue));
        assert_eq!(queue.end(first, Verdict::Killed), Next::Again { at_once: 1 });
        assert_eq!(queue.end(second, Verdict::Killed), Next::Again { at_once: 1 });
        let alone = start(&mut queue);
        assert_eq!(queue.start(), None);
        assert_eq!(queue.end(alone, Verdict::Killed), Next::TooLarge);
    }

    #[test]
    fn what_would_end_in_the_same_way_is_not_tried_again() {
        for verdict in [Verdict::DiskFull, Verdict::Broken] {
            let mut queue = Queue::new(vec![unit(&[1, 1]), unit(&[2])], 2);
            let (first, _second) = (start(&mut queue), start(&mut queue));
            assert_eq!(queue.end(first, verdict), Next::Failed(verdict));
        }
    }
}
