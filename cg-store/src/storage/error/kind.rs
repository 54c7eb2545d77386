//! Kinds of the store's errors, by the action that the caller can take.

use super::{Error, NotResumed, OpenError};
use crate::engine::ErrorKind;

impl Error {
    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Corrupt(_) | Self::Registry(_) | Self::UnknownGeneration { .. } => ErrorKind::Damaged,
            Self::Conflict { .. } | Self::SnapshotReplaced { .. } => ErrorKind::Conflict,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::LowDiskSpace { .. } => ErrorKind::LowDisk,
            Self::EntityUnknown { .. }
            | Self::OwnerAbsent { .. }
            | Self::ChunkAbsent { .. }
            | Self::NotKept { .. } => ErrorKind::NotFound,
            Self::ColumnTooHigh { .. } | Self::TooLarge { .. } | Self::TooLong(_) | Self::OpacityTile(_) => {
                ErrorKind::TooLarge
            }
            Self::SnapshotName { .. }
            | Self::SnapshotExists { .. }
            | Self::Position(_)
            | Self::Point(_)
            | Self::Nested
            | Self::EntityOwned { .. }
            | Self::UnknownBlock { .. }
            | Self::UnknownDimension { .. }
            | Self::WrongSchema { .. }
            | Self::UnknownSide { .. }
            | Self::UnknownEntityType { .. }
            | Self::UnknownComponent { .. }
            | Self::WrongComponentWidth { .. }
            | Self::IllegalValue(_)
            | Self::ObjectKey { .. }
            | Self::VersionGoesBack { .. }
            | Self::NegativeVersion { .. }
            | Self::VersionsUsedUp { .. }
            | Self::Edit(_)
            | Self::EditPanicked { .. }
            | Self::Setting { .. }
            | Self::BoxLength { .. }
            | Self::Policy(_)
            | Self::Name(_) => ErrorKind::Invalid,
            Self::NotUpgraded { .. } | Self::EntityNotUpgraded { .. } => ErrorKind::Unsupported,
            Self::Closed => ErrorKind::Closed,
            Self::LoadPanicked { .. } => ErrorKind::Engine,
            Self::DeferredWrite { error, .. } => error.kind(),
            Self::Open(error) => error.kind(),
            Self::Layer { kind, .. } => *kind,
            Self::NotResumed(error) => error.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    /// Whether the same call may succeed if it is repeated, without doing anything twice.
    ///
    /// So it is `false` for [`ErrorKind::InDoubt`], and for [`DeferredWrite`](Self::DeferredWrite): that call has done
    /// its work, and only its batch can be submitted again.
    pub fn is_retryable(&self) -> bool {
        let may_pass = matches!(self.kind(), ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Unavailable);
        may_pass && !matches!(self, Self::DeferredWrite { .. })
    }
}

impl OpenError {
    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAWorld { .. } => ErrorKind::NotFound,
            Self::HalfCreated { .. }
            | Self::OtherWorld { .. }
            | Self::DamagedWorldFile { .. }
            | Self::DamagedCommit { .. } => ErrorKind::Damaged,
            Self::NotEmpty { .. }
            | Self::RecordShape { .. }
            | Self::OtherSignature { .. }
            | Self::NotASignature { .. }
            | Self::NeedsPlan { .. } => ErrorKind::Invalid,
            Self::NewerFormat { .. } => ErrorKind::Unsupported,
            Self::OtherHistory { .. } => ErrorKind::Fenced,
            Self::UnfinishedCommit { .. } => ErrorKind::ReadOnly,
            Self::Engine { source, .. } => source.kind(),
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::Threads { .. } => ErrorKind::Engine,
        }
    }
}

impl NotResumed {
    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::SyncFailed { .. } => ErrorKind::InDoubt,
            Self::LostCommits { .. } => ErrorKind::Damaged,
            Self::UnknownCommits { .. } | Self::Fenced { .. } => ErrorKind::Fenced,
            Self::NotReopened { cause } => cause.kind(),
            Self::InUse { .. } => ErrorKind::Busy,
        }
    }
}

#[cfg(test)]
mod tests;
