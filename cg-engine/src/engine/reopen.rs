//! Reopening the engine of an open world.

use std::sync::Arc;

use super::Engine;
use crate::{CommitSeq, EngineError};

/// The failure that ended an engine's writing.
#[derive(Debug, Clone)]
pub enum Failure {
    /// A write was refused. The next open shows what reached the operating system.
    Write(Arc<EngineError>),
    /// A sync failed. It is unknown what is on the disk, even after the engine is opened again. The operating system
    /// may return data that it holds but could not write.
    Sync(Arc<EngineError>),
}

impl Failure {
    /// The error.
    pub const fn cause(&self) -> &Arc<EngineError> {
        match self {
            Self::Write(cause) | Self::Sync(cause) => cause,
        }
    }
}

/// Opens an engine again. It is writable if the caller expects its newest commit.
///
/// # Errors
/// Errors of the disk, if the engine cannot even be read.
pub type Reopen = Box<dyn Fn(&dyn Fn(CommitSeq) -> bool) -> Result<Reopened, EngineError> + Send>;

/// An engine that was opened again.
#[derive(Debug)]
pub enum Reopened {
    /// Open for writing.
    Writable(Box<dyn Engine>),
    /// Open for reading only: its newest commit is not one that the caller expects.
    Unexpected(Box<dyn Engine>),
    /// Open for reading only: it cannot be opened for writing.
    Reader {
        /// The engine.
        engine: Box<dyn Engine>,
        /// Why it cannot be written.
        cause: EngineError,
    },
}

impl Reopened {
    /// Wraps the engine in another one.
    #[must_use]
    pub fn map<E: Engine>(self, wrap: impl FnOnce(Box<dyn Engine>) -> E) -> Self {
        match self {
            Self::Writable(engine) => Self::Writable(Box::new(wrap(engine))),
            Self::Unexpected(engine) => Self::Unexpected(Box::new(wrap(engine))),
            Self::Reader { engine, cause } => Self::Reader { engine: Box::new(wrap(engine)), cause },
        }
    }
}
