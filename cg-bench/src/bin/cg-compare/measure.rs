//! A process that measures one workload of one subject, and prints the result as a line of JSON.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::columns::Columns;
use crate::failure::Failure;
use crate::figures::Outcome;
use crate::subject;
use crate::work::{self, Bench, prepare};
use crate::workload::Workload;

/// The arguments of such a process.
#[derive(Debug, clap::Args)]
pub(crate) struct Measure {
    #[arg(long)]
    pub(crate) subject: String,
    /// Without one, the stores are prepared that workloads read.
    #[arg(long)]
    pub(crate) workload: Option<String>,
    /// Makes the workload's own store, and measures nothing.
    #[arg(long)]
    pub(crate) fill: bool,
    #[arg(long)]
    pub(crate) columns: PathBuf,
    #[arg(long)]
    pub(crate) prepared: PathBuf,
    #[arg(long)]
    pub(crate) scratch: PathBuf,
    #[arg(long)]
    pub(crate) count: usize,
    #[arg(long)]
    pub(crate) enough_ms: u64,
    #[arg(long)]
    pub(crate) seed: u64,
}

impl Measure {
    /// The command line that says this.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["measure".into(), "--subject".into(), (&self.subject).into()];
        if let Some(workload) = &self.workload {
            arguments.extend(["--workload".into(), workload.into()]);
        }
        arguments.extend(self.fill.then(|| "--fill".into()));
        let paths =
            [("--columns", &self.columns), ("--prepared", &self.prepared), ("--scratch", &self.scratch)];
        arguments.extend(paths.into_iter().flat_map(|(name, path)| [name.into(), path.into()]));
        let numbers =
            [("--count", self.count as u64), ("--enough-ms", self.enough_ms), ("--seed", self.seed)];
        arguments
            .extend(numbers.into_iter().flat_map(|(name, number)| [name.into(), number.to_string().into()]));
        arguments
    }

    /// Measures, and prints the outcome.
    ///
    /// # Errors
    /// There is no such subject or workload, or the columns cannot be read. What a store fails with is an outcome.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let kind = subject::named(&self.subject)?;
        let columns = Columns::read(&self.columns)?;
        let bench = Bench {
            kind: kind.as_ref(),
            columns: &columns,
            prepared: &self.prepared,
            scratch: &self.scratch,
            count: self.count,
            enough: Duration::from_millis(self.enough_ms),
            seed: self.seed,
        };
        let workload = self.workload.as_deref().map(Workload::named).transpose()?;
        let outcome = match workload {
            None => prepare(&bench).map(|()| Outcome::NotApplicable("prepared".to_owned())),
            Some(workload) if self.fill => {
                work::fill(workload, &bench).map(|()| Outcome::NotApplicable("filled".to_owned()))
            }
            Some(workload) => work::run(workload, &bench).map(Outcome::Measured),
        };
        let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        println!("{}", serde_json::to_string(&outcome)?);
        Ok(())
    }
}
