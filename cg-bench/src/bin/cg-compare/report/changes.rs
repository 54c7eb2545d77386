//! Changes since an earlier report, beyond the noise of both.

use std::fmt::Write as _;

use super::table::{three_digits, value};
use super::{Measured, Report, Row, Summary, stats};
use crate::subject::Role;

/// The least change that is reported, whatever the noise.
const LEAST: f64 = 1.05;

/// How much longer the machine takes than before: the median of the other stores' ratios; 1 if there are none.
fn drift(old: &Report, new: &Report) -> f64 {
    let is_other =
        |name: &str| new.subjects.iter().any(|about| about.name == name && about.role != Role::Ours);
    let ratios = pairs(old, new).filter(|(_, _, row, ..)| is_other(&row.subject));
    stats::summary(ratios.map(|(_, _, _, old, new)| new.median / old.median))
        .map_or(1.0, |summed| summed.median)
}

/// Every row of both reports with its two summaries.
fn pairs<'r>(
    old: &'r Report,
    new: &'r Report,
) -> impl Iterator<Item = (&'r Measured, &'r Row, &'r Row, Summary, Summary)> {
    new.workloads.iter().flat_map(move |measured| {
        let before = old.workloads.iter().find(|before| before.name == measured.name);
        measured.rows.iter().filter_map(move |row| {
            let old = before?.rows.iter().find(|old| old.subject == row.subject)?;
            Some((measured, old, row, old.summary()?, row.summary()?))
        })
    })
}

/// The rows whose rounds do not overlap with those of before, after what the machine changed is divided out.
fn changes(old: &Report, new: &Report) -> Vec<String> {
    let drift = drift(old, new);
    let changed = pairs(old, new).filter_map(|(measured, _, row, before, after)| {
        let ratio = after.median / before.median / drift;
        let apart = after.least / drift > before.most || after.most / drift < before.least;
        let large = !(1.0 / LEAST..=LEAST).contains(&ratio);
        (apart && large).then(|| {
            let [was, is] = [before, after].map(|summed| value(measured.unit, summed.median));
            let (workload, subject) = (&measured.name, &row.subject);
            let word = if ratio > 1.0 { "worse" } else { "better" };
            format!("{}× {word}: {workload}, {subject}: {was} before, {is} now", three_digits(ratio))
        })
    });
    changed.collect()
}

/// The comparison as text.
pub(crate) fn text(old: &Report, new: &Report) -> String {
    let changes = changes(old, new);
    let mut out = format!(
        "\nsince the other report; other stores and limits take {} times as long as then, which is divided out:\n",
        three_digits(drift(old, new))
    );
    if old.columns != new.columns {
        let (then, now) = (&old.columns, &new.columns);
        writeln!(out, "THE COLUMNS DIFFER, so these figures do too: {then} then, {now} now")
            .expect("a string takes all");
    }
    if changes.is_empty() {
        out.push_str("nothing changed beyond the range of the rounds\n");
    }
    for change in changes {
        out.push_str(&change);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn a_change_within_the_range_of_the_rounds_is_noise() {
        let old = report(&[("ours", Role::Ours, &[100.0, 110.0, 120.0])]);
        let new = report(&[("ours", Role::Ours, &[115.0, 125.0, 130.0])]);
        assert_eq!(changes(&old, &new), Vec::<String>::new());
    }

    #[test]
    fn a_change_beyond_it_is_told_with_its_ratio() {
        let old = report(&[("ours", Role::Ours, &[100.0, 110.0, 120.0])]);
        let new = report(&[("ours", Role::Ours, &[50.0, 55.0, 60.0])]);
        let expected = "0.50× better: new-terrain, ours: 110 ns before, 55.0 ns now";
        assert_eq!(changes(&old, &new), [expected]);
    }

    #[test]
    fn a_slower_machine_is_no_change() {
        let old = report(&[("ours", Role::Ours, &[100.0]), ("other", Role::Rival, &[10.0])]);
        let new = report(&[("ours", Role::Ours, &[200.0]), ("other", Role::Rival, &[20.0])]);
        assert_eq!((drift(&old, &new), changes(&old, &new)), (2.0, Vec::new()));
    }
}
