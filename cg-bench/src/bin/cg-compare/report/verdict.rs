//! Verdicts: what the fixed configuration, and the best of ours, are to the best of the others.

use std::fmt;

use serde::Serialize;

use super::{Measured, Report, Row, Summary};
use crate::subject::Role;

/// Below this ratio to the best of the others, a row is a tie: spreads of short runs are as large.
pub(super) const TIE: f64 = 1.1;

/// A place beside the best of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Wins,
    Ties,
    Loses,
}

impl Place {
    fn of(ratio: f64) -> Self {
        if ratio > TIE {
            Self::Loses
        } else if ratio >= 1.0 / TIE {
            Self::Ties
        } else {
            Self::Wins
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Wins => "wins",
            Self::Ties => "ties",
            Self::Loses => "loses",
        }
    }
}

/// A subject with figures in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Named<'r> {
    pub(crate) subject: &'r str,
    pub(crate) median: f64,
}

/// One of ours beside the best of the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Beside<'r> {
    #[serde(flatten)]
    pub(crate) ours: Named<'r>,
    /// Its median divided by that of the best other. `None` without one.
    pub(crate) ratio: Option<f64>,
    pub(crate) place: Option<Place>,
}

/// The verdict of a workload. A subject without figures is not there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict<'r> {
    pub(crate) workload: &'r str,
    pub(crate) fixed: Option<Beside<'r>>,
    pub(crate) best: Option<Beside<'r>>,
    pub(crate) other: Option<Named<'r>>,
    pub(crate) limit: Option<Named<'r>>,
}

impl<'r> Verdict<'r> {
    pub(crate) fn of(report: &'r Report, measured: &'r Measured) -> Self {
        let named =
            |(row, summed): (&'r Row, Summary)| Named { subject: &row.subject, median: summed.median };
        let best = |role| measured.best(&report.subjects, role).map(named);
        let other = best(Role::Rival);
        let beside = |ours: Named<'r>| {
            let ratio = other.map(|other| ours.median / other.median);
            Beside { ours, ratio, place: ratio.map(Place::of) }
        };
        Self {
            workload: &measured.name,
            fixed: measured.named(&report.fixed).map(named).map(beside),
            best: best(Role::Ours).map(beside),
            other,
            limit: best(Role::Limit),
        }
    }
}

/// The verdicts of all workloads.
pub(crate) fn all(report: &Report) -> Vec<Verdict<'_>> {
    report.workloads.iter().map(|measured| Verdict::of(report, measured)).collect()
}

/// In how many rows one of ours has which place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Standing<'r> {
    /// The fixed configuration, or the best of ours.
    pub(crate) of: &'r str,
    pub(crate) wins: usize,
    pub(crate) ties: usize,
    pub(crate) loses: usize,
    /// Rows in which it, or every other, has no figures.
    pub(crate) without: usize,
}

/// The standings of the fixed configuration and of the best of ours.
pub(crate) fn standings(report: &Report) -> [Standing<'_>; 2] {
    let verdicts = all(report);
    let standing = |of, beside: fn(&Verdict<'_>) -> Option<Place>| {
        let places: Vec<_> = verdicts.iter().map(beside).collect();
        let count = |place| places.iter().filter(|of| **of == place).count();
        let [wins, ties, loses] = [Place::Wins, Place::Ties, Place::Loses].map(|place| count(Some(place)));
        Standing { of, wins, ties, loses, without: count(None) }
    };
    [
        standing(&report.fixed, |verdict| verdict.fixed?.place),
        standing("the best of ours", |verdict| verdict.best?.place),
    ]
}

impl fmt::Display for Standing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, wins, ties, loses, without } = self;
        if wins + ties + loses == 0 {
            return write!(f, "{of} stands beside no other");
        }
        let rows = wins + ties + loses;
        write!(f, "{of} is first in {wins} of {rows} rows, ties in {ties} and loses {loses}")?;
        if *without > 0 {
            write!(f, "; {without} more compare nothing")?;
        }
        Ok(())
    }
}

/// The standings as sentences, the fixed configuration first.
pub(crate) fn sentences(report: &Report) -> [String; 2] {
    let [fixed, best] = standings(report);
    [
        format!("Fixed, `balanced` as it comes in every row: {fixed}."),
        format!("Another configuration in each row: {best}. Within {TIE} times, a row is a tie."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, rows};
    use crate::report::{html, table};

    const OTHER: Role = Role::Rival;

    /// The fixed one loses, ties and wins; the best of ours ties, wins and wins. A fourth row has no other.
    fn four_rows() -> Report {
        let mut four = report(&[
            ("ours, L0", Role::Ours, &[3.0]),
            ("ours, L1", Role::Ours, &[1.0]),
            ("b", OTHER, &[1.0]),
        ]);
        four.workloads.push(rows("second", &[("ours, L0", &[1.05]), ("ours, L1", &[0.5]), ("b", &[1.0])]));
        four.workloads.push(rows("third", &[("ours, L0", &[0.5]), ("ours, L1", &[0.6]), ("b", &[1.0])]));
        four.workloads.push(rows("fourth", &[("ours, L0", &[2.0]), ("ours, L1", &[1.0])]));
        four
    }

    #[test]
    fn the_fixed_configuration_stands_beside_the_best_of_ours() {
        let four = four_rows();
        let expected = [
            "Fixed, `balanced` as it comes in every row: ours, L0 is first in 1 of 3 rows, ties in 1 and loses 1; 1 more compare nothing.",
            "Another configuration in each row: the best of ours is first in 2 of 3 rows, ties in 1 and loses 0; 1 more compare nothing. Within 1.1 times, a row is a tie.",
        ];
        assert_eq!(sentences(&four), expected);
        let (text, page) = (table::text(&four), html::page(&four));
        for sentence in expected {
            assert!(
                text.contains(sentence) && page.contains(sentence),
                "{sentence} is missing in\n{text}\n{page}"
            );
        }
        let lines = table::verdicts(&four);
        assert_eq!(
            lines[1][..8],
            ["3.00", "loses", "3.00 ns", "1.00", "ties", "1.00 ns", "ours, L1", "1.00 ns"]
        );
        assert_eq!(lines[3][..7], ["0.50", "wins", "0.50 ns", "0.50", "wins", "0.50 ns", "ours, L0"]);
        assert_eq!(lines[4][..9], ["", "", "2.00 ns", "", "", "1.00 ns", "ours, L1", "", "none"]);
        assert!(text.contains("ours, L0 (fixed)") && page.contains("ours, L0 (fixed)"), "{text}");
    }

    #[test]
    fn the_file_says_where_both_stand() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("report.json");
        four_rows().write(&path).expect("written");
        let text = std::fs::read_to_string(&path).expect("a report");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let standing = |of: &str, wins: u64, ties: u64, loses: u64| serde_json::json!({ "of": of, "wins": wins, "ties": ties, "loses": loses, "without": 1 });
        let expected = [standing("ours, L0", 1, 1, 1), standing("the best of ours", 2, 1, 0)];
        assert_eq!(file["standings"], serde_json::json!(expected));
        assert_eq!(file["fixed"], "ours, L0");
        let first = serde_json::json!({
            "workload": "new-terrain",
            "fixed": { "subject": "ours, L0", "median": 3.0, "ratio": 3.0, "place": "loses" },
            "best": { "subject": "ours, L1", "median": 1.0, "ratio": 1.0, "place": "ties" },
            "other": { "subject": "b", "median": 1.0 },
            "limit": null,
        });
        assert_eq!(file["verdicts"][0], first);
    }

    #[test]
    fn a_fixed_configuration_that_took_no_part_has_no_count() {
        let mut alone = report(&[("ours, L1", Role::Ours, &[1.0]), ("b", OTHER, &[2.0])]);
        alone.fixed = "ours, L0".to_owned();
        let expected = "Fixed, `balanced` as it comes in every row: ours, L0 stands beside no other.";
        assert_eq!(sentences(&alone)[0], expected);
        assert_eq!(table::verdicts(&alone)[1][..7], ["", "", "none", "0.50", "wins", "1.00 ns", "ours, L1"]);
    }
}
