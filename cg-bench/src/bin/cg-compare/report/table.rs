//! The report on a terminal.

use std::fmt::Write as _;

use super::verdict::{self, Beside, Named};
use super::{Measured, Report, Row, profile};
use crate::figures::Figures;
use crate::workload::Unit;

/// A value in its unit, three digits of it.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    let steps: &[(f64, &str)] = match unit {
        Unit::Nanoseconds => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
        Unit::Bytes => &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")],
    };
    let fits = |(step, _): &&(f64, &str)| value >= *step;
    let (step, name) = steps.iter().rev().find(fits).unwrap_or(&steps[0]);
    format!("{} {name}", three_digits(value / step))
}

/// A number with three digits of it.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        0.01.. => 3,
        1e-9.. => 4,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The whole report for a terminal.
pub(crate) fn text(report: &Report) -> String {
    let mut out = String::new();
    for measured in &report.workloads {
        writeln!(out, "\n{} ({})", measured.title, measured.facts(report.rounds))
            .expect("a string takes all");
        let head = ["÷ best", "median", "spread", "p99", "written", "on disk", "peak memory", "subject"];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        let best = least(measured);
        lines.extend(sorted(measured).into_iter().map(|row| cells(report, measured, row, best)));
        out.push_str(&aligned(&lines));
    }
    out.push_str("\nwhat the machine needs for the bytes of one terrain column:\n");
    out.push_str(&aligned(&limits(report)));
    out.push_str("\nours beside the best of the others:\n");
    out.push_str(&aligned(&verdicts(report)));
    for sentence in verdict::sentences(report) {
        out.push_str(&sentence);
        out.push('\n');
    }
    out.push_str(&profile::text(report));
    out
}

/// The rows with figures, the fastest first; then those without.
fn sorted(measured: &Measured) -> Vec<&Row> {
    let mut rows: Vec<_> = measured.rows.iter().collect();
    let key = |row: &Row| row.summary().map_or(f64::INFINITY, |summed| summed.median);
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    rows
}

fn least(measured: &Measured) -> f64 {
    let medians = measured.rows.iter().filter_map(|row| Some(row.summary()?.median));
    medians.fold(f64::INFINITY, f64::min)
}

fn cells(report: &Report, measured: &Measured, row: &Row, best: f64) -> Vec<String> {
    let Some(summed) = row.summary() else {
        let word = if row.failed() { "FAILED" } else { "not applicable" };
        let why = format!("{}: {word}: {}", report.shown(&row.subject), row.reason().unwrap_or_default());
        return [vec![String::new(); 7], vec![why]].concat();
    };
    let p99 = row.median(|figures| Some(figures.latency?.p99 as f64));
    let bytes = |of: fn(&Figures) -> u64| {
        let count = row.median(|figures| Some(of(figures) as f64)).filter(|count| *count > 0.0);
        count.map_or(String::new(), |count| value(Unit::Bytes, count))
    };
    vec![
        three_digits(summed.median / best),
        value(measured.unit, summed.median),
        format!("± {:.0} %", 100.0 * summed.spread),
        p99.map_or(String::new(), |time| value(Unit::Nanoseconds, time)),
        bytes(|figures| figures.written_bytes),
        bytes(|figures| figures.disk_bytes),
        bytes(|figures| figures.peak_bytes),
        report.shown(&row.subject),
    ]
}

/// A line for each kind of work that every store does with bytes.
pub(crate) fn limits(report: &Report) -> Vec<Vec<String>> {
    let lines = report.limits.iter().filter_map(|(name, values)| {
        let summed = super::stats::summary(values.iter().copied())?;
        let spread = format!("± {:.0} %", 100.0 * summed.spread);
        Some(vec![value(Unit::Nanoseconds, summed.median), spread, name.clone()])
    });
    lines.collect()
}

/// A line for each workload: the fixed configuration, the best of ours, the best of the others, and what the first two are
/// to the third.
pub(crate) fn verdicts(report: &Report) -> Vec<Vec<String>> {
    let head = ["ratio", "", "fixed", "ratio", "", "best of ours", "", "best other", "", "limit", "workload"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (measured, verdict) in report.workloads.iter().zip(verdict::all(report)) {
        let named = |one: Option<Named<'_>>| match one {
            Some(Named { subject, median }) => [value(measured.unit, median), subject.to_owned()],
            None => [String::new(), "none".to_owned()],
        };
        let place = |one: Option<Beside<'_>>| {
            let ratio = one.and_then(|one| one.ratio).map_or(String::new(), three_digits);
            [ratio, one.and_then(|one| one.place).map_or("", |place| place.word()).to_owned()]
        };
        let fixed = verdict.fixed.map_or("none".to_owned(), |fixed| value(measured.unit, fixed.ours.median));
        let limit = verdict.limit.map_or(String::new(), |limit| value(measured.unit, limit.median));
        let best = [place(verdict.best), named(verdict.best.map(|best| best.ours))];
        let mut line = place(verdict.fixed).to_vec();
        line.push(fixed);
        line.extend(best.into_iter().chain([named(verdict.other)]).flatten());
        line.extend([limit, format!("{} ({})", measured.title, measured.name)]);
        lines.push(line);
    }
    lines
}

/// Cells in columns, the last one as it is; numbers to the right.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let mut out = String::new();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for line in lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = if column + 1 == line.len() { 0 } else { width(column) };
            let is_number = cell.starts_with(|first: char| first.is_ascii_digit() || first == '±');
            if is_number {
                write!(text, "{cell:>width$}  ").expect("a string takes all");
            } else {
                write!(text, "{cell:<width$}  ").expect("a string takes all");
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_their_unit() {
        let times = [0.5, 27.96, 999.0, 1_234.0, 56_780.0, 2.5e9];
        let texts = times.map(|time| value(Unit::Nanoseconds, time));
        assert_eq!(texts, ["0.50 ns", "28.0 ns", "999 ns", "1.23 µs", "56.8 µs", "2.50 s"]);
        assert_eq!(value(Unit::Bytes, 6_500.0), "6.50 kB");
        assert_eq!([0.0123, 0.001_66, 0.0].map(three_digits), ["0.012", "0.0017", "0"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = [vec!["head".to_owned(), "x".to_owned()], vec!["12".to_owned(), "y".to_owned()]];
        assert_eq!(aligned(&lines), "head  x\n  12  y\n");
    }
}
