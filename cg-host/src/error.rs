//! Errors of hosts: those of the store, and what is wrong with what a host gave.

use std::sync::Arc;

use cg_format::{ChunkAt, ChunkPos, EntityId};
use cg_store::ErrorKind;

use crate::place::ColumnAt;
use crate::problem::{BindingProblem, ColumnProblem};

/// Why a call of a host failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused it, or failed.
    #[error("{source}")]
    Store {
        /// The chunk, if it is about one.
        at: Option<ChunkAt>,
        /// The error.
        #[source]
        source: Arc<cg_store::Error>,
    },
    /// A column that contradicts itself or its binding. Nothing of it was written.
    #[error("{at}: {problem}")]
    Column {
        /// The column.
        at: ColumnAt,
        /// The fault.
        problem: ColumnProblem,
    },
    /// What a host knows contradicts itself. Nothing was registered.
    #[error("the binding is refused: {0}")]
    Binding(#[from] BindingProblem),
    /// The world is of another game.
    #[error("this world is of the game `{world}`, and the host is of `{host}`; its blocks have other names")]
    OtherGame {
        /// The world's.
        world: String,
        /// The host's.
        host: String,
    },
    /// What was submitted is held in memory, because the world takes no commits, and there is no room for more.
    #[error(
        "{held_bytes} bytes that were submitted are held in memory, which is the most, because the world takes no commits: {cause}"
    )]
    Held {
        /// The memory that is used.
        held_bytes: usize,
        /// Why the world takes no commits.
        #[source]
        cause: Arc<Error>,
    },
    /// A column that is submitted and cannot be committed now was asked for in other heights or by another binding.
    #[error(
        "{at} is held in memory in other heights or numbers, because the world takes no commits: {cause}"
    )]
    HeldOtherwise {
        /// The column.
        at: ColumnAt,
        /// Why the world takes no commits.
        #[source]
        cause: Arc<Error>,
    },
    /// Something has another version than was expected. Nothing was written.
    #[error("{what} has version {found}, expected was {expected}: load it again")]
    Expected {
        /// The chunk, if it is one.
        at: Option<ChunkAt>,
        /// The chunk or entity.
        what: String,
        /// The version expected; 0: it is not stored.
        expected: u64,
        /// The version found.
        found: u64,
    },
    /// Side data of a chunk that is none of its kind. The chunk is not written.
    #[error("{at} is damaged: its side data `{name}` cannot be read; run `cg verify`, and restore the chunk")]
    Side {
        /// The chunk.
        at: ChunkAt,
        /// The kind of side data.
        name: &'static str,
    },
    /// A section or an entity that is larger than the world takes.
    #[error("{what} has {len_bytes} bytes, the world takes at most {max_bytes}")]
    TooLarge {
        /// The chunk that it belongs to.
        at: Option<ChunkAt>,
        /// The section or entity.
        what: String,
        /// Its bytes, as far as they were counted.
        len_bytes: u64,
        /// The limit of the world.
        max_bytes: u64,
    },
    /// Entities of a column were moved each time that it was read.
    #[error("{at}: its entities were moved again and again while it was read; load it again")]
    Moving {
        /// The column.
        at: ColumnAt,
    },
    /// An entity that is to be changed and does not exist.
    #[error("the world has no entity {}", .id.get())]
    EntityAbsent {
        /// The entity.
        id: EntityId,
    },
    /// A call that does not go together with its arguments.
    #[error("{0}")]
    Invalid(String),
    /// The queue has no room for another answer.
    #[error("the queue has {capacity} answers that wait or are awaited: fetch some")]
    QueueFull {
        /// The room of the queue.
        capacity: usize,
    },
    /// The handle was closed or released.
    #[error("{0} was closed")]
    Closed(&'static str),
    /// A load or commit of a queue panicked. It is an error of the library.
    #[error("an error of the library: {0}; please report it")]
    Panicked(String),
    /// A thread of the library could not be started.
    #[error("the system starts no thread: {0}")]
    Thread(Arc<std::io::Error>),
}

impl Error {
    /// An error of the store about a chunk.
    pub(crate) fn of_chunk(at: ChunkAt, source: cg_store::Error) -> Self {
        Self::Store { at: Some(at), source: Arc::new(source) }
    }

    /// The kind of the error, by the action that the caller can take.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store { source, .. } => source.kind(),
            Self::Column { .. } | Self::Binding(_) | Self::OtherGame { .. } | Self::Invalid(_) => {
                ErrorKind::Invalid
            }
            Self::Held { cause, .. } | Self::HeldOtherwise { cause, .. } => cause.kind(),
            Self::Expected { .. } => ErrorKind::Conflict,
            Self::Side { .. } => ErrorKind::Damaged,
            Self::EntityAbsent { .. } => ErrorKind::NotFound,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::QueueFull { .. } | Self::Moving { .. } => ErrorKind::Busy,
            Self::Closed(_) => ErrorKind::Closed,
            Self::Thread(_) | Self::Panicked(_) => ErrorKind::Engine,
        }
    }

    /// Whether the same call may succeed if it is repeated, without doing anything twice.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store { source, .. } => source.is_retryable(),
            Self::Held { .. } | Self::HeldOtherwise { .. } | Self::QueueFull { .. } | Self::Moving { .. } => {
                true
            }
            _ => false,
        }
    }

    /// The chunk that the error is about, if it is about one.
    pub fn place(&self) -> Option<ChunkAt> {
        match self {
            Self::Store { at, .. } | Self::Expected { at, .. } | Self::TooLarge { at, .. } => *at,
            Self::Side { at, .. } => Some(*at),
            Self::Column { at, problem } => match problem {
                ColumnProblem::Height { y, .. }
                | ColumnProblem::SectionOrder { y }
                | ColumnProblem::Light { y, .. }
                | ColumnProblem::Layers { y, .. }
                | ColumnProblem::Cells { y, .. } => at.chunk(*y).ok(),
                _ => at.chunk(at.min_y).ok(),
            },
            Self::Held { cause, .. } | Self::HeldOtherwise { cause, .. } => cause.place(),
            _ => None,
        }
    }

    /// Whether the world may take the same commit later, without another call of the host.
    pub(crate) fn may_pass(&self) -> bool {
        let Self::Store { source, .. } = self else { return false };
        matches!(
            source.kind(),
            ErrorKind::Busy
                | ErrorKind::Conflict
                | ErrorKind::LowDisk
                | ErrorKind::ReadOnly
                | ErrorKind::Unavailable
                | ErrorKind::InDoubt
                | ErrorKind::Engine
        )
    }
}

impl From<cg_store::Error> for Error {
    fn from(source: cg_store::Error) -> Self {
        Self::Store { at: None, source: Arc::new(source) }
    }
}

impl ColumnAt {
    /// The chunk at a height.
    pub(crate) fn chunk(&self, y: i32) -> Result<ChunkAt, Error> {
        let pos = ChunkPos::new(self.x, y.into(), self.z).map_err(cg_store::Error::from)?;
        Ok(ChunkAt::new(self.dimension, pos))
    }

    /// The chunks at all heights, ascending.
    pub(crate) fn chunks(&self) -> Result<Vec<ChunkAt>, Error> {
        let heights = i64::from(self.max_y) - i64::from(self.min_y) + 1;
        if !(1..=Self::MAX_HEIGHTS).contains(&heights) {
            return Err(self.refuse(ColumnProblem::Heights { heights }));
        }
        (self.min_y..=self.max_y).map(|y| self.chunk(y)).collect()
    }

    /// The error of a column that a host gave.
    pub(crate) fn refuse(&self, problem: ColumnProblem) -> Error {
        Error::Column { at: *self, problem }
    }
}
