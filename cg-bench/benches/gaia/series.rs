//! Durations of single operations over some runs, and their line of a table.

use std::time::Duration;

use cg_bench::order::percentile;

/// The columns of the table.
pub(super) const HEADING: &str = "\
| operation on a column | min | average | median | 95th | max | a run | blocks/s | ratio | to, median |
|---|--:|--:|--:|--:|--:|--:|--:|--:|---|";

/// The durations of each run.
#[derive(Debug, Default)]
pub(super) struct Series {
    runs: Vec<Vec<Duration>>,
}

impl Series {
    /// The durations of all operations.
    fn all(&self) -> Vec<Duration> {
        self.runs.iter().flatten().copied().collect()
    }

    /// What the operations of each run took together.
    fn totals(&self) -> Vec<Duration> {
        self.runs.iter().map(|run| run.iter().sum()).collect()
    }
}

/// Runs both this often in turns; another one begins each time.
pub(super) fn in_turns(
    runs: usize,
    mut ours: impl FnMut() -> Vec<Duration>,
    mut reference: impl FnMut() -> Vec<Duration>,
) -> [Series; 2] {
    let mut series = [Series::default(), Series::default()];
    for run in 0..runs {
        for turn in [run % 2, (run + 1) % 2] {
            let took = if turn == 0 { ours() } else { reference() };
            series[turn].runs.push(took);
        }
    }
    series
}

/// The line of an operation, with the median of the ratios of each run to the run of a reference beside it.
pub(super) fn row(what: &str, series: &Series, (to, reference): (&str, &Series), blocks: u64) -> String {
    let mut all = series.all();
    let average = all.iter().sum::<Duration>() / all.len().max(1) as u32;
    let [min, median, most, max] = [0.0, 50.0, 95.0, 100.0].map(|percent| percentile(&mut all, percent));
    let times = [min, average, median, most, max].map(|time| format!(" {} |", ms(time))).concat();
    let mut totals = series.totals();
    let pairs = totals.iter().zip(reference.totals());
    let mut ratios: Vec<u64> =
        pairs.map(|(ours, theirs)| (1e6 * ours.div_duration_f64(theirs)) as u64).collect();
    let ratio = percentile(&mut ratios, 50.0) as f64 / 1e6;
    let beside = ms(percentile(&mut reference.all(), 50.0));
    let [least, total, largest] = [0.0, 50.0, 100.0].map(|percent| percentile(&mut totals, percent));
    let [least, largest] = [least, largest].map(ms);
    let rate = blocks as f64 / total.as_secs_f64() / 1e6;
    format!("| {what} |{times} {least}–{largest} | {rate:.0} M | {ratio:.2} | {to}, {beside} |")
}

/// Milliseconds to three digits.
fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    let digits = match ms {
        ms if ms >= 100.0 => 0,
        ms if ms >= 10.0 => 1,
        ms if ms >= 1.0 => 2,
        ms if ms >= 0.1 => 3,
        _ => 4,
    };
    format!("{ms:.digits$}")
}
