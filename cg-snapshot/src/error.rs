//! Errors, sorted by who can act on them.

use std::fmt;
use std::io;

use cg_format::chunk::EditError;
use cg_format::{ChunkAt, DecodeError, EntityId};
use cg_registry::{ListKind, Name};

/// A snapshot is damaged or cannot hold something. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes are not a valid snapshot.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The box is too large for one snapshot.
    #[error("the box has {found} sections of 16³ blocks, a snapshot holds at most {max}")]
    TooManySections {
        /// The number of sections of the box.
        found: u128,
        /// The maximum of a snapshot.
        max: u64,
    },
    /// A name is too long to be stored.
    #[error("the snapshot's name has {len_bytes} bytes, at most {max_bytes} can be stored")]
    NameTooLong {
        /// The name's length.
        len_bytes: usize,
        /// The maximum that can be stored.
        max_bytes: usize,
    },
    /// The catalog does not know an id that is in use, so it is not the one that issued the id.
    #[error("{list} has no entry {id}, which the region uses; give the catalog that issued its ids")]
    UnknownId {
        /// The list.
        list: ListKind,
        /// The unknown id.
        id: u64,
    },
    /// A section cannot be stored: the schema does not explain a part of its components.
    #[error("{at}: {error}")]
    Section {
        /// Its chunk.
        at: ChunkAt,
        /// Why.
        error: EditError,
    },
    /// A section's bytes are not those that were captured.
    #[error("{at} cannot be verified: its checksum is {found:#010x}, the snapshot says {expected:#010x}")]
    Unverifiable {
        /// Its chunk.
        at: ChunkAt,
        /// The checksum of its bytes.
        found: u32,
        /// The stored checksum.
        expected: u32,
    },
    /// A section was lost when its file was read.
    #[error("{at} was not readable in the snapshot's file")]
    Lost {
        /// Its chunk.
        at: ChunkAt,
    },
    /// A section's bytes are not a valid chunk.
    #[error("{at}: {error}")]
    NoChunk {
        /// Its chunk.
        at: ChunkAt,
        /// The decode error.
        error: DecodeError,
    },
    /// The names of the snapshot do not include an id that a section uses.
    #[error("{at} uses the {} {id}, which the snapshot does not name", .list.noun(1))]
    NoName {
        /// Its chunk.
        at: ChunkAt,
        /// The list of the id.
        list: ListKind,
        /// The id without a name.
        id: u64,
    },
    /// Names that the snapshot uses and a catalog does not have.
    #[error("{} not registered: {}", plural(.names.len()), list(.names))]
    UnknownNames {
        /// The names, each with its list.
        names: Vec<(ListKind, Name)>,
    },
    /// The target box is outside the world.
    #[error("the snapshot's box does not lie in the world there")]
    OutsideWorld,
    /// A part of a pack has a valid checksum and invalid content.
    #[error("in the part at byte {at}: {error}")]
    InPack {
        /// Where the part begins in the file. Offsets of the error count from the start of the part's decompressed
        /// bytes.
        at: u64,
        /// The error in it.
        error: Box<SnapshotError>,
    },
    /// A pack cannot hold the snapshot: it is not of whole chunks, or not of all their content.
    #[error(
        "a box in a pack is of whole chunks, with components, side data and entities; this one is {found}"
    )]
    NotWhole {
        /// The missing part.
        found: &'static str,
    },
    /// Something was added to a pack out of order.
    #[error(
        "a pack takes one box first, then its records ascending by UUID, properties ascending by name, objects ascending by \
         key"
    )]
    PackOrder,
    /// Two snapshots are not of the same box.
    #[error("the snapshots are not of the same box and dimension; compare snapshots of one place")]
    OtherRegion,
}

fn plural(count: usize) -> String {
    if count == 1 { "one name is".into() } else { format!("{count} names are") }
}

fn list(names: &[(ListKind, Name)]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> =
        names.iter().take(SHOWN).map(|(list, name)| format!("{} `{name}`", list.noun(1))).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// Why a region was not captured.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureError<E> {
    /// The source could not read a chunk.
    Source {
        /// The chunk.
        at: ChunkAt,
        /// The source's error.
        error: Box<E>,
    },
    /// The source could not read an entity.
    Entity {
        /// The entity.
        id: EntityId,
        /// The source's error.
        error: Box<E>,
    },
    /// The snapshot cannot hold the region.
    Snapshot(SnapshotError),
}

impl<E> From<SnapshotError> for CaptureError<E> {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl<E: fmt::Display> fmt::Display for CaptureError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { at, error } => write!(f, "{at}: {error}"),
            Self::Entity { id, error } => write!(f, "entity {id}: {error}"),
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for CaptureError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source { error, .. } | Self::Entity { error, .. } => Some(error),
            Self::Snapshot(error) => error.source(),
        }
    }
}

/// Why a restore stopped. Sections that were restored before stay restored, unless the caller's transaction is rolled
/// back.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError<E> {
    /// The target could not read or write.
    Target {
        /// The chunk that was being restored.
        at: ChunkAt,
        /// The target's error.
        error: E,
    },
    /// The snapshot is damaged, or does not fit the target's registry.
    Snapshot(SnapshotError),
    /// The changes need more memory than [`RestoreOptions::max_held_bytes`](crate::RestoreOptions::max_held_bytes)
    /// allows.
    TooMuch {
        /// The number of sections processed, including the one that exceeded the limit.
        done: u64,
        /// The number of sections of the snapshot.
        sections: u64,
        /// The limit.
        max_held_bytes: u64,
    },
}

impl<E> From<SnapshotError> for RestoreError<E> {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl<E: fmt::Display> fmt::Display for RestoreError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { at, error } => write!(f, "{at}: {error}"),
            Self::Snapshot(error) => error.fmt(f),
            Self::TooMuch { done, sections, max_held_bytes } => write!(
                f,
                "after {done} of {sections} sections what changes takes more than the {max_held_bytes} bytes of memory that \
                 are allowed until it is written; allow more, or restore in steps"
            ),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RestoreError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target { error, .. } => Some(error),
            Self::Snapshot(error) => error.source(),
            Self::TooMuch { .. } => None,
        }
    }
}
