//! Which chunks changed since a commit, told without their content.
//!
//! A change mark, one row for each 4³ and each 16³ cube, has the last commit that changed something there. The frames and
//! cluster directories of a cube have the versions of its chunks. Nothing is decompressed or decoded.

mod cubes;
mod versions;

use std::ops::ControlFlow;

use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterPos, Dimension};

use crate::commit::commit_log::CommitLog;
use crate::engine::{CommitSeq, Readable};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// A chunk, and the last commit that changed it.
type Changed = (ChunkAt, u64);

/// The last commit that changed a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkVersion {
    /// The commit.
    pub version: CommitSeq,
    /// Whether that commit deleted the chunk. The world forgets a deletion when it
    /// [purges its tombstone](crate::tiers::Tiers::purge_tombstones_before).
    pub is_deleted: bool,
}

/// The changes that one view of the engine has.
pub(crate) struct Changes<'a> {
    pub(crate) view: &'a dyn Readable,
    pub(crate) counters: &'a Counters,
    pub(crate) log: &'a CommitLog,
    /// A commit that the view has; it may have later ones.
    pub(crate) commit: u64,
}

impl Changes<'_> {
    /// See [`ReadView::for_each_changed`](crate::view::ReadView::for_each_changed).
    pub(crate) fn for_each<B>(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
        mut visit: impl FnMut(ClusterPos, Result<Vec<(ChunkPos, ChunkVersion)>, Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        for (cube, changed) in self.changed_cubes(dimension, area, since)? {
            let places = match self.places_of(dimension, cube, changed.as_deref()) {
                Ok(places) => places,
                Err(error @ Error::Corrupt(_)) => match visit(cube, Err(error)) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(value) => return Ok(Some(value)),
                },
                Err(error) => return Err(error),
            };
            let chunks = places.into_iter().filter_map(|(place, version)| {
                let chunk = versions::chunk_at(cube, place)?;
                (version.version.get() > since && area.contains(chunk)).then_some((chunk, version))
            });
            let chunks: Vec<_> = chunks.collect();
            if chunks.is_empty() {
                continue;
            }
            if let ControlFlow::Break(value) = visit(cube, Ok(chunks)) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}
