//! Why a world does not open, or does not open again.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

use cg_format::key::Family;

use super::hex;
use crate::engine::{CommitSeq, EngineError};
use crate::storage::location::Location;
use crate::storage::record_shape::RecordShape;

/// Why a world cannot be opened or created. Nothing stored was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no world in this place.
    #[error("{at} is not a world: {why}")]
    NotAWorld {
        /// The place that was to hold the world.
        at: Location,
        /// The missing part.
        why: String,
    },
    /// A world was to be created in a place that is not empty.
    #[error("{at} already holds {}", match at {
        Location::Directory(_) => "files; a world is created in an empty or missing directory",
        Location::Address(_) => "rows; a world is created where there are none",
    })]
    NotEmpty {
        /// The place.
        at: Location,
    },
    /// `world.cg` is that of another world than the rows.
    #[error(
        "{}/world.cg is of world {file}, and the rows in db are of world {rows}: bring back the `world.cg` of world {rows} from a checkpoint or a copy of it",
        path.display()
    )]
    OtherWorld {
        /// The directory.
        path: PathBuf,
        /// The UUID in `world.cg`.
        file: Uuid,
        /// The UUID in the rows.
        rows: Uuid,
    },
    /// Its creation was interrupted: it holds no data of value.
    #[error("{at} was never finished being created; delete {} and create the world again", match at {
        Location::Directory(_) => "the directory",
        Location::Address(_) => "its rows",
    })]
    HalfCreated {
        /// The world.
        at: Location,
    },
    /// A newer release wrote it.
    #[error(
        "{field} is {found}, and this release knows {newest}; open the world with the release that wrote it"
    )]
    NewerFormat {
        /// The version field.
        field: &'static str,
        /// The version found.
        found: u32,
        /// The version that this release knows.
        newest: u32,
    },
    /// `world.cg` is damaged.
    #[error("{} is damaged: {what}; restore it from a backup or a checkpoint of this world", path.display())]
    DamagedWorldFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The record tree of the world has another shape than the requested one.
    #[error(
        "the world's records lie in a tree of shape ({}), and ({}) was asked for; a world keeps its shape for ever",
        stored.settings(),
        offered.settings()
    )]
    RecordShape {
        /// The shape of the world.
        stored: RecordShape,
        /// The requested shape.
        offered: RecordShape,
    },
    /// The world was created for another application, or for another layout of one.
    #[error(
        "{at} has {}, and `{offered}` was asked for",
        stored.as_ref().map_or("no signature".into(), |stored| format!("the signature `{stored}`"))
    )]
    OtherSignature {
        /// The world.
        at: Location,
        /// The world's signature.
        stored: Option<String>,
        /// The requested signature.
        offered: String,
    },
    /// A signature that does not fit into a line.
    #[error("`{}` is no signature; it is 1 to 256 bytes without control characters", found.escape_debug())]
    NotASignature {
        /// The given signature.
        found: String,
    },
    /// The offered packs do not fit the stored registry as they are.
    #[error("the packs need decisions before the world opens:\n{report}")]
    NeedsPlan {
        /// The report of the dry run.
        report: String,
    },
    /// The engine cannot be opened: another process has it, a family is missing, or files are damaged.
    #[error("{at}: {source}")]
    Engine {
        /// The world.
        at: Location,
        /// The error of the engine.
        source: EngineError,
    },
    /// The rows do not continue the history that a world has shown, which follows another writer: they were replaced, or
    /// lost commits. The world still shows what it has shown before.
    #[error(
        "{at} holds another history than the one that was followed: commit {shown} was shown, and the newest commit {found} \
         does not come after it; close this world and open it again"
    )]
    OtherHistory {
        /// The world.
        at: Location,
        /// The newest commit that was shown.
        shown: CommitSeq,
        /// The newest commit that was found.
        found: CommitSeq,
    },
    /// A staged commit is not completely rolled forward, and the world is opened read-only.
    #[error(
        "commit {commit} is not rolled forward to its end, and nothing may be written; open the world for writing once"
    )]
    UnfinishedCommit {
        /// Its number.
        commit: CommitSeq,
    },
    /// A staged commit must be rolled forward, and its rows are damaged. Restore a checkpoint, or call
    /// [`WorldBuilder::salvage_commit`](crate::WorldBuilder::salvage_commit).
    #[error(
        "a commit is to be rolled forward, and row {} of {} is damaged: {what}; restore a checkpoint, or set the damaged part of the commit aside",
        hex(key),
        family.name()
    )]
    DamagedCommit {
        /// The row's family.
        family: Family,
        /// Its key.
        key: Box<[u8]>,
        /// The fault of the row.
        what: String,
    },
    /// The operating system refused to create threads.
    #[error("cannot start the world's threads: {source}")]
    Threads {
        /// The error of the operating system.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system reported an error of the disk.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

/// A world that another writer has, and the commits that the other one may not have.
struct TakenOver<'e> {
    cause: &'e EngineError,
    written: CommitSeq,
    sent: CommitSeq,
    accepted: CommitSeq,
}

impl fmt::Display for TakenOver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, written, sent, accepted } = *self;
        match cause.fence() {
            Some(why) => write!(f, "{why}")?,
            None => write!(f, "{cause}")?,
        }
        f.write_str(": the world belongs to another writer, close it")?;
        let mut part = |from: CommitSeq, to: CommitSeq, one: &str, many: &str| match to.get() - from.get() {
            0 => Ok(()),
            1 => write!(f, "; commit {to} {one}"),
            _ => write!(f, "; commits {} to {to} {many}", from.next()),
        };
        part(written, sent, "may or may not be written", "may or may not be written")?;
        part(sent, accepted, "is not written", "are not written")
    }
}

/// Why a world stays read-only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumed {
    /// A sync failed. The operating system may have dropped what it could not write and may report success for the next
    /// sync. So the content of the disk is unknown.
    #[error(
        "a sync failed, and nobody knows what is on the disk now ({cause}); close the world, check the disk, open the \
         world again and run `cg verify`, or restore a backup"
    )]
    SyncFailed {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Commits that were reported as written are gone. The rest can be read.
    #[error(
        "commits up to {promised} were reported as written, and the newest that was found is {found}; close the world \
         and restore a backup, or open it again and go on without them"
    )]
    LostCommits {
        /// The newest commit that was reported.
        promised: CommitSeq,
        /// The newest that was found.
        found: CommitSeq,
    },
    /// There are commits that this world has not made.
    #[error(
        "the newest commit that was reported as written is {promised}, and {found} was found, which this process has \
         not made; close the world, find out who else writes to its directory, and open it again"
    )]
    UnknownCommits {
        /// The newest commit that was reported.
        promised: CommitSeq,
        /// The newest that was found.
        found: CommitSeq,
    },
    /// Another writer has the world. This one never writes again, and a later `resume` returns this again. If its engine
    /// was given up to resume, it reads nothing more.
    #[error("{}", TakenOver { cause, written: *written, sent: *sent, accepted: *accepted })]
    Fenced {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
        /// The newest commit that was reported as written.
        written: CommitSeq,
        /// The newest commit that was sent. Those after `written`, up to this one, are in doubt: the world of the other
        /// writer shows whether they are there.
        sent: CommitSeq,
        /// The newest commit that was accepted or sent. Those after `sent`, up to this one, are not written.
        accepted: CommitSeq,
    },
    /// The files could not be opened for writing. If they can be read, reads continue.
    #[error("its files could not be opened for writing ({cause}); remove the cause and call `resume` again")]
    NotReopened {
        /// The error of the engine.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Other threads read rows all the time, or one runs a long iteration.
    #[error(
        "its engine was in use for all of {} ms; end long iterations and call `resume` again", waited.as_millis()
    )]
    InUse {
        /// The time that was waited.
        waited: Duration,
    },
}
