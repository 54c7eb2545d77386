//! Waits until the machine is quiet, for as long as that is worth it.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// How long the machine is watched.
const WATCH: Duration = Duration::from_millis(100);
/// The share of all processors that others may use.
const BUSY: f64 = 0.15;

/// Counts of the waits for other work on the machine to end.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Quiet {
    /// Waits that ended with a quiet machine.
    pub(crate) calm: u64,
    /// Waits that ended because the patience was over: what was measured next was disturbed.
    pub(crate) disturbed: u64,
    /// How long was waited.
    pub(crate) waited: Duration,
}

impl Quiet {
    /// Waits until others use little of the machine, all waits together at most `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let busy = busy()?;
            self.waited += begun.elapsed().min(WATCH);
            if busy <= BUSY {
                self.calm += 1;
                return Ok(());
            }
            if self.waited >= patience {
                self.disturbed += 1;
                return Ok(());
            }
        }
    }

    /// A sentence for the report.
    pub(crate) fn sentence(&self) -> String {
        let Self { calm, disturbed, waited } = self;
        let all = calm + disturbed;
        if *disturbed == 0 {
            return format!(
                "before each workload of each round, {all} times, the machine was quiet; waited {waited:.0?} for that"
            );
        }
        format!(
            "!!! DISTURBED: before {disturbed} of {all} workloads, over all rounds, others used more than {:.0} % of the processors; waited {waited:.0?}",
            100.0 * BUSY
        )
    }
}

/// The share of the processors that was used while this thread slept.
fn busy() -> Result<f64, Failure> {
    let before = times()?;
    thread::sleep(WATCH);
    let after = times()?;
    let (idle, all) = (after.0 - before.0, after.1 - before.1);
    Ok(if all == 0 { 0.0 } else { 1.0 - idle as f64 / all as f64 })
}

/// The time of all processors: idle, and all of it.
fn times() -> Result<(u64, u64), Failure> {
    let text = fs::read_to_string("/proc/stat")?;
    parse(text.lines().next().unwrap_or_default())
}

fn parse(line: &str) -> Result<(u64, u64), Failure> {
    let fields = line.strip_prefix("cpu ").ok_or("the system does not say how busy it is")?;
    let times: Vec<u64> = fields.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    // User, nice, system, idle, wait for disks, and others.
    let idle = times.iter().skip(3).take(2).sum();
    Ok((idle, times.iter().take(8).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waits_for_disks_are_not_busy() {
        let line = "cpu  10 1 20 400 50 0 5 0 0 0";
        assert_eq!(parse(line).expect("a line of the system"), (450, 486));
        let error = parse("intr 1 2").expect_err("another line").to_string();
        assert_eq!(error, "the system does not say how busy it is");
    }

    #[test]
    fn what_was_disturbed_is_said_first() {
        let calm = Quiet { calm: 3, disturbed: 0, waited: Duration::ZERO };
        assert_eq!(
            calm.sentence(),
            "before each workload of each round, 3 times, the machine was quiet; waited 0ns for that"
        );
        let sentence = Quiet { disturbed: 2, ..calm }.sentence();
        assert_eq!(
            sentence,
            "!!! DISTURBED: before 2 of 5 workloads, over all rounds, others used more than 15 % of the processors; waited 0ns"
        );
    }
}
