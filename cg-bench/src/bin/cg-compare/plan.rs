//! How much of the comparison is run.

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Failure;
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
    /// Conditions that the caller knows of the machine and the commit.
    pub(crate) conditions: Vec<String>,
    /// The folder of the stores while they are measured.
    pub(crate) home: PathBuf,
}

impl Plan {
    /// Whether a subject takes part.
    pub(crate) fn wants(&self, subject: &str) -> bool {
        self.subjects.is_empty() || self.subjects.iter().any(|part| subject.contains(part.as_str()))
    }

    /// The workloads that are measured.
    pub(crate) fn workloads(&self) -> Result<Vec<Workload>, Failure> {
        let chosen = |workload: &Workload| {
            let all = workload.is_quick() || !self.quick;
            self.only.as_ref().map_or(all, |part| workload.facts().name.contains(part.as_str()))
        };
        let workloads: Vec<_> = Workload::all().filter(chosen).collect();
        if workloads.is_empty() {
            let only = self.only.as_deref().unwrap_or_default();
            return Err(format!("no workload has {only:?} in its name").into());
        }
        Ok(workloads)
    }

    /// How often a workload is measured.
    pub(crate) fn rounds_of(&self, workload: Workload) -> u64 {
        self.rounds.min(workload.most_rounds())
    }
}
