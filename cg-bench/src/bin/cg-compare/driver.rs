//! Runs every workload on every subject, in rounds, each in a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;
use crate::figures::Outcome;
use crate::gather::gather;
use crate::go::{self, Program};
use crate::measure::Measure;
use crate::quiet::Quiet;
use crate::report::{Measured, Report, Row};
use crate::subject::{self, About};
use crate::workload::Workload;

/// How much is run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Columns that a prepared store has.
    pub(crate) columns: usize,
    pub(crate) rounds: u64,
    /// How long repetitions go on within a measurement.
    pub(crate) enough: Duration,
    /// How long all waits for a quiet machine may take together.
    pub(crate) patience: Duration,
    /// Whether workloads that take long are left out, unless one is named.
    pub(crate) quick: bool,
    /// Only workloads whose names contain this.
    pub(crate) only: Option<String>,
    /// Only subjects whose names contain one of these.
    pub(crate) subjects: Vec<String>,
    /// What the caller knows of the machine and the commit.
    pub(crate) conditions: Vec<String>,
    /// The folder of the stores while they are measured.
    pub(crate) home: PathBuf,
}

/// Measures all of it.
///
/// # Errors
/// The columns cannot be gathered, or a process cannot be started. A subject that fails is in the report.
pub(crate) fn run(plan: &Plan) -> Result<Report, Failure> {
    let workloads = plan.workloads()?;
    let home = tempfile::Builder::new().prefix("cg-compare-").tempdir_in(&plan.home)?;
    let (columns, source) = gather(plan.columns)?;
    let file = home.path().join("columns");
    columns.write(&file)?;
    let each = columns.len_bytes() / columns.terrain.len() as u64;
    let (mut conditions, mut go) = (plan.conditions.clone(), None);
    let mut subjects: Vec<_> = subject::all().iter().map(|kind| kind.about()).collect();
    if go::SUBJECTS.iter().any(|name| plan.wants(name)) {
        match go::build(home.path(), &columns)? {
            Ok(program) => {
                subjects.extend(program.subjects.iter().cloned());
                go = Some(program);
            }
            Err(reason) => {
                conditions.push(format!("!!! SKIPPED: {}: {reason}", go::SUBJECTS.join(" and ")));
            }
        }
    }
    drop(columns);
    subjects.retain(|about| plan.wants(&about.name));
    if subjects.is_empty() {
        return Err(format!("no subject has one of {:?} in its name", plan.subjects).into());
    }
    let mut run = Run { plan, home: home.path(), file, go, quiet: Quiet::default() };
    let (measured, limits) = run.rounds(&subjects, &workloads)?;
    conditions.push(run.quiet.sentence());
    Ok(Report {
        conditions,
        columns: format!(
            "{} columns of 24 chunks, {source}, {each} bytes each before compression",
            plan.columns
        ),
        rounds: plan.rounds,
        limits,
        subjects,
        workloads: measured,
    })
}

impl Plan {
    /// Whether a subject takes part.
    fn wants(&self, subject: &str) -> bool {
        self.subjects.is_empty() || self.subjects.iter().any(|part| subject.contains(part.as_str()))
    }

    /// The workloads that are measured.
    fn workloads(&self) -> Result<Vec<Workload>, Failure> {
        let chosen = |workload: &Workload| {
            let all = workload.is_quick() || !self.quick;
            self.only.as_ref().map_or(all, |part| workload.facts().name.contains(part.as_str()))
        };
        let workloads: Vec<_> = Workload::ALL.into_iter().filter(chosen).collect();
        if workloads.is_empty() {
            let only = self.only.as_deref().unwrap_or_default();
            return Err(format!("no workload has {only:?} in its name").into());
        }
        Ok(workloads)
    }
}

/// The times of each kind of work, one for each round.
type Limits = Vec<(String, Vec<f64>)>;

/// A workload before its first round.
fn unmeasured(workload: Workload, subjects: &[About]) -> Measured {
    let row = |about: &About| Row { subject: about.name.clone(), outcomes: Vec::new() };
    let facts = workload.facts();
    Measured {
        name: facts.name.to_owned(),
        title: facts.title.to_owned(),
        per: facts.per.to_owned(),
        unit: facts.unit,
        state: facts.state.to_owned(),
        rows: subjects.iter().map(row).collect(),
    }
}

struct Run<'p> {
    plan: &'p Plan,
    home: &'p Path,
    file: PathBuf,
    go: Option<Program>,
    quiet: Quiet,
}

impl Run<'_> {
    fn rounds(
        &mut self,
        subjects: &[About],
        workloads: &[Workload],
    ) -> Result<(Vec<Measured>, Limits), Failure> {
        let mut ready = Vec::new();
        for about in subjects {
            eprintln!("prepare {}", about.name);
            ready.push(self.start(about, None, 0)?);
        }
        let mut measured: Vec<_> = workloads.iter().map(|workload| unmeasured(*workload, subjects)).collect();
        let mut limits = Limits::new();
        for round in 0..self.plan.rounds {
            for (name, ns) in self.limits()? {
                match limits.iter_mut().find(|(of, _)| *of == name) {
                    Some((_, values)) => values.push(ns),
                    None => limits.push((name, vec![ns])),
                }
            }
            let taken = workloads.iter().zip(&mut measured);
            for (workload, measured) in taken.filter(|(workload, _)| round < workload.most_rounds()) {
                eprintln!("round {} of {}: {}", round + 1, self.plan.rounds, measured.name);
                self.quiet.wait(self.plan.patience)?;
                // Another subject begins each round.
                for turn in 0..subjects.len() {
                    let index = (turn + round as usize) % subjects.len();
                    let outcome = match &ready[index] {
                        Outcome::Failed(reason) => Outcome::Failed(format!("when it was prepared: {reason}")),
                        _ => self.start(&subjects[index], Some(*workload), round)?,
                    };
                    measured.rows[index].outcomes.push(outcome);
                }
            }
        }
        Ok((measured, limits))
    }

    /// What the machine needs for the bytes of a column, measured in a process of its own.
    fn limits(&self) -> Result<Vec<(String, f64)>, Failure> {
        let scratch = self.home.join("scratch");
        fs::create_dir_all(&scratch)?;
        let mut process = Command::new(std::env::current_exe()?);
        process.arg("limits").arg(&self.file).arg(&scratch).stderr(Stdio::inherit()).stdin(Stdio::null());
        let output = process.output()?;
        fs::remove_dir_all(&scratch)?;
        if !output.status.success() {
            return Err(format!("measuring the machine ended with {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Starts a process that prepares or measures, and reads what it prints.
    fn start(&mut self, about: &About, workload: Option<Workload>, round: u64) -> Result<Outcome, Failure> {
        let is_of = |program: &&Program| program.subjects.contains(about);
        let program =
            self.go.as_ref().filter(is_of).map(|program| (program.path.clone(), program.columns.clone()));
        if let Some(workload) = workload {
            let ours = program.is_none().then(|| subject::named(&about.name)).transpose()?;
            if let Some(reason) = ours.and_then(|kind| kind.cannot(workload)) {
                return Ok(Outcome::NotApplicable(reason.to_owned()));
            }
        }
        let scratch = self.home.join("scratch");
        fs::create_dir_all(&scratch)?;
        let measure = Measure {
            subject: about.name.clone(),
            workload: workload.map(|workload| workload.facts().name.to_owned()),
            columns: program.as_ref().map_or_else(|| self.file.clone(), |(_, columns)| columns.clone()),
            prepared: self.home.join(about.name.replace([' ', ','], "-")),
            scratch: scratch.clone(),
            count: self.plan.columns,
            enough_ms: self.plan.enough.as_millis() as u64,
            seed: 7 + round,
        };
        let mut process = Command::new(match program {
            Some((path, _)) => path,
            None => std::env::current_exe()?,
        });
        process.args(measure.arguments()).stderr(Stdio::inherit()).stdin(Stdio::null());
        let output = process.output()?;
        fs::remove_dir_all(&scratch)?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Ok(Outcome::Failed(format!("the process ended with {}", output.status)));
        }
        serde_json::from_str(&printed).map_err(|error| format!("{}: {error}: {printed:?}", about.name).into())
    }
}
