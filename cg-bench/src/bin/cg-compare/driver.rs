//! Runs every workload on every subject, in rounds, each in a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;
use crate::figures::Outcome;
use crate::gather::gather;
use crate::go::Programs;
use crate::measure::Measure;
use crate::plan::Plan;
use crate::quiet::Quiet;
use crate::report::{Measured, Report, Row};
use crate::subject::{self, About, FIXED};
use crate::workload::Workload;

/// Measures all of it.
///
/// # Errors
/// The columns cannot be gathered, or a process cannot be started. A subject that fails is in the report.
pub(crate) fn run(plan: &Plan) -> Result<Report, Failure> {
    let workloads = plan.workloads()?;
    let home = tempfile::Builder::new().prefix("cg-compare-").tempdir_in(&plan.home)?;
    let mut run = Run::begin(plan, home.path())?;
    run.prepare()?;
    let mut measured: Vec<_> =
        workloads.iter().map(|workload| unmeasured(*workload, &run.subjects)).collect();
    for round in 0..plan.rounds {
        run.measure_machine()?;
        let taken = workloads.iter().zip(&mut measured);
        for (workload, measured) in taken.filter(|(workload, _)| round < plan.rounds_of(**workload)) {
            run.round(round, *workload, measured)?;
        }
    }
    Ok(run.report(measured))
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

/// The resources of a run, and its findings beside the workloads.
struct Run<'p> {
    plan: &'p Plan,
    begun: Instant,
    home: &'p Path,
    /// The file of the columns, and what they are.
    file: PathBuf,
    columns: String,
    go: Programs,
    subjects: Vec<About>,
    /// The outcome of preparing each of them.
    ready: Vec<Outcome>,
    conditions: Vec<String>,
    limits: Limits,
    quiet: Quiet,
}

impl<'p> Run<'p> {
    /// Gathers the columns and the subjects.
    fn begin(plan: &'p Plan, home: &'p Path) -> Result<Self, Failure> {
        let begun = Instant::now();
        let (columns, source) = gather(plan.columns)?;
        let file = home.join("columns");
        columns.write(&file)?;
        let each = columns.len_bytes() / columns.terrain.len() as u64;
        let go = Programs::build(home, &columns, |name| plan.wants(name))?;
        let mut subjects: Vec<_> = subject::all().iter().map(|kind| kind.about()).collect();
        subjects.retain(|about| plan.wants(&about.name));
        subjects.extend(go.built.iter().map(|program| program.about.clone()));
        if subjects.is_empty() {
            let unknown = format!("no subject has one of {:?} in its name", plan.subjects);
            return Err(if go.skipped.is_empty() { unknown } else { go.skipped.join("\n") }.into());
        }
        for reason in &go.skipped {
            eprintln!("{reason}");
        }
        let conditions = [plan.conditions.as_slice(), &go.skipped].concat();
        let columns =
            format!("{} columns of 24 chunks, {source}, {each} bytes each before compression", plan.columns);
        let (ready, limits, quiet) = (Vec::new(), Limits::new(), Quiet::default());
        Ok(Self { plan, begun, home, file, columns, go, subjects, ready, conditions, limits, quiet })
    }

    /// Makes the stores that workloads read and copy.
    fn prepare(&mut self) -> Result<(), Failure> {
        for index in 0..self.subjects.len() {
            let begun = Instant::now();
            let outcome = self.start(index, None, 0)?;
            eprintln!("prepared {} in {:.1?}", self.subjects[index].name, begun.elapsed());
            self.ready.push(outcome);
        }
        Ok(())
    }

    /// One round of a workload; another subject begins each round.
    fn round(&mut self, round: u64, workload: Workload, measured: &mut Measured) -> Result<(), Failure> {
        self.quiet.wait(self.plan.patience)?;
        let begun = Instant::now();
        for turn in 0..self.subjects.len() {
            let index = (turn + round as usize) % self.subjects.len();
            let outcome = match &self.ready[index] {
                Outcome::Failed(reason) => Outcome::Failed(format!("when it was prepared: {reason}")),
                _ => self.start(index, Some(workload), round)?,
            };
            measured.rows[index].outcomes.push(outcome);
        }
        eprintln!("round {} of {}: {}: {:.1?}", round + 1, self.plan.rounds, measured.name, begun.elapsed());
        Ok(())
    }

    /// The report of the findings.
    fn report(self, workloads: Vec<Measured>) -> Report {
        let Self { columns, subjects, mut conditions, limits, quiet, begun, .. } = self;
        conditions.push(quiet.sentence());
        conditions.push(format!("the run took {:.1} minutes", begun.elapsed().as_secs_f64() / 60.0));
        let (rounds, fixed) = (self.plan.rounds, FIXED.to_owned());
        Report { conditions, columns, rounds, limits, subjects, fixed, workloads }
    }

    /// Measures the time that the machine needs for the bytes of a column, in a process of its own.
    fn measure_machine(&mut self) -> Result<(), Failure> {
        let scratch = self.home.join("scratch");
        fs::create_dir_all(&scratch)?;
        let mut process = Command::new(std::env::current_exe()?);
        process.arg("limits").arg(&self.file).arg(&scratch).stderr(Stdio::inherit()).stdin(Stdio::null());
        let output = process.output()?;
        fs::remove_dir_all(&scratch)?;
        if !output.status.success() {
            return Err(format!("measuring the machine ended with {}", output.status).into());
        }
        let found: Vec<(String, f64)> = serde_json::from_slice(&output.stdout)?;
        for (name, ns) in found {
            match self.limits.iter_mut().find(|(of, _)| *of == name) {
                Some((_, values)) => values.push(ns),
                None => self.limits.push((name, vec![ns])),
            }
        }
        Ok(())
    }

    /// Starts a process that prepares or measures, and reads what it prints.
    fn start(&self, index: usize, workload: Option<Workload>, round: u64) -> Result<Outcome, Failure> {
        let about = &self.subjects[index];
        let go = self.go.of(about);
        if let (Some(workload), None) = (workload, go)
            && let Some(reason) = subject::named(&about.name)?.cannot(workload)
        {
            return Ok(Outcome::NotApplicable(reason.to_owned()));
        }
        let scratch = self.home.join("scratch");
        fs::create_dir_all(&scratch)?;
        let measure = Measure {
            subject: about.name.clone(),
            workload: workload.map(|workload| workload.facts().name.to_owned()),
            fill: go.is_none() && workload.is_some_and(Workload::has_own_store),
            columns: go.map_or(&self.file, |program| &program.columns).clone(),
            prepared: self.home.join(about.name.replace([' ', ','], "-")),
            scratch: scratch.clone(),
            count: self.plan.columns,
            enough_ms: self.plan.enough.as_millis() as u64,
            seed: 7 + round,
        };
        let path = go.map_or_else(std::env::current_exe, |program| Ok(program.path.clone()))?;
        let mut outcome = ask(&path, &measure)?;
        if measure.fill && !matches!(outcome, Outcome::Failed(_)) {
            outcome = ask(&path, &Measure { fill: false, ..measure })?;
        }
        fs::remove_dir_all(&scratch)?;
        Ok(outcome)
    }
}

/// Runs a process that prepares, fills or measures.
fn ask(path: &Path, measure: &Measure) -> Result<Outcome, Failure> {
    let mut process = Command::new(path);
    process.args(measure.arguments()).stderr(Stdio::inherit()).stdin(Stdio::null());
    let output = process.output()?;
    if !output.status.success() {
        return Ok(Outcome::Failed(format!("the process ended with {}", output.status)));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&printed)
        .map_err(|error| format!("{}: {error}: {printed:?}", measure.subject).into())
}
