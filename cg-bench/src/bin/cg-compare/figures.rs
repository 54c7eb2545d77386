//! Figures that a measuring process prints of one workload.

use serde::{Deserialize, Serialize};

/// The figures of one run of a workload by one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The compared value: nanoseconds, or bytes, for one unit of the workload.
    pub(crate) value: f64,
    /// How many units were measured.
    pub(crate) units: u64,
    /// Single calls, where they are long enough to be timed one by one.
    pub(crate) latency: Option<Latency>,
    /// Bytes that all threads passed to calls of the system that write.
    pub(crate) written_bytes: u64,
    /// Bytes of the saved chunks in their one encoding: what was to be stored. 0 where only blocks were changed.
    pub(crate) saved_bytes: u64,
    /// Bytes of the store's files at the end.
    pub(crate) disk_bytes: u64,
    /// Bytes of all chunks that the store has at the end, in their one encoding. `None` where not all were compared.
    /// Earlier reports and the program in Go do not have it.
    pub(crate) held_bytes: Option<u64>,
    /// The most resident memory beyond that of the process before the store was opened.
    pub(crate) peak_bytes: u64,
    /// Columns whose content was compared afterwards.
    pub(crate) compared_columns: u64,
    /// Where the time went; earlier reports do not have it.
    pub(crate) effort: Option<Effort>,
}

/// Resources that were used while a workload was timed: why it takes as long as it does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Processor time of all threads for one unit.
    pub(crate) processor_ns: f64,
    /// Time of one unit in which the calling thread did not run. A program in Go does not know it.
    pub(crate) waited_ns: Option<f64>,
    /// How often the calling thread slept. A program in Go does not know it.
    pub(crate) sleeps: Option<u64>,
    /// Bytes that all threads asked of calls of the system that read; mapped files do not count.
    pub(crate) read_bytes: u64,
}

/// Percentiles of single calls, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

impl Latency {
    /// Its values with the share of calls that take at most as long.
    pub(crate) fn points(self) -> [(&'static str, u64); 5] {
        [("p50", self.p50), ("p90", self.p90), ("p99", self.p99), ("p99.9", self.p999), ("max", self.max)]
    }
}

/// The outcome of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It was measured, and the content was what had been saved.
    Measured(Figures),
    /// The subject takes no part, for this reason.
    NotApplicable(String),
    /// An error, or content that differs: the figures are worth nothing.
    Failed(String),
}
