//! How a snapshot is put back.

use cg_format::Dimension;

/// What happens at a section whose bytes are not those that were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unverifiable {
    /// The restore ends with an error.
    #[default]
    Fail,
    /// The section stays as it is and is reported; the rest is restored.
    Skip,
}

/// What happens where the target has something already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// The snapshot replaces it; a chunk that was absent in the snapshot is deleted.
    #[default]
    Replace,
    /// It stays: a chunk that is there keeps its content and its entities, and an entity that is there stays where it is.
    Keep,
}

/// How a snapshot is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether the entities of the region are replaced by those of the snapshot, if it has any to say. Default: yes.
    ///
    /// At its own place an entity keeps its UUID. Elsewhere it gets another one, which follows from its own and from the
    /// place, so that the same restore again finds the same entity.
    pub entities: bool,
    /// What happens at damaged sections. Default: the restore ends.
    pub unverifiable: Unverifiable,
    /// Another dimension. Default: the snapshot's own.
    pub dimension: Option<Dimension>,
    /// The distance along x, y and z, in chunks. Default: at its own place.
    pub by_chunks: [i64; 3],
    /// What happens where something is. Default: it is replaced.
    pub merge: Merge,
    /// The greatest memory that the job's changes may take until they are committed, see
    /// [`RestoreJob::held_bytes`](super::RestoreJob::held_bytes). A job that would take more ends with
    /// [`RestoreError::TooMuch`](crate::RestoreError::TooMuch), so that a transaction around it writes nothing. Default: no
    /// bound, which is right for a host in memory, and where each step is a transaction of its own.
    pub max_held_bytes: u64,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            entities: true,
            unverifiable: Unverifiable::Fail,
            dimension: None,
            by_chunks: [0; 3],
            merge: Merge::Replace,
            max_held_bytes: u64::MAX,
        }
    }
}
