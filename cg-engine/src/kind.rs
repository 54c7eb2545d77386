//! What a caller can do about an error.

use std::io;

use crate::EngineError;

/// What a caller can do about an error, whatever its text says.
///
/// Match the kind to decide, and print the error to explain. The kind of an error that wraps another one is that of what
/// the caller can do now. So a world that stopped writing because its disk is full answers [`ReadOnly`](Self::ReadOnly):
/// it must be resumed, and not only given room.
///
/// | kind | [code](Self::as_str) | what to do |
/// |---|---|---|
/// | `Damaged` | `damaged` | run `cg verify`; restore it or quarantine it |
/// | `Conflict` | `conflict` | read again and try again |
/// | `Busy` | `busy` | wait and try again |
/// | `LowDisk` | `low_disk` | make room on the disk |
/// | `ReadOnly` | `read_only` | resume the world, or open it for writing |
/// | `Fenced` | `fenced` | close the world: another writer has it |
/// | `Unavailable` | `unavailable` | try again later |
/// | `InDoubt` | `in_doubt` | resume or open the world again, then look what is stored |
/// | `NotFound` | `not_found` | store what is named, or name something else |
/// | `TooLarge` | `too_large` | split it, or raise the limit |
/// | `Invalid` | `invalid` | change the call |
/// | `Closed` | `closed` | open it again |
/// | `Unsupported` | `unsupported` | use another release or engine, or bring what is missing |
/// | `Engine` | `engine` | read the text: the system or the storage library failed |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored or received bytes are damaged, or a part of what is stored is missing.
    Damaged,
    /// Another commit changed what this call is built on. Nothing was written.
    Conflict,
    /// A queue is full, or something is in use. Nothing was written.
    Busy,
    /// The disk is full, or less is free than the host demands. Nothing was committed.
    LowDisk,
    /// Nothing may be written; reads go on where they can.
    ReadOnly,
    /// Another writer has the world. Nothing was written.
    Fenced,
    /// The storage does not answer now. Nothing was written.
    Unavailable,
    /// It is unknown whether a commit is stored, or stays stored. Do not repeat it before that is known.
    InDoubt,
    /// What was named is not stored.
    NotFound,
    /// Something exceeds a limit.
    TooLarge,
    /// The call contradicts itself or what is stored. It fails again unless it is changed.
    Invalid,
    /// The handle is of something that was closed or released.
    Closed,
    /// This release, engine or host cannot do it.
    Unsupported,
    /// The system or the storage library failed.
    Engine,
}

impl ErrorKind {
    /// A code for programs in other languages. It never changes.
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

    /// The kind of what the system said about a file.
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::LowDisk,
            _ => Self::Engine,
        }
    }
}

impl EngineError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::NoSpace { .. } => ErrorKind::LowDisk,
            Self::WriteFailed { .. } | Self::SyncFailed { .. } | Self::Panicked { .. } => ErrorKind::InDoubt,
            // Resuming does not help against another writer.
            Self::ReadOnly { cause } | Self::NotReopened { cause } if cause.is_fenced() => ErrorKind::Fenced,
            Self::ReadOnly { .. } | Self::NotReopened { .. } | Self::OpenedReadOnly => ErrorKind::ReadOnly,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Unavailable { .. } | Self::SnapshotGone { .. } => ErrorKind::Unavailable,
            Self::Closed => ErrorKind::Closed,
            Self::Locked { .. } => ErrorKind::Busy,
            Self::MissingFamily { .. } | Self::Corrupt { .. } | Self::LostCommits { .. } => {
                ErrorKind::Damaged
            }
            Self::UnknownFamily { .. } | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::NotAnEngineDir { .. } => ErrorKind::NotFound,
            Self::AlreadyExists { .. } => ErrorKind::Invalid,
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::ProcessLimit { .. } | Self::Other { .. } => ErrorKind::Engine,
        }
    }

    /// Whether another writer is the cause.
    fn is_fenced(&self) -> bool {
        match self {
            Self::Fenced { .. } => true,
            Self::WriteFailed { cause }
            | Self::SyncFailed { cause, .. }
            | Self::ReadOnly { cause }
            | Self::NotReopened { cause } => cause.is_fenced(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
