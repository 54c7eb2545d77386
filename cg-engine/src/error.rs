//! The errors of an engine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cg_format::key::{self, Family};
use cg_format::{ClusterTier, Space};

use super::{CommitSeq, Fence};

/// Why an engine refused a call, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A guarded row does not have the expected version. Nothing was written. Read it again and decide.
    #[error(
        "{} row {} has {}, expected was {}: nothing was written",
        space.family().name(), Hex(key), Version(*found), Version(*expected)
    )]
    Conflict {
        /// The space of the row.
        space: Space,
        /// The row's key.
        key: Box<[u8]>,
        /// The version that the guard expects; `None`: no row.
        expected: Option<u64>,
        /// The version found; `None`: no row.
        found: Option<u64>,
    },
    /// The batch exceeds the engine's limit. Nothing was written. Stage it in parts.
    #[error("a batch of {len_bytes} bytes exceeds the limit of {max_bytes}: nothing was written")]
    TooLarge {
        /// Bytes of the batch.
        len_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The disk is full. Nothing of this commit was written. Free disk space and call `World::resume`, or open the
    /// world again.
    #[error(
        "the disk is full, nothing was written: {message}; make room, then resume the world or open it again"
    )]
    NoSpace {
        /// The message of the operating system.
        message: String,
    },
    /// Writing failed. Resuming or opening the world again finds out whether this commit survives. If the commit was
    /// accepted before it was written, readers see it meanwhile, and `World::resume` writes it.
    #[error(
        "the commit failed while it was written: {cause}; resume the world or open it again, then look whether it is there"
    )]
    WriteFailed {
        /// The error of the write.
        #[source]
        cause: Arc<EngineError>,
    },
    /// The sync that this commit waited for failed. It is applied, but may not survive a power cut.
    #[error("syncing commit {seq} failed; it may be lost at a power cut: {cause}")]
    SyncFailed {
        /// The newest commit that the sync would have covered.
        seq: CommitSeq,
        /// The error of the sync.
        #[source]
        cause: Arc<EngineError>,
    },
    /// The engine refuses commits; reads go on. Nothing was written. `World::resume` opens the engine again.
    #[error("the engine takes no commits until the world is resumed or opened again: {cause}")]
    ReadOnly {
        /// The failure that made it read-only.
        #[source]
        cause: Arc<EngineError>,
    },
    /// The engine was closed to be opened again, and opening failed. Nothing can be read, and nothing was written.
    #[error(
        "the engine could not be opened again, so nothing can be read or written: {cause}; call `World::resume` again"
    )]
    NotReopened {
        /// Why it could not be opened.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Another engine took the rows for writing. Nothing was written, and this engine never writes again. Close the
    /// world; it belongs to the other writer.
    ///
    /// A write that may have arrived before the rows were taken is a [`WriteFailed`](Self::WriteFailed) with this
    /// cause.
    #[error("{why}: another writer has the world; nothing was written, close it")]
    Fenced {
        /// How the engine knows.
        why: Fence,
    },
    /// The storage cannot be reached. Only reads and snapshots return this; the same call may succeed later. If a
    /// commit or sync cannot reach the storage, writing ends as after any failed write.
    #[error("the storage cannot be reached: {message}; call again when it can")]
    Unavailable {
        /// The error of the network.
        message: String,
    },
    /// The storage no longer has the state of a snapshot. Take another snapshot and read again.
    #[error("the storage no longer has the state of commit {seq}: take another snapshot and read again")]
    SnapshotGone {
        /// The newest commit of the snapshot.
        seq: CommitSeq,
    },
    /// The engine panicked during an operation. The next open finds out what was written.
    #[error("{operation} panicked: {message}; the log of the process says where")]
    Panicked {
        /// The operation.
        operation: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// It was opened for reading only. Nothing was written.
    #[error("the engine was opened for reading only: nothing was written")]
    OpenedReadOnly,
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed,
    /// Another process has the directory open.
    #[error("{} is open {}", dir.display(), Owner(*by))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The process that holds it, if it stored its id; it may be this process.
        by: Option<u32>,
    },
    /// Another process has the rows open for writing. Nothing was changed. Close the world there, or take the rows from
    /// it.
    #[error("{place} is open for writing by {owner}; close it there first, or take it from that process")]
    InUse {
        /// The address of the rows, without a password.
        place: String,
        /// The process that has them, as the storage knows it.
        owner: String,
    },
    /// A family is absent: other code made the directory, or its creation was interrupted.
    #[error("{} has no family {}: not a complete world", dir.display(), family.name())]
    MissingFamily {
        /// The directory.
        dir: PathBuf,
        /// Which family.
        family: Family,
    },
    /// The directory has a family that this release does not know. Use a newer release. Nothing was changed.
    #[error("{} has the unknown family {name:?}; use the release that made it", dir.display())]
    UnknownFamily {
        /// The directory.
        dir: PathBuf,
        /// Its name.
        name: String,
    },
    /// There is no engine in the directory.
    #[error("{} holds no world data: {reason}", dir.display())]
    NotAnEngineDir {
        /// The directory.
        dir: PathBuf,
        /// The absent part.
        reason: String,
    },
    /// The directory already holds an engine.
    #[error("{} already holds world data", dir.display())]
    AlreadyExists {
        /// The directory.
        dir: PathBuf,
    },
    /// Stored bytes are damaged. Nothing was changed. Run `cg verify`.
    #[error("{place} is damaged: {message}")]
    Corrupt {
        /// The damaged place.
        place: Place,
        /// How the damage was noticed.
        message: String,
    },
    /// Commits that were synced are lost. Nothing was changed. Restore the log or a backup, or accept the loss.
    #[error(
        "commits up to {floor} were synced, but the newest found is {found}: a file *.log is missing or cut, or the MANIFEST was cut; put it back, restore a checkpoint, or accept the loss with `cg accept-loss`"
    )]
    LostCommits {
        /// The newest commit known to have been synced.
        floor: CommitSeq,
        /// The newest commit found.
        found: CommitSeq,
    },
    /// A file belongs to another history of this world: to a copy that went on by itself. Nothing was changed.
    #[error(
        "file {file} is of another history of this world: commit {commit} is of opening {found:08x} there, and of opening {expected:08x} in the other files; move it away and put the file of this world back, or restore a checkpoint"
    )]
    OtherHistory {
        /// Its name in the engine's directory.
        file: String,
        /// The commit whose opening differs.
        commit: CommitSeq,
        /// A part of the number of the opening that made it, as the file says; 0 for one of an earlier draft.
        found: u32,
        /// The same as the other files say.
        expected: u32,
    },
    /// The engine does not support the call.
    #[error("this engine cannot {what}")]
    Unsupported {
        /// The unsupported operation.
        what: &'static str,
    },
    /// The limits of the process are too low for the storage library, which would end the process. Nothing was
    /// opened.
    #[error(
        "the system refuses this process what the engine needs, {what}: {source}; raise the limits of the process (`ulimit -a` shows them)"
    )]
    ProcessLimit {
        /// The requested resource.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system refused an operation on a file.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The storage library refused an operation.
    #[error("{operation}: {source}")]
    Other {
        /// The operation.
        operation: &'static str,
        /// The error of the library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl EngineError {
    /// How the engine knows that another writer has its rows, if that is the error or its cause.
    pub fn fence(&self) -> Option<&Fence> {
        match self {
            Self::Fenced { why } => Some(why),
            Self::WriteFailed { cause }
            | Self::SyncFailed { cause, .. }
            | Self::ReadOnly { cause }
            | Self::NotReopened { cause } => cause.fence(),
            _ => None,
        }
    }

    /// The error of a commit that was applied, if a call after it returned this one.
    #[must_use]
    pub fn of_applied(self, seq: CommitSeq) -> Self {
        if self.wrote_nothing() { Self::SyncFailed { seq, cause: Arc::new(self) } } else { self }
    }

    /// Whether a commit that failed with this error certainly wrote nothing.
    pub const fn wrote_nothing(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::TooLarge { .. }
                | Self::NoSpace { .. }
                | Self::ReadOnly { .. }
                | Self::NotReopened { .. }
                | Self::Fenced { .. }
                | Self::OpenedReadOnly
                | Self::Closed
        )
    }
}

/// Where the damage is, as precisely as the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A row, by key.
    Row {
        /// Its family.
        family: Family,
        /// Its key.
        key: Box<[u8]>,
    },
    /// An unknown place in a family.
    Family(Family),
    /// A file of the engine's directory, from an offset on.
    File {
        /// Its name in the directory.
        name: String,
        /// The offset of the damaged part.
        offset_bytes: u64,
    },
    /// A sorted file of the engine's directory.
    Table(Box<Table>),
    /// An unknown place in the engine's directory.
    Dir(PathBuf),
    /// An unknown place.
    Unknown,
}

impl Place {
    /// The family of the place, if it is known.
    pub const fn family(&self) -> Option<Family> {
        match self {
            Self::Row { family, .. } | Self::Family(family) => Some(*family),
            Self::Table(table) => Some(table.family),
            Self::File { .. } | Self::Dir(_) | Self::Unknown => None,
        }
    }
}

/// A sorted file, and its first and last key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name in the engine's directory.
    pub name: String,
    /// The family whose rows it holds.
    pub family: Family,
    /// The first key.
    pub from: Box<[u8]>,
    /// The last key.
    pub to: Box<[u8]>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { family, key } => write!(f, "{} row {}", family.name(), Hex(key)),
            Self::Family(family) => write!(f, "family {}", family.name()),
            Self::File { name, offset_bytes } => write!(f, "file {name} at byte {offset_bytes}"),
            Self::Table(table) => {
                let Table { name, family, from, to } = &**table;
                let words = |key: &[u8]| {
                    let words = Space::of_row(*family, key).and_then(|space| row_in_words(space, key));
                    words.unwrap_or_else(|| Hex(key).to_string())
                };
                write!(
                    f,
                    "file {name} of {}, with rows from {} to {},",
                    family.name(),
                    words(from),
                    words(to)
                )
            }
            Self::Dir(dir) => write!(f, "{}", dir.display()),
            Self::Unknown => f.write_str("a place that nobody named"),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

struct Version(Option<u64>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => write!(f, "version {version}"),
            None => f.write_str("no row"),
        }
    }
}

struct Owner(Option<u32>);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) if pid == std::process::id() => {
                f.write_str("already: this process has it; use that handle, or drop all handles to it first")
            }
            Some(pid) => write!(f, "in process {pid}; close it there first"),
            None => f.write_str("in another process; close it there first"),
        }
    }
}

/// Describes a row by its key, if the key can be decoded.
pub fn row_in_words(space: Space, row: &[u8]) -> Option<String> {
    let tier = match space {
        Space::ChunkL0 => return key::decode_chunk(row).ok().map(|at| at.to_string()),
        Space::ChunkDelta => return key::decode_delta(row).ok().map(|(at, _)| format!("a delta of {at}")),
        Space::Entity => return key::decode_entity(row).ok().map(|id| format!("entity {id}")),
        Space::Object => return Some(format!("object `{}`", row.escape_ascii())),
        Space::ClusterL1 => ClusterTier::L1,
        Space::ClusterL2 => ClusterTier::L2,
        _ => return None,
    };
    let (dimension, pos) = key::decode_cluster(tier, row).ok()?;
    Some(format!("{pos} of dimension {}", dimension.get()))
}
