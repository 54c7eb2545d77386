//! Why a row is lost: where the time goes of the fixed configuration, of the best of ours, of the best of the others, and of
//! the limit.

use std::fmt::Write as _;

use super::table::{aligned, three_digits, value};
use super::verdict::{Place, Verdict};
use super::{Measured, Report, Row};
use crate::figures::{Effort, Figures};
use crate::workload::Unit;

/// Bytes are part of the reason from this ratio on, if the difference is this large too.
const MORE: f64 = 1.5;
const MANY: f64 = 1_000.0;

/// A workload in which the fixed configuration takes longer, or is larger, than the best of the others. Where it took no
/// part, the best of ours does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loss<'r> {
    pub(crate) measured: &'r Measured,
    /// The costs of which ours takes more.
    pub(crate) why: String,
    /// A head, and a line for each of the subjects.
    pub(crate) lines: Vec<Vec<String>>,
}

/// Medians of what one unit takes, where the rounds tell it.
struct Cost {
    value: f64,
    processor_ns: Option<f64>,
    waited_ns: Option<f64>,
    sleeps: Option<f64>,
    written_bytes: Option<f64>,
    read_bytes: Option<f64>,
}

impl Cost {
    fn of(row: &Row) -> Option<Self> {
        let effort = |of: &dyn Fn(&Effort) -> Option<f64>| row.median(|figures| of(&figures.effort?));
        let each = |figures: &Figures, count: u64| count as f64 / figures.units as f64;
        Some(Self {
            value: row.summary()?.median,
            processor_ns: effort(&|effort| Some(effort.processor_ns)),
            waited_ns: effort(&|effort| effort.waited_ns),
            sleeps: row.median(|figures| Some(each(figures, figures.effort?.sleeps?))),
            written_bytes: row.median(|figures| Some(each(figures, figures.written_bytes))),
            read_bytes: row.median(|figures| Some(each(figures, figures.effort?.read_bytes))),
        })
    }

    fn cells(&self, measured: &Measured, role: &str, subject: String, row: &Row) -> Vec<String> {
        let told = |unit: Unit, of: Option<f64>| of.map_or(String::new(), |of| value(unit, of));
        let bytes = |of: fn(&Figures) -> u64| row.median(|figures| Some(of(figures) as f64));
        vec![
            role.to_owned(),
            value(measured.unit, self.value),
            told(Unit::Nanoseconds, self.processor_ns),
            told(Unit::Nanoseconds, self.waited_ns),
            self.sleeps.map_or(String::new(), three_digits),
            told(Unit::Bytes, self.written_bytes),
            told(Unit::Bytes, self.read_bytes),
            told(Unit::Bytes, bytes(|figures| figures.disk_bytes)),
            told(Unit::Bytes, bytes(|figures| figures.peak_bytes)),
            subject,
        ]
    }
}

/// Every row that ours loses.
pub(crate) fn losses(report: &Report) -> Vec<Loss<'_>> {
    report.workloads.iter().filter_map(|measured| loss(report, measured)).collect()
}

/// The profile of a workload, if ours loses it.
pub(crate) fn loss<'r>(report: &'r Report, measured: &'r Measured) -> Option<Loss<'r>> {
    let verdict = Verdict::of(report, measured);
    let ours = verdict.fixed.or(verdict.best).filter(|ours| ours.place == Some(Place::Loses))?;
    let best = verdict.best.filter(|best| best.ours.subject != ours.ours.subject);
    let head = [
        "",
        "median",
        "processor",
        "waits",
        "sleeps",
        "written",
        "read",
        "on disk",
        "peak memory",
        "subject",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let mut costs = Vec::new();
    let shown = [
        ("ours", Some(ours.ours)),
        ("best other", verdict.other),
        ("best of ours", best.map(|best| best.ours)),
        ("limit", verdict.limit),
    ];
    for (role, named) in shown {
        let Some((row, _)) = named.and_then(|named| measured.named(named.subject)) else { continue };
        let cost = Cost::of(row)?;
        lines.push(cost.cells(measured, role, report.shown(&row.subject), row));
        costs.push(cost);
    }
    let [ours, other, ..] = costs.as_slice() else { return None };
    Some(Loss { measured, why: why(measured.unit, ours, other), lines })
}

/// Names the costs of which ours takes more than the other.
fn why(unit: Unit, ours: &Cost, other: &Cost) -> String {
    let gap = ours.value - other.value;
    let mut parts = vec![format!("{} more", value(unit, gap))];
    if let (Unit::Nanoseconds, Some((waited, than))) = (unit, ours.waited_ns.zip(other.waited_ns)) {
        let share = ((waited - than) / gap).clamp(0.0, 1.0);
        write!(parts[0], ", {:.0} % of it waiting", 100.0 * share).expect("a string takes all");
    }
    if let Some((used, than)) = ours.processor_ns.zip(other.processor_ns).filter(|(used, than)| used > than) {
        parts.push(format!("all threads use {} more processor time", value(Unit::Nanoseconds, used - than)));
    }
    parts.extend(more("writes", ours.written_bytes, other.written_bytes));
    parts.extend(more("reads", ours.read_bytes, other.read_bytes));
    parts.join("; ")
}

/// That ours writes or reads more, if it does by so much that it matters.
fn more(verb: &str, ours: Option<f64>, other: Option<f64>) -> Option<String> {
    let (ours, other) =
        ours.zip(other).filter(|(ours, other)| *ours >= MORE * other && *ours >= other + MANY)?;
    let bytes = value(Unit::Bytes, ours);
    Some(if other > 0.0 {
        format!("it {verb} {bytes}, {} times as much", three_digits(ours / other))
    } else {
        format!("it {verb} {bytes}, the other nothing")
    })
}

/// The profiles for a terminal.
pub(crate) fn text(report: &Report) -> String {
    let losses = losses(report);
    if losses.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nwhy rows are lost; times, sleeps, written and read are of one unit:\n");
    for Loss { measured, why, lines } in losses {
        write!(out, "\n{} ({}): {why}\n{}", measured.title, measured.name, aligned(&lines))
            .expect("a string takes all");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Outcome;
    use crate::report::tests::report;
    use crate::subject::Role;

    /// Ours takes 100 ns, the other 40: processor, waits, bytes written and read of each.
    fn lost(ours: [f64; 4], other: [f64; 4]) -> Report {
        let mut report = report(&[("a", Role::Ours, &[100.0]), ("b", Role::Rival, &[40.0])]);
        for (row, [processor_ns, waited, written, read]) in
            report.workloads[0].rows.iter_mut().zip([ours, other])
        {
            let Outcome::Measured(figures) = &mut row.outcomes[0] else { panic!("it was measured") };
            figures.units = 2;
            figures.written_bytes = 2 * written as u64;
            figures.effort = Some(Effort {
                processor_ns,
                waited_ns: Some(waited),
                sleeps: Some(1),
                read_bytes: 2 * read as u64,
            });
        }
        report
    }

    fn only(report: &Report) -> Loss<'_> {
        let [loss] = losses(report).try_into().expect("one row is lost");
        loss
    }

    #[test]
    fn a_loss_by_waiting_is_told_from_one_by_work() {
        let waits = lost([30.0, 70.0, 5.0, 0.0], [30.0, 10.0, 5.0, 0.0]);
        assert_eq!(only(&waits).why, "60.0 ns more, 100 % of it waiting");
        let works = lost([90.0, 10.0, 5.0, 0.0], [30.0, 10.0, 5.0, 0.0]);
        let expected = "60.0 ns more, 0 % of it waiting; all threads use 60.0 ns more processor time";
        assert_eq!(only(&works).why, expected);
    }

    #[test]
    fn bytes_are_a_reason_if_they_are_many_more() {
        let writes = lost([30.0, 70.0, 5_000.0, 4_000.0], [30.0, 10.0, 2_000.0, 0.0]);
        let expected = "60.0 ns more, 100 % of it waiting; it writes 5.00 kB, 2.50 times as much; it reads 4.00 kB, the other nothing";
        assert_eq!(only(&writes).why, expected);
        let few = lost([30.0, 70.0, 900.0, 400.0], [30.0, 10.0, 200.0, 0.0]);
        assert_eq!(only(&few).why, "60.0 ns more, 100 % of it waiting");
        let lines = &only(&writes).lines;
        let ours = [
            "ours",
            "100 ns",
            "30.0 ns",
            "70.0 ns",
            "0.50",
            "5.00 kB",
            "4.00 kB",
            "3.00 B",
            "4.00 B",
            "a (fixed)",
        ];
        assert_eq!(lines[1], ours);
        assert_eq!(lines.len(), 3, "there is no limit: {lines:?}");
    }

    #[test]
    fn what_the_fixed_configuration_loses_is_told_where_the_best_of_ours_wins() {
        let (fixed, best) = (("a", Role::Ours, &[3.0][..]), ("c", Role::Ours, &[0.5][..]));
        let mixed = report(&[fixed, best, ("b", Role::Rival, &[1.0])]);
        let loss = only(&mixed);
        assert_eq!(loss.why, "2.00 ns more");
        let shown: Vec<_> = loss.lines[1..].iter().map(|line| [&line[0], &line[1], &line[9]]).collect();
        let expected = [
            ["ours", "3.00 ns", "a (fixed)"],
            ["best other", "1.00 ns", "b"],
            ["best of ours", "0.50 ns", "c"],
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_won_has_no_profile_and_an_old_report_has_one_of_less() {
        assert_eq!(text(&report(&[("a", Role::Ours, &[1.0]), ("b", Role::Rival, &[1.0])])), "");
        let old = report(&[("a", Role::Ours, &[3.0]), ("b", Role::Rival, &[1.0])]);
        assert_eq!(only(&old).why, "2.00 ns more");
        assert_eq!(only(&old).lines[1][..4], ["ours", "3.00 ns", "", ""]);
    }
}
