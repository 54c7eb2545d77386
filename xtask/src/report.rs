//! Steps of a run: each ends as passed, skipped (a word of its own, never green) or failed, with its time.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, bail};

use crate::context::Context;

/// How a step ended when it did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and all was well.
    Passed,
    /// It did not run, and that is allowed everywhere. Holds the reason.
    Optional(String),
    /// It did not run because something is missing that CI always has: a failure there. Holds the reason.
    Missing(String),
}

#[derive(Debug)]
enum Mark {
    Passed,
    Skipped(String),
    Failed(Error),
}

/// The reaction to a step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    Stop,
    KeepGoing,
}

/// The steps so far.
#[derive(Debug)]
pub(crate) struct Report {
    is_ci: bool,
    table: Option<PathBuf>,
    after_failure: AfterFailure,
    steps: Vec<(String, Duration, Mark)>,
    left_out: Vec<(&'static str, Vec<&'static str>)>,
}

impl Report {
    pub(crate) fn new(context: &Context, after_failure: AfterFailure) -> Self {
        let (is_ci, table) = (context.is_ci(), context.step_table.clone());
        Self { is_ci, table, after_failure, steps: Vec::new(), left_out: Vec::new() }
    }

    /// Notes a step that was not asked for: a line after the table names it, after its reason.
    pub(crate) fn left_out(&mut self, name: &'static str, reason: &'static str) {
        match self.left_out.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => self.left_out.push((reason, vec![name])),
        }
    }

    /// Runs a step, unless an earlier one failed and the run stops there.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome>) {
        if self.after_failure == AfterFailure::Stop && self.has_failed() {
            return;
        }
        println!("\n=== {name}");
        let start = Instant::now();
        let mark = match run() {
            Ok(Outcome::Passed) => Mark::Passed,
            Ok(Outcome::Missing(reason)) if self.is_ci => {
                Mark::Failed(Error::msg(format!("skipped in CI: {reason}")))
            }
            Ok(Outcome::Optional(reason) | Outcome::Missing(reason)) => Mark::Skipped(reason),
            Err(error) => Mark::Failed(error),
        };
        match &mark {
            Mark::Passed => {}
            Mark::Skipped(reason) => println!("!!! SKIPPED {name}: {reason}"),
            Mark::Failed(error) => println!("!!! FAILED {name}: {error:#}"),
        }
        self.steps.push((name.to_owned(), start.elapsed(), mark));
    }

    /// Prints the table, and adds it to the file of all tables of a run of CI.
    ///
    /// # Errors
    /// A step failed, or the file cannot be written.
    pub(crate) fn finish(self) -> Result<()> {
        let table = self.table();
        print!("\n{table}");
        if let Some(path) = &self.table {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let written = file.and_then(|mut file| file.write_all(table.as_bytes()));
            written.with_context(|| format!("cannot write the table of the steps to {}", path.display()))?;
        }
        let failed = self.steps.iter().filter(|(.., mark)| matches!(mark, Mark::Failed(_)));
        let failed: Vec<_> = failed.map(|(name, ..)| name.as_str()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!("failed: {}", failed.join(", "))
    }

    fn has_failed(&self) -> bool {
        self.steps.iter().any(|(.., mark)| matches!(mark, Mark::Failed(_)))
    }

    fn table(&self) -> String {
        let width = self.steps.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let mut lines = Vec::new();
        let mut total = Duration::ZERO;
        for (name, time, mark) in &self.steps {
            total += *time;
            let mark = match mark {
                Mark::Passed => "passed".to_owned(),
                Mark::Skipped(reason) => format!("skipped: {}", first_line(reason)),
                Mark::Failed(error) => format!("FAILED: {}", first_line(&error.to_string())),
            };
            lines.push(format!("{name:width$}  {:>8.1} s  {mark}\n", time.as_secs_f64()));
        }
        lines.push(format!("{:width$}  {:>8.1} s\n", "", total.as_secs_f64()));
        let left_out = self.left_out.iter();
        lines
            .extend(left_out.map(|(reason, names)| format!("did not run, {reason}: {}\n", names.join(", "))));
        lines.concat()
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::bail;

    use super::{AfterFailure, Outcome, Report};

    fn report(is_ci: bool, after_failure: AfterFailure) -> Report {
        Report { is_ci, table: None, after_failure, steps: Vec::new(), left_out: Vec::new() }
    }

    #[test]
    fn a_missing_input_is_skipped_at_a_desk_and_fails_in_ci() {
        let missing = || Ok(Outcome::Missing("no worlds".to_owned()));
        let mut desk = report(false, AfterFailure::Stop);
        desk.step("worlds", missing);
        assert!(desk.table().contains("skipped: no worlds"), "{}", desk.table());
        assert!(!desk.table().contains("passed"), "{}", desk.table());
        assert!(desk.finish().is_ok());
        let mut ci = report(true, AfterFailure::Stop);
        ci.step("worlds", missing);
        assert_eq!(ci.finish().unwrap_err().to_string(), "failed: worlds");
    }

    #[test]
    fn a_step_that_was_not_asked_for_is_named_after_the_table() {
        let mut report = report(false, AfterFailure::Stop);
        report.step("first", || Ok(Outcome::Passed));
        for (name, reason) in
            [("miri", "left to --full"), ("test", "left out with --skip"), ("fuzz", "left to --full")]
        {
            report.left_out(name, reason);
        }
        let table = report.table();
        let after = "did not run, left to --full: miri, fuzz\ndid not run, left out with --skip: test\n";
        assert!(table.ends_with(after), "{table}");
        assert_eq!(table.matches("passed").count(), 1, "{table}");
    }

    #[test]
    fn a_failure_stops_the_run_unless_told_otherwise() {
        for (after, runs) in [(AfterFailure::Stop, 0), (AfterFailure::KeepGoing, 1)] {
            let ran = Cell::new(0);
            let mut report = report(false, after);
            report.step("first", || bail!("broken"));
            report.step("second", || {
                ran.set(ran.get() + 1);
                Ok(Outcome::Passed)
            });
            assert_eq!(ran.get(), runs);
            assert_eq!(report.finish().unwrap_err().to_string(), "failed: first");
        }
    }
}
