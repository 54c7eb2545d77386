//! Opening an engine again under the same world.

use std::sync::Arc;

use super::Engine;
use crate::{CommitSeq, EngineError};

/// What ended an engine's writing.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A write was refused. The next open shows what reached the system.
    Write(Arc<EngineError>),
    /// A sync failed. What is on the disk is unknown, also to an engine that is opened again: the system may
    /// show what it has and could not write.
    Sync(Arc<EngineError>),
}

impl Failure {
    /// What failed.
    pub const fn cause(&self) -> &Arc<EngineError> {
        match self {
            Self::Write(cause) | Self::Sync(cause) => cause,
        }
    }
}

/// Opens an engine again, for writing if its newest commit is one that the caller expects.
///
/// # Errors
/// What the disk says, if it cannot even be read.
pub type Reopen = Box<dyn Fn(&dyn Fn(CommitSeq) -> bool) -> Result<Reopened, EngineError> + Send>;

/// An engine that was opened again.
#[derive(Debug)]
pub enum Reopened {
    /// For writing.
    Writable(Box<dyn Engine>),
    /// For reading only: its newest commit is none that was expected.
    Unexpected(Box<dyn Engine>),
    /// For reading only: it cannot be opened for writing.
    Reader {
        /// The engine.
        engine: Box<dyn Engine>,
        /// Why it can only be read.
        cause: EngineError,
    },
}

impl Reopened {
    /// The same for an engine around this one.
    #[must_use]
    pub fn map<E: Engine>(self, wrap: impl FnOnce(Box<dyn Engine>) -> E) -> Self {
        match self {
            Self::Writable(engine) => Self::Writable(Box::new(wrap(engine))),
            Self::Unexpected(engine) => Self::Unexpected(Box::new(wrap(engine))),
            Self::Reader { engine, cause } => Self::Reader { engine: Box::new(wrap(engine)), cause },
        }
    }
}
