//! `cg verify`: every row through frame, key and decoder, every reference to its other end.

use std::collections::BTreeMap;
use std::fmt;

use cg_cli::import::{Unfinished, unfinished};
use cg_store::{Finding, VerifyDepth, VerifyReport};
use serde::Serialize;

use super::unfinished_text;
use crate::args::WorldArg;
use crate::output::{Failure, Outcome, Output, counted, grouped, hex};
use crate::shown::shown;

/// Look at every row of the world and report what is wrong. Changes nothing.
///
/// JSON: `{"ok":BOOL,"checked":{NAME:N},"problems":[{"space","key","what"}]}`; space and key are what
/// `cg dump --row` takes. Where the engine rewrites files of some spaces no more because one was damaged, `"held":[SPACE]`
/// too. While an import is unfinished, `"unfinished_import":{"save","begun","imported_columns"}` too, and `ok` is false. Exit code
/// 1 if `ok` is false.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// Check keys and checksums only, not what the rows say.
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checked: BTreeMap<&'static str, u64>,
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_import: Option<Unfinished>,
}

#[derive(Debug, Serialize)]
struct Problem {
    space: &'static str,
    key: String,
    what: String,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open()?;
    let depth = if args.quick { VerifyDepth::Quick } else { VerifyDepth::Full };
    let rows = world.usage()?.families.iter().map(|family| family.row_count).sum();
    let progress = out.progress_of("rows checked", rows);
    let found = world.verify(depth, |rows| progress.set_position(rows));
    progress.finish_and_clear();
    let mut report = Report::from(found?);
    let families = world.usage()?.families.into_iter().filter(|family| family.is_held);
    report.held = families.map(|family| family.family.name()).collect();
    report.unfinished_import = unfinished(&world)?;
    report.ok &= report.unfinished_import.is_none();
    out.print(&report)?;
    Ok(Outcome::good_if(report.ok))
}

impl From<VerifyReport> for Report {
    fn from(report: VerifyReport) -> Self {
        let ok = report.is_ok();
        let problems = report.findings.into_iter().map(Problem::from).collect();
        Self { ok, checked: report.checked, problems, held: Vec::new(), unfinished_import: None }
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Self {
        Self { space: finding.family.name(), key: hex(&finding.key), what: finding.what }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Problem { space, key, what } in &self.problems {
            let what = shown(what);
            match key.as_str() {
                "" => writeln!(f, "{space}: {what}")?,
                key => writeln!(f, "{space} {key}: {what}")?,
            }
        }
        let checked: Vec<_> =
            self.checked.iter().map(|(what, count)| format!("{} {what}", grouped(*count))).collect();
        writeln!(f, "checked {}", if checked.is_empty() { "nothing".into() } else { checked.join(", ") })?;
        for space in &self.held {
            write!(f, "{space}: a file was damaged, so none of its files is compacted any more")?;
            if self.problems.iter().any(|problem| problem.space == *space) {
                writeln!(f)?;
            } else {
                writeln!(f, "; every row can be read, so if it was replaced, delete db/DAMAGED")?;
            }
        }
        if let Some(import) = &self.unfinished_import {
            writeln!(f, "{}", unfinished_text(import))?;
        }
        match self.problems.len() {
            0 => writeln!(f, "no problem found"),
            count => writeln!(f, "{} found", counted(count as u64, "problem")),
        }
    }
}
