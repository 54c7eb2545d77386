//! Options of a restore.

use cg_format::{BlockId, Dimension};

/// The action for a section whose bytes differ from those of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unverifiable {
    /// The restore ends with an error.
    #[default]
    Fail,
    /// The section is left unchanged and reported; the rest is restored.
    Skip,
}

/// The action where the target already has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// The snapshot replaces it; a chunk that was absent in the snapshot is deleted.
    #[default]
    Replace,
    /// The target's content stays: an existing chunk keeps its content and its entities, and an existing entity keeps
    /// its place.
    Keep,
}

/// Options of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether the snapshot's entities replace those of the region, if the snapshot contains entities. Default: yes.
    ///
    /// A restore to the captured box keeps the UUIDs of entities. Elsewhere an entity gets a UUID that is derived from
    /// its own and from the place, so a repeated restore finds the same entity.
    pub entities: bool,
    /// The action for damaged sections. Default: the restore ends.
    pub unverifiable: Unverifiable,
    /// Another dimension. Default: the snapshot's own.
    pub dimension: Option<Dimension>,
    /// The distance along x, y and z, in chunks. Default: the captured place.
    pub by_chunks: [i64; 3],
    /// The action where the target already has content. Default: it is replaced.
    pub merge: Merge,
    /// The block of the cells of an absent chunk, for sections of which only a part is in the box. With it, a part whose
    /// chunk is absent now gets a chunk, filled with this block outside of the box; and a part whose chunk was absent at
    /// the capture is filled with it. Default: none, and such parts are
    /// [left alone](super::RestoreReport::left_alone).
    pub absent: Option<BlockId>,
    /// The maximum memory of the job's changes until they are committed, see
    /// [`RestoreJob::held_bytes`](super::RestoreJob::held_bytes). A job that exceeds it ends with
    /// [`RestoreError::TooMuch`](crate::RestoreError::TooMuch), so that a transaction around it writes nothing.
    /// Default: no limit. That is right for a host in memory, and if each step is a transaction of its own.
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
            absent: None,
            max_held_bytes: u64::MAX,
        }
    }
}
