//! Why a command did not run to its end: a code for scripts, and the exit code that belongs to it.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use cg_anvil::export::ExportError;
use cg_anvil::export::into::IntoError;
use cg_anvil::import::ImportError;
use cg_anvil::save::SaveError;
use cg_anvil::schem;
use cg_format::DecodeError;
use cg_map::MapError;
use cg_snapshot::schem::SchemError;
use cg_snapshot::{CaptureError, RestoreError, SnapshotError};
use cg_store::engine::{EngineError, ErrorKind};
use cg_store::error::{ArchiveError, Location, NotResumed};
use cg_store::{OpenError, directory};

/// Code by which scripts tell failures apart. A code never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command was asked for something that it cannot do.
    Usage,
    /// It was asked for a dimension that the world does not have.
    UnknownDimension,
    /// Stored bytes are damaged.
    Damaged,
    /// Something that was stored is gone.
    Lost,
    /// The world or the disk refused, and nothing is damaged.
    Refused,
    /// The named thing is not there.
    Absent,
    /// Another process has the world open.
    Held,
    /// Anything else: the message says what.
    Failed,
}

/// Why a command did not run to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command knows the code.
    Known(Code, String),
    /// The error tells the code.
    Failed(Box<dyn StdError + Send + Sync>),
}

impl Code {
    /// All of them, which the help and the docs are compared with.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Usage,
        Self::UnknownDimension,
        Self::Damaged,
        Self::Lost,
        Self::Refused,
        Self::Absent,
        Self::Held,
        Self::Failed,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::UnknownDimension => "unknown_dimension",
            Self::Damaged => "damaged",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Absent => "absent",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }

    /// The exit code of a command that ends so.
    pub(crate) const fn exit(self) -> u8 {
        match self {
            Self::Damaged | Self::Lost | Self::Refused | Self::Failed => 1,
            Self::Usage | Self::UnknownDimension => 2,
            Self::Held => 3,
            Self::Absent => 4,
        }
    }

    /// The code of an error, by the first one in its chain that tells it.
    fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(code) = Self::told_by(error) {
                return code;
            }
            next = error.source();
        }
        Self::Failed
    }

    /// The code of an error by its type, without its source.
    fn told_by(error: &(dyn StdError + 'static)) -> Option<Self> {
        type Store = cg_store::Error;
        if let Some(error) = error.downcast_ref::<Store>() {
            return Some(Self::of_store(error));
        }
        if let Some(error) = error.downcast_ref::<OpenError>() {
            return Some(Self::of_open(error));
        }
        if let Some(error) = error.downcast_ref::<EngineError>() {
            return Some(Self::of_engine(error));
        }
        // An error that is shown as another one has the source of that, so the other one is looked for here.
        let store = match error.downcast_ref::<ExportError>() {
            Some(ExportError::Store(error)) => Some(error),
            _ => None,
        };
        let store = store.or_else(|| match error.downcast_ref::<ImportError>()? {
            ImportError::Store(error) => Some(error),
            _ => None,
        });
        let store = store.or_else(|| match error.downcast_ref::<MapError>()? {
            MapError::Store(error) => Some(error),
            _ => None,
        });
        let store = store.or_else(|| match error.downcast_ref::<schem::ImportError>()? {
            schem::ImportError::Store(error) => Some(error),
            _ => None,
        });
        let store = store.or_else(|| match error.downcast_ref::<schem::ExportError>()? {
            schem::ExportError::Store(error) => Some(error),
            _ => None,
        });
        if let Some(error) = store {
            return Some(Self::of_store(error));
        }
        if let Some(error) = error.downcast_ref::<ArchiveError>() {
            return match error {
                ArchiveError::Store(error) => Some(Self::of_store(error)),
                ArchiveError::Io(error) => Self::of_io(error),
                _ => Some(Self::Damaged),
            };
        }
        if let Some(error) = error.downcast_ref::<RestoreError<Store>>() {
            return match error {
                RestoreError::Snapshot(error) => Self::of_snapshot(error),
                RestoreError::TooMuch { .. } => Some(Self::Refused),
                _ => None,
            };
        }
        if let Some(CaptureError::Snapshot(error)) = error.downcast_ref::<CaptureError<Store>>() {
            return Self::of_snapshot(error);
        }
        if let Some(error) = error.downcast_ref::<SnapshotError>() {
            return Self::of_snapshot(error);
        }
        if let Some(error) = error.downcast_ref::<SchemError>() {
            return (!matches!(error, SchemError::Io(_))).then_some(Self::Damaged);
        }
        if error.is::<DecodeError>() {
            return Some(Self::Damaged);
        }
        if let Some(IntoError::InUse(_)) = error.downcast_ref::<IntoError>() {
            return Some(Self::Held);
        }
        if let Some(MapError::Empty) = error.downcast_ref::<MapError>() {
            return Some(Self::Absent);
        }
        if let Some(ImportError::Progress { .. }) = error.downcast_ref::<ImportError>() {
            return Some(Self::Damaged);
        }
        if let Some(ImportError::Save(SaveError::Io { source, .. })) = error.downcast_ref::<ImportError>() {
            return Self::of_io(source);
        }
        error.downcast_ref::<io::Error>().and_then(Self::of_io)
    }

    fn of_store(error: &cg_store::Error) -> Self {
        match error {
            cg_store::Error::Open(error) => Self::of_open(error),
            cg_store::Error::Engine(error) => Self::of_engine(error),
            cg_store::Error::DeferredWrite { error, .. } => Self::of_store(error),
            cg_store::Error::NotResumed(NotResumed::LostCommits { .. }) => Self::Lost,
            other => Self::of_kind(other.kind()),
        }
    }

    fn of_open(error: &OpenError) -> Self {
        match error {
            OpenError::Engine { source: EngineError::NotAnEngineDir { .. }, .. } => Self::Lost,
            OpenError::Engine { source, .. } => Self::of_engine(source),
            // Rows without the file that makes them a world.
            OpenError::NotAWorld { at: Location::Directory(path), .. }
                if directory::engine_dir(path).is_dir() =>
            {
                Self::Lost
            }
            other => Self::of_kind(other.kind()),
        }
    }

    fn of_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Locked { .. } | EngineError::InUse { .. } | EngineError::Fenced { .. } => Self::Held,
            EngineError::LostCommits { .. } => Self::Lost,
            other => Self::of_kind(other.kind()),
        }
    }

    const fn of_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Damaged => Self::Damaged,
            ErrorKind::NotFound => Self::Absent,
            ErrorKind::Fenced => Self::Held,
            ErrorKind::Conflict
            | ErrorKind::LowDisk
            | ErrorKind::ReadOnly
            | ErrorKind::TooLarge
            | ErrorKind::Invalid
            | ErrorKind::Unsupported => Self::Refused,
            _ => Self::Failed,
        }
    }

    fn of_snapshot(error: &SnapshotError) -> Option<Self> {
        match error {
            SnapshotError::Decode(_) | SnapshotError::Unverifiable { .. } => Some(Self::Damaged),
            SnapshotError::Io(error) => Self::of_io(error),
            _ => Some(Self::Refused),
        }
    }

    fn of_io(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::NotFound => Some(Self::Absent),
            io::ErrorKind::AlreadyExists => Some(Self::Refused),
            _ => None,
        }
    }
}

/// Whether an error says that another process has a world or a save open.
pub(crate) fn is_held(error: &(dyn StdError + 'static)) -> bool {
    Code::of(error) == Code::Held
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Known(Code::Usage, message.into())
    }

    pub(crate) fn unknown_dimension(message: impl Into<String>) -> Self {
        Self::Known(Code::UnknownDimension, message.into())
    }

    /// The named thing is not there.
    pub(crate) fn absent(message: impl Into<String>) -> Self {
        Self::Known(Code::Absent, message.into())
    }

    /// Refusal of a request that would be wrong here; nothing was changed.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Known(Code::Refused, message.into())
    }

    /// Bytes that are not what was written.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::Known(Code::Damaged, message.into())
    }

    pub(crate) fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    /// Error of a library with the options of the tool that do something about it.
    pub(crate) fn advised(error: &(dyn StdError + 'static), advice: &str) -> Self {
        Self::Known(Code::of(error), format!("{error} ({advice})"))
    }

    /// Error of the system about a file.
    pub(crate) fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot {action} {}: {error}", path.display());
        Self::Known(Code::of_io(error).unwrap_or(Code::Failed), message)
    }

    /// Code by which a script tells failures apart.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Known(code, _) => *code,
            Self::Failed(error) => Code::of(&**error),
        }
    }
}

impl From<cg_store::Error> for Failure {
    fn from(error: cg_store::Error) -> Self {
        Self::failed(error)
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::failed(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::failed(error)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::failed(error)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(_, message) => f.write_str(message),
            Self::Failed(error) => Display::fmt(error, f),
        }
    }
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        Self::from(failure.code().exit())
    }
}
