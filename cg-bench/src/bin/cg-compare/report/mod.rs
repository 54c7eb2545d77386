//! Findings of a run: the samples of every row, and what they say together.

pub(crate) mod changes;
pub(crate) mod html;
pub(crate) mod profile;
pub(crate) mod stats;
mod svg;
pub(crate) mod table;
pub(crate) mod verdict;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::figures::{Figures, Outcome};
use crate::subject::{About, Role};
use crate::workload::Unit;
use stats::Summary;
use verdict::{Standing, Verdict};

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Machine, versions, commit and load.
    pub(crate) conditions: Vec<String>,
    /// Where the columns come from, and how many a store has.
    pub(crate) columns: String,
    pub(crate) rounds: u64,
    /// Times that the machine needs for the bytes of a terrain column, by the name of the work; one value for each
    /// round.
    pub(crate) limits: Vec<(String, Vec<f64>)>,
    pub(crate) subjects: Vec<About>,
    /// The subject of ours that is compared in every row; empty in earlier reports.
    #[serde(default)]
    pub(crate) fixed: String,
    pub(crate) workloads: Vec<Measured>,
}

/// A report as a file has it: with what follows from its figures.
#[derive(Serialize)]
struct Written<'r> {
    #[serde(flatten)]
    report: &'r Report,
    verdicts: Vec<Verdict<'r>>,
    standings: [Standing<'r>; 2],
}

/// A workload with the outcome of each subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) per: String,
    pub(crate) unit: Unit,
    pub(crate) state: String,
    /// In the order of the subjects.
    pub(crate) rows: Vec<Row>,
}

/// One subject in one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) subject: String,
    /// One for each round.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Row {
    /// Its figures, if no round failed.
    pub(crate) fn figures(&self) -> Option<Vec<&Figures>> {
        let figures: Option<Vec<_>> = self
            .outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Measured(figures) => Some(figures),
                Outcome::NotApplicable(_) | Outcome::Failed(_) => None,
            })
            .collect();
        figures.filter(|figures| !figures.is_empty())
    }

    /// The median over all rounds of something that every round tells.
    pub(crate) fn median(&self, of: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<_>> = self.figures()?.into_iter().map(of).collect();
        Some(stats::summary(values?)?.median)
    }

    /// The summary of the compared values, over all rounds.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let figures = self.figures()?;
        stats::summary(figures.iter().map(|figures| figures.value))
    }

    /// Why there are no figures.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Measured(_) => None,
            Outcome::NotApplicable(reason) | Outcome::Failed(reason) => Some(reason.as_str()),
        })
    }

    /// Whether it failed.
    pub(crate) fn failed(&self) -> bool {
        self.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }
}

impl Measured {
    /// The least median of all subjects of a role.
    pub(crate) fn best(&self, subjects: &[About], role: Role) -> Option<(&Row, Summary)> {
        let of = |row: &Row| subjects.iter().any(|about| about.name == row.subject && about.role == role);
        let rows = self.rows.iter().filter(|row| of(row));
        let summed = rows.filter_map(|row| Some((row, row.summary()?)));
        summed.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
    }

    /// The meaning of one unit, what was in memory, and how many rounds there were if they were fewer than those of
    /// others.
    pub(crate) fn facts(&self, rounds: u64) -> String {
        let Self { name, per, state, rows, .. } = self;
        let mine = rows.iter().map(|row| row.outcomes.len()).max().unwrap_or_default();
        let fewer =
            if (mine as u64) < rounds { format!("; {mine} of {rounds} rounds") } else { String::new() };
        format!("{name}; per {per}; {state}{fewer}")
    }

    /// The subject of a name, if it has figures.
    pub(crate) fn named(&self, subject: &str) -> Option<(&Row, Summary)> {
        let row = self.rows.iter().find(|row| row.subject == subject)?;
        Some((row, row.summary()?))
    }
}

impl Report {
    /// Every row that failed, as a sentence.
    pub(crate) fn failures(&self) -> Vec<String> {
        let rows =
            self.workloads.iter().flat_map(|measured| measured.rows.iter().map(move |row| (measured, row)));
        let failed = rows.filter(|(_, row)| row.failed());
        failed
            .map(|(measured, row)| {
                format!("{}, {}: {}", row.subject, measured.name, row.reason().unwrap_or_default())
            })
            .collect()
    }

    /// The name of a subject as tables show it.
    pub(crate) fn shown(&self, subject: &str) -> String {
        let mark = if subject == self.fixed { " (fixed)" } else { "" };
        format!("{subject}{mark}")
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let (verdicts, standings) = (verdict::all(self), verdict::standings(self));
        let text = serde_json::to_string_pretty(&Written { report: self, verdicts, standings })?;
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// It cannot be read, or is no report.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} is no report: {error}", path.display()).into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use super::*;

    fn figures(value: f64) -> Figures {
        Figures {
            value,
            units: 1,
            latency: None,
            written_bytes: 2,
            saved_bytes: 1,
            disk_bytes: 3,
            held_bytes: Some(2),
            peak_bytes: 4,
            compared_columns: 5,
            effort: None,
        }
    }

    /// A workload with the value of each round, by the names of the subjects.
    pub(crate) fn rows(name: &str, subjects: &[(&str, &[f64])]) -> Measured {
        let row = |(name, values): &(&str, &[f64])| Row {
            subject: (*name).to_owned(),
            outcomes: values.iter().map(|value| Outcome::Measured(figures(*value))).collect(),
        };
        Measured {
            name: name.to_owned(),
            title: "new <terrain>".to_owned(),
            per: "column".to_owned(),
            unit: Unit::Nanoseconds,
            state: "empty".to_owned(),
            rows: subjects.iter().map(row).collect(),
        }
    }

    /// A report of one workload: names, roles, and the value of each round. The first of ours is fixed.
    pub(crate) fn report(subjects: &[(&str, Role, &[f64])]) -> Report {
        let about = |(name, role, _): &(&str, Role, &[f64])| About {
            name: (*name).to_owned(),
            role: *role,
            version: "1".to_owned(),
            durability: "none".to_owned(),
            options: "none".to_owned(),
        };
        let values: Vec<_> = subjects.iter().map(|(name, _, values)| (*name, *values)).collect();
        let measured = rows("new-terrain", &values);
        Report {
            conditions: vec!["a machine".to_owned()],
            columns: "121 columns".to_owned(),
            rounds: 3,
            limits: Vec::new(),
            subjects: subjects.iter().map(about).collect(),
            fixed: subjects
                .iter()
                .find(|(_, role, _)| *role == Role::Ours)
                .expect("one is ours")
                .0
                .to_owned(),
            workloads: vec![measured],
        }
    }

    #[test]
    fn a_report_is_the_same_after_it_was_written_and_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("report.json");
        let mut written = report(&[("ours", Role::Ours, &[1.5, 2.0]), ("other", Role::Rival, &[0.25])]);
        written.workloads[0].rows[1]
            .outcomes
            .push(Outcome::NotApplicable("it has \"no\" threads".to_owned()));
        written.write(&path).expect("written");
        assert_eq!(Report::read(&path).expect("read"), written);
        let mut earlier: Value =
            serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
        for added in ["fixed", "verdicts", "standings"] {
            earlier.as_object_mut().expect("fields").remove(added).expect("it was written");
        }
        fs::write(&path, earlier.to_string()).expect("written");
        written.fixed.clear();
        assert_eq!(Report::read(&path).expect("an earlier report"), written);
        fs::write(&path, "{}").expect("written");
        let error = Report::read(&path).expect_err("no report").to_string();
        assert!(error.starts_with(&format!("{} is no report: missing field", path.display())), "{error}");
    }

    #[test]
    fn a_row_that_failed_once_has_no_figures_and_is_told() {
        let mut failed = report(&[("ours", Role::Ours, &[1.0]), ("other", Role::Rival, &[2.0, 3.0])]);
        failed.workloads[0].rows[0].outcomes.push(Outcome::Failed("the column at 1, 2 is lost".to_owned()));
        assert_eq!(failed.failures(), ["ours, new-terrain: the column at 1, 2 is lost"]);
        assert_eq!(failed.workloads[0].best(&failed.subjects, Role::Ours).map(|(row, _)| &row.subject), None);
        let best = failed.workloads[0].best(&failed.subjects, Role::Rival).expect("it has figures");
        assert_eq!((best.0.subject.as_str(), best.1.median), ("other", 2.5));
    }

    #[test]
    fn the_page_names_every_subject_and_escapes_what_it_shows() {
        let page = html::page(&report(&[("ours", Role::Ours, &[1.0]), ("a & b", Role::Rival, &[2.0])]));
        for part in [
            "a &amp; b",
            "new &lt;terrain&gt;",
            "prefers-color-scheme: dark",
            ">wins<",
            "<a href=\"#new-terrain\">",
        ] {
            assert!(page.contains(part), "{part} is missing in\n{page}");
        }
        assert!(!page.contains("http"), "it needs nothing from elsewhere");
        assert!(!page.contains("why ours loses"), "nothing is lost");
    }

    #[test]
    fn the_page_says_what_is_written_and_stored_of_a_byte() {
        let mut some = report(&[("ours", Role::Ours, &[1.0])]);
        let page = html::page(&some);
        let cells = |page: &str| {
            let row = page.split("<details>").nth(1)?.split("</details>").next()?.split("<td").skip(2);
            Some(row.filter_map(|cell| Some(cell.split_once('>')?.1.split_once('<')?.0.to_owned())).collect())
        };
        let expected = ["2.00 B", "2.00", "3.00 B", "1.50", "4.00 B", "5"].map(str::to_owned).to_vec();
        assert_eq!(cells(&page), Some(expected), "{page}");
        for outcome in &mut some.workloads[0].rows[0].outcomes {
            if let Outcome::Measured(figures) = outcome {
                figures.held_bytes = None;
            }
        }
        let not_compared = cells(&html::page(&some)).expect("a table");
        assert_eq!(not_compared[3], "", "{not_compared:?}");
    }

    #[test]
    fn a_workload_of_fewer_rounds_says_so() {
        let some = report(&[("ours", Role::Ours, &[3.0, 3.1])]);
        assert_eq!(some.workloads[0].facts(some.rounds), "new-terrain; per column; empty; 2 of 3 rounds");
        assert!(html::page(&some).contains("2 of 3 rounds") && table::text(&some).contains("2 of 3 rounds"));
        let all = report(&[("ours", Role::Ours, &[3.0, 3.1, 3.2])]);
        assert_eq!(all.workloads[0].facts(all.rounds), "new-terrain; per column; empty");
    }

    #[test]
    fn a_lost_row_says_why_on_the_page_and_on_the_terminal() {
        let lost = report(&[("ours", Role::Ours, &[3.0]), ("b", Role::Rival, &[1.0])]);
        let page = html::page(&lost);
        assert!(page.contains("<h3>why ours loses</h3><p>2.00 ns more</p>"), "{page}");
        let text = table::text(&lost);
        assert!(text.contains("new <terrain> (new-terrain): 2.00 ns more"), "{text}");
    }
}
