//! Times calls, and counts what the process wrote, read and used meanwhile.
//!
//! Clocks of processors are read before and after what is timed, so they take no part in it.

use std::path::Path;
use std::time::{Duration, Instant};

use cg_bench::process::{
    Transfer, disk_bytes, forget_peak, peak_bytes, processor_time, resident_bytes, sleeps, thread_time,
};
use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::figures::{Effort, Figures, Latency};

/// How many times as long as what is timed all of it may take, with opening and closing beside it.
const PATIENCE: u32 = 8;
/// Three digits of every latency.
const DIGITS: u8 = 3;

/// A measurement that has begun.
#[derive(Debug)]
pub(crate) struct Meter {
    before: Counted,
    /// When the first call began.
    begun: Option<Instant>,
    resident_bytes: u64,
    calls: Histogram<u64>,
    spent: Duration,
    /// Processor time of all threads meanwhile, and of this one.
    processor: Duration,
    own: Duration,
    units: u64,
    saved_bytes: u64,
}

/// Counts of the system for the process, and for the thread that calls.
#[derive(Debug, Clone, Copy)]
struct Counted {
    transfer: Transfer,
    sleeps: u64,
}

impl Counted {
    fn so_far() -> Result<Self, Failure> {
        Ok(Self { transfer: Transfer::so_far()?, sleeps: sleeps()? })
    }

    fn since(self, before: Self) -> Self {
        Self { transfer: self.transfer.since(before.transfer), sleeps: self.sleeps - before.sleeps }
    }
}

impl Meter {
    /// Begins to count; to be called before the store is opened, so that all its memory counts.
    pub(crate) fn begin() -> Result<Self, Failure> {
        forget_peak()?;
        Ok(Self {
            before: Counted::so_far()?,
            begun: None,
            resident_bytes: resident_bytes()?,
            calls: Histogram::new(DIGITS)?,
            spent: Duration::ZERO,
            processor: Duration::ZERO,
            own: Duration::ZERO,
            units: 0,
            saved_bytes: 0,
        })
    }

    /// Does what is not measured: what is written, read and slept meanwhile does not count, but its memory does.
    pub(crate) fn apart<T>(&mut self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let begun = Counted::so_far()?;
        let result = work()?;
        let apart = Counted::so_far()?.since(begun);
        self.before.transfer = self.before.transfer.and(apart.transfer);
        self.before.sleeps += apart.sleeps;
        Ok(result)
    }

    /// Times a call of one unit.
    pub(crate) fn call<T>(&mut self, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let before = self.spent;
        let result = self.work(1, call)?;
        self.calls.record(self.spent.saturating_sub(before).as_nanos() as u64)?;
        Ok(result)
    }

    /// Times work of this many units that are too short to be timed one by one; none for work that ends others.
    pub(crate) fn work<T>(
        &mut self,
        units: u64,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (processor, own) = (processor_time(), thread_time());
        let begun = Instant::now();
        self.begun.get_or_insert(begun);
        let result = work()?;
        self.spent += begun.elapsed();
        self.own += thread_time().saturating_sub(own);
        self.processor += processor_time().saturating_sub(processor);
        self.units += units;
        Ok(result)
    }

    /// Counts what was to be stored, where that is whole chunks.
    pub(crate) fn saved(&mut self, bytes: u64) {
        self.saved_bytes += bytes;
    }

    /// The time that was measured until now.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Whether repetitions have gone on for long enough, or take too long beside what is timed.
    pub(crate) fn is_enough(&self, enough: Duration) -> bool {
        self.spent > enough || self.begun.is_some_and(|begun| begun.elapsed() > enough * PATIENCE)
    }

    /// Ends; the figures are those of a store in `dir`. What is compared and held is left to the caller.
    pub(crate) fn end(self, dir: &Path) -> Result<Figures, Failure> {
        if self.units == 0 {
            return Err("nothing was measured".into());
        }
        let Counted { transfer, sleeps } = Counted::so_far()?.since(self.before);
        let each = |time: Duration| time.as_nanos() as f64 / self.units as f64;
        let at = |quantile| self.calls.value_at_quantile(quantile);
        let latency = (!self.calls.is_empty()).then(|| Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.calls.max(),
        });
        Ok(Figures {
            value: each(self.spent),
            units: self.units,
            latency,
            written_bytes: transfer.written_bytes,
            saved_bytes: self.saved_bytes,
            disk_bytes: disk_bytes(dir)?,
            held_bytes: None,
            peak_bytes: peak_bytes()?.saturating_sub(self.resident_bytes),
            compared_columns: 0,
            effort: Some(Effort {
                processor_ns: each(self.processor),
                waited_ns: Some(each(self.spent.saturating_sub(self.own))),
                sleeps: Some(sleeps),
                read_bytes: transfer.read_bytes,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::hint::black_box;
    use std::io::{Read as _, Write as _};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_millis(20);

    fn effort(work: impl FnOnce(&mut Meter)) -> (Figures, Effort) {
        let dir = tempfile::tempdir().expect("a folder");
        let mut meter = Meter::begin().expect("the system counts");
        work(&mut meter);
        let figures = meter.end(dir.path()).expect("it was measured");
        let effort = figures.effort.expect("it is counted");
        (figures, effort)
    }

    #[allow(clippy::unnecessary_wraps, reason = "a meter times what can fail")]
    fn sleep(time: Duration) -> Result<(), Failure> {
        thread::sleep(time);
        Ok(())
    }

    /// Uses this much of a processor, however much others use.
    fn spin() {
        let begun = thread_time();
        while thread_time().saturating_sub(begun) < LONG {
            black_box(());
        }
    }

    #[test]
    fn sleep_is_waiting_and_work_is_processor_time() {
        let long = LONG.as_nanos() as f64;
        let (_, slept) = effort(|meter| {
            meter.call(|| sleep(LONG)).expect("it sleeps");
        });
        assert!(slept.waited_ns.is_some_and(|waited| waited > 0.9 * long), "{slept:?}");
        assert!(slept.sleeps.is_some_and(|sleeps| sleeps > 0), "{slept:?}");
        let (_, worked) = effort(|meter| {
            let work = || {
                spin();
                Ok(())
            };
            meter.work(2, work).expect("it works");
        });
        assert!(worked.processor_ns >= long / 2.0, "two units share it: {worked:?}");
    }

    #[test]
    fn threads_that_have_ended_count() {
        let (_, worked) = effort(|meter| {
            meter.call(|| thread::spawn(spin).join().map_err(|_| "it panicked".into())).expect("it ends");
        });
        let long = LONG.as_nanos() as f64;
        assert!(worked.processor_ns >= long, "{worked:?}");
        assert!(
            worked.waited_ns.is_some_and(|waited| waited > 0.9 * long),
            "the caller did nothing: {worked:?}"
        );
    }

    #[test]
    fn repetitions_end_where_most_of_the_time_is_spent_beside_them() {
        const ENOUGH: Duration = Duration::from_millis(2);
        effort(|meter| {
            meter.apart(|| sleep(ENOUGH * 2 * PATIENCE)).expect("it sleeps");
            assert!(!meter.is_enough(ENOUGH), "nothing was timed yet");
            meter.call(|| Ok(())).expect("it does nothing");
            meter.apart(|| sleep(ENOUGH * 2 * PATIENCE)).expect("it sleeps");
            assert!(meter.is_enough(ENOUGH), "{:?} were timed", meter.spent());
        });
        effort(|meter| {
            meter.call(|| sleep(ENOUGH * 2)).expect("it sleeps");
            assert!(meter.is_enough(ENOUGH));
            assert!(!meter.is_enough(Duration::from_secs(60)));
        });
    }

    #[test]
    fn what_is_done_apart_does_not_count() {
        // So much that nothing which other tests of this process do comes near; the devices take no time.
        const TIMES: usize = 32;
        let mut bytes = vec![0; 32 << 20];
        let all = (TIMES * bytes.len()) as u64;
        let write = || (0..TIMES).try_for_each(|_| Ok(File::create("/dev/null")?.write_all(&bytes)?));
        let (written, _) = effort(|meter| {
            meter.apart(write).expect("written");
            meter.call(write).expect("written");
        });
        assert!((all..2 * all).contains(&written.written_bytes), "{written:?}");
        let mut read = || (0..TIMES).try_for_each(|_| Ok(File::open("/dev/zero")?.read_exact(&mut bytes)?));
        let (_, counted) = effort(|meter| {
            meter.apart(&mut read).expect("read");
            meter.call(&mut read).expect("read");
        });
        assert!((all..2 * all).contains(&counted.read_bytes), "{counted:?}");
    }
}
