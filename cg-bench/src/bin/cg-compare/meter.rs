//! Times calls, and counts what the process wrote and used meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use cg_bench::process::{Transfer, disk_bytes, forget_peak, peak_bytes, resident_bytes};
use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::figures::{Figures, Latency};

/// Three digits of every latency.
const DIGITS: u8 = 3;

/// A measurement that has begun.
#[derive(Debug)]
pub(crate) struct Meter {
    before: Transfer,
    resident_bytes: u64,
    calls: Histogram<u64>,
    spent: Duration,
    units: u64,
    saved_bytes: u64,
}

impl Meter {
    /// Begins to count; to be called before the store is opened, so that all its memory counts.
    pub(crate) fn begin() -> Result<Self, Failure> {
        forget_peak()?;
        Ok(Self {
            before: Transfer::so_far()?,
            resident_bytes: resident_bytes()?,
            calls: Histogram::new(DIGITS)?,
            spent: Duration::ZERO,
            units: 0,
            saved_bytes: 0,
        })
    }

    /// Forgets what was written until now: what follows is measured.
    pub(crate) fn forget_writes(&mut self) -> Result<(), Failure> {
        self.before = Transfer::so_far()?;
        Ok(())
    }

    /// Times a call of one unit.
    pub(crate) fn call<T>(&mut self, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let begun = Instant::now();
        let result = call()?;
        let spent = begun.elapsed();
        self.calls.record(spent.as_nanos() as u64)?;
        self.spent += spent;
        self.units += 1;
        Ok(result)
    }

    /// Times work of this many units that are too short to be timed one by one; none for work that ends others.
    pub(crate) fn work<T>(
        &mut self,
        units: u64,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let result = work()?;
        self.spent += begun.elapsed();
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

    /// Ends; the figures are those of a store in `dir`. `compared_columns` is left to the caller.
    pub(crate) fn end(self, dir: &Path) -> Result<Figures, Failure> {
        if self.units == 0 {
            return Err("nothing was measured".into());
        }
        let written_bytes = Transfer::so_far()?.since(self.before).written_bytes;
        let at = |quantile| self.calls.value_at_quantile(quantile);
        let latency = (!self.calls.is_empty()).then(|| Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.calls.max(),
        });
        Ok(Figures {
            value: self.spent.as_nanos() as f64 / self.units as f64,
            units: self.units,
            latency,
            written_bytes,
            saved_bytes: self.saved_bytes,
            disk_bytes: disk_bytes(dir)?,
            peak_bytes: peak_bytes()?.saturating_sub(self.resident_bytes),
            compared_columns: 0,
        })
    }
}
