//! Why a run ends early.

/// Any error at all: a run prints it and ends.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
