//! Kinds of errors, by the action that the caller can take.

use std::io;

use crate::EngineError;

/// The kind of an error, by the action that the caller can take.
///
/// Match the kind to decide, and print the error to explain. An error that wraps another one has the kind of what the
/// caller can do now. So a world that stopped writing because its disk is full returns [`ReadOnly`](Self::ReadOnly):
/// disk space alone is not enough, it must be resumed.
///
/// | kind | [code](Self::as_str) | what to do |
/// |---|---|---|
/// | `Damaged` | `damaged` | run `cg verify`; restore it or quarantine it |
/// | `Conflict` | `conflict` | read again and try again |
/// | `Busy` | `busy` | wait and try again |
/// | `LowDisk` | `low_disk` | free disk space |
/// | `ReadOnly` | `read_only` | resume the world, or open it for writing |
/// | `Fenced` | `fenced` | close the world: another writer has it |
/// | `Unavailable` | `unavailable` | try again later |
/// | `InDoubt` | `in_doubt` | resume or open the world again, then check what is stored |
/// | `NotFound` | `not_found` | store the named thing, or name another |
/// | `TooLarge` | `too_large` | split it, or raise the limit |
/// | `Invalid` | `invalid` | change the call |
/// | `Closed` | `closed` | open it again |
/// | `Unsupported` | `unsupported` | use another release or engine, or provide what is absent |
/// | `Engine` | `engine` | read the message: the operating system or the storage library failed |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored or received bytes are damaged, or a part of the stored data is absent.
    Damaged,
    /// Another commit changed what this call is based on. Nothing was written.
    Conflict,
    /// A queue is full, or something is in use. Nothing was written.
    Busy,
    /// The disk is full, or has less free space than the host demands. Nothing was committed.
    LowDisk,
    /// Writes are refused; reads go on where they can.
    ReadOnly,
    /// Another writer has the world. Nothing was written.
    Fenced,
    /// The storage is not reachable now. Nothing was written.
    Unavailable,
    /// It is unknown whether a commit is stored, or stays stored. Do not repeat it before that is known.
    InDoubt,
    /// The named thing is not stored.
    NotFound,
    /// Something exceeds a limit.
    TooLarge,
    /// The call contradicts itself or what is stored. It fails again unless it is changed.
    Invalid,
    /// The handle refers to something that was closed or released.
    Closed,
    /// This release, engine or host does not support it.
    Unsupported,
    /// The operating system or the storage library failed.
    Engine,
}

impl ErrorKind {
    /// The code of the kind, for programs in other languages. It never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::LowDisk => "low_disk",
            Self::ReadOnly => "read_only",
            Self::Fenced => "fenced",
            Self::Unavailable => "unavailable",
            Self::InDoubt => "in_doubt",
            Self::NotFound => "not_found",
            Self::TooLarge => "too_large",
            Self::Invalid => "invalid",
            Self::Closed => "closed",
            Self::Unsupported => "unsupported",
            Self::Engine => "engine",
        }
    }

    /// The kind of an error of the operating system on a file.
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::LowDisk,
            _ => Self::Engine,
        }
    }
}

impl EngineError {
    /// The kind of the error, by the action that the caller can take.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::NoSpace { .. } => ErrorKind::LowDisk,
            Self::WriteFailed { .. } | Self::SyncFailed { .. } | Self::Panicked { .. } => ErrorKind::InDoubt,
            // Resuming does not help against another writer.
            Self::ReadOnly { cause } | Self::NotReopened { cause } if cause.fence().is_some() => {
                ErrorKind::Fenced
            }
            Self::ReadOnly { .. } | Self::NotReopened { .. } | Self::OpenedReadOnly => ErrorKind::ReadOnly,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Unavailable { .. } | Self::SnapshotGone { .. } => ErrorKind::Unavailable,
            Self::Closed => ErrorKind::Closed,
            Self::Locked { .. } | Self::InUse { .. } => ErrorKind::Busy,
            Self::MissingFamily { .. }
            | Self::Corrupt { .. }
            | Self::LostCommits { .. }
            | Self::OtherHistory { .. } => ErrorKind::Damaged,
            Self::UnknownFamily { .. } | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::NotAnEngineDir { .. } => ErrorKind::NotFound,
            Self::AlreadyExists { .. } => ErrorKind::Invalid,
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::ProcessLimit { .. } | Self::Other { .. } => ErrorKind::Engine,
        }
    }
}

#[cfg(test)]
mod tests;
