//! The table: what was measured, and its bound.

use std::fmt::Write as _;
use std::time::Duration;

use crate::sample::Sample;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    Time(Duration),
    /// A rate and its unit.
    Rate(f64, &'static str),
}

/// A bound, and how it is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) figure: Figure,
    pub(crate) text: String,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) delay: Duration,
    pub(crate) figure: Figure,
    /// The shortest of all times: what a busy machine adds is not in it.
    pub(crate) best: Option<Duration>,
    pub(crate) p99: Option<Duration>,
    pub(crate) calls: Option<u64>,
    pub(crate) trips: Option<u64>,
    pub(crate) bound: Option<Bound>,
}

/// Milliseconds as a time.
pub(crate) fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

impl Bound {
    /// Some round trips and a time, whose parts are named.
    pub(crate) fn trips(delay: Duration, trips: u32, and: &[(&str, Duration)]) -> Self {
        let mut text = if trips == 0 { String::new() } else { format!("{trips} RTT") };
        let mut time = delay * trips;
        for (what, part) in and {
            time += *part;
            let plus = if text.is_empty() { "" } else { " + " };
            let _ = if what.is_empty() {
                write!(text, "{plus}{}", Figure::Time(*part).text())
            } else {
                write!(text, "{plus}{what} {}", Figure::Time(*part).text())
            };
        }
        Self { figure: Figure::Time(time), text }
    }

    /// A rate that is reached.
    pub(crate) fn rate(least: f64, unit: &'static str) -> Self {
        let figure = Figure::Rate(least, unit);
        Self { text: String::new(), figure }
    }
}

impl Row {
    /// The median of a sample.
    pub(crate) fn of(what: &str, delay: Duration, sample: &mut Sample, bound: Option<Bound>) -> Self {
        let figure = Figure::Time(sample.time(50.0));
        let (best, p99) = (Some(sample.time(0.0)), Some(sample.time(99.0)));
        let (calls, trips) = (sample.calls(), sample.trips());
        Self { what: what.to_owned(), delay, figure, best, p99, calls, trips, bound }
    }

    /// A rate.
    pub(crate) fn rate(
        what: &str,
        delay: Duration,
        rate: f64,
        unit: &'static str,
        least: Option<f64>,
    ) -> Self {
        let bound = least.map(|least| Bound::rate(least, unit));
        let figure = Figure::Rate(rate, unit);
        Self { what: what.to_owned(), delay, figure, best: None, p99: None, calls: None, trips: None, bound }
    }

    /// Whether the bound is not reached.
    pub(crate) fn is_over(&self) -> bool {
        self.ratio().is_some_and(|ratio| match self.figure {
            Figure::Time(_) => ratio > 1.0,
            Figure::Rate(..) => ratio < 1.0,
        })
    }

    /// The figure divided by its bound.
    fn ratio(&self) -> Option<f64> {
        let bound = self.bound.as_ref()?;
        Some(self.figure.value() / bound.figure.value())
    }
}

impl Figure {
    fn value(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Rate(rate, _) => rate,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Time(time) if time >= Duration::from_millis(100) => format!("{:.0} ms", self.value() * 1e3),
            Self::Time(time) if time >= Duration::from_millis(1) => format!("{:.1} ms", self.value() * 1e3),
            Self::Time(_) => format!("{:.0} µs", self.value() * 1e6),
            Self::Rate(rate, unit) if rate >= 100.0 => format!("{rate:.0} {unit}"),
            Self::Rate(rate, unit) => format!("{rate:.1} {unit}"),
        }
    }
}

/// The table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table =
        "| what | delay | p50 or rate | best | p99 | calls | round trips | bound | ratio | |\n".to_owned();
    table.push_str("|---|--:|--:|--:|--:|--:|--:|---|--:|---|\n");
    let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    for row in rows {
        let bound = row.bound.as_ref().map_or_else(String::new, |bound| {
            let sign = if matches!(bound.figure, Figure::Time(_)) { '≤' } else { '≥' };
            let value = bound.figure.text();
            let is_made = !bound.text.is_empty() && bound.text != value;
            let made = if is_made { format!(" ({})", bound.text) } else { String::new() };
            format!("{sign} {value}{made}")
        });
        let ratio = row.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let verdict = match (&row.bound, row.is_over()) {
            (None, _) => "",
            (_, true) => "over",
            (_, false) => "ok",
        };
        let time = |time: Option<Duration>| time.map_or_else(String::new, |time| Figure::Time(time).text());
        let _ = writeln!(
            table,
            "| {} | {} ms | {} | {} | {} | {} | {} | {bound} | {ratio} | {verdict} |",
            row.what,
            row.delay.as_secs_f64() * 1e3,
            row.figure.text(),
            time(row.best),
            time(row.p99),
            count(row.calls),
            count(row.trips)
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_at_most_its_bound_and_a_rate_at_least() {
        let delay = ms(0.25);
        let mut sample = Sample::default();
        sample.add(ms(2.5));
        let bound = |trips| Bound::trips(delay, trips, &[("", ms(1.0)), ("fdatasync", ms(0.5))]);
        let rows = [
            Row::of("in time", delay, &mut sample, Some(bound(4))),
            Row::of("late", delay, &mut sample, Some(bound(3))),
            Row::rate("fast", delay, 2000.0, "/s", Some(2000.0)),
            Row::rate("slow", delay, 68.0, "/s", Some(2000.0)),
            Row::rate("unbound", delay, 68.0, "/s", None),
        ];
        let expected = "\
| what | delay | p50 or rate | best | p99 | calls | round trips | bound | ratio | |
|---|--:|--:|--:|--:|--:|--:|---|--:|---|
| in time | 0.25 ms | 2.5 ms | 2.5 ms | 2.5 ms |  |  | ≤ 2.5 ms (4 RTT + 1.0 ms + fdatasync 500 µs) | 1.00 | ok |
| late | 0.25 ms | 2.5 ms | 2.5 ms | 2.5 ms |  |  | ≤ 2.2 ms (3 RTT + 1.0 ms + fdatasync 500 µs) | 1.11 | over |
| fast | 0.25 ms | 2000 /s |  |  |  |  | ≥ 2000 /s | 1.00 | ok |
| slow | 0.25 ms | 68.0 /s |  |  |  |  | ≥ 2000 /s | 0.03 | over |
| unbound | 0.25 ms | 68.0 /s |  |  |  |  |  |  |  |
";
        assert_eq!(table(&rows), expected);
        assert_eq!(rows.map(|row| row.is_over()), [false, true, false, true, false]);
    }
}
