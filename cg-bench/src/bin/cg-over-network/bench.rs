//! The state that every group of rows needs.

use std::path::PathBuf;
use std::time::Duration;

use crate::database::Database;

/// The delays: the time of a round trip that is added to that of the machine.
const DELAYS_US: [u64; 3] = [0, 250, 1000];

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A tenth of the repetitions: shows that everything runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// A folder on the disk of the database, in which `fdatasync` is measured.
    #[arg(long, default_value = ".")]
    pub(crate) disk: PathBuf,
    /// How long one view is read while commits go on.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) view_seconds: usize,
    /// The command that lets the primary fail, and says on its standard error when the new one is promoted.
    #[arg(long)]
    pub(crate) fail: Option<String>,
}

/// The database, and how it is measured.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) database: Database,
    pub(crate) options: Options,
}

impl Bench {
    /// The number of repetitions.
    pub(crate) fn times(&self, full: usize) -> usize {
        if self.options.quick { full.div_ceil(10) } else { full }
    }

    /// The delays that are measured.
    pub(crate) fn delays() -> impl Iterator<Item = Duration> {
        DELAYS_US.into_iter().map(Duration::from_micros)
    }
}
