//! The effect of a reply on a cache.

use std::collections::BTreeMap;

use cg_format::ChunkAt;

/// The changes that a reply made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SyncOutcome {
    /// Chunks that were stored.
    pub updated: u64,
    /// Chunks of the request that are up to date.
    pub up_to_date: u64,
    /// Chunks that the server does not have. The cache deleted its version of them.
    pub gone: u64,
    /// Chunks of areas that changed. Ask about them with
    /// [`SyncClient::request_stale`](crate::SyncClient::request_stale).
    pub stale: u64,
    /// Chunks with a newer version that the caller must ask about again. Either the reply was full, or it was late: a
    /// reply for a newer commit was applied before.
    pub later: Vec<ChunkAt>,
    /// Chunks that the server cannot read. Of an area, the first chunk of each 4³ cube that it cannot read. The cache
    /// keeps its versions.
    pub damaged: Vec<ChunkAt>,
    /// Areas that are too large for one reply. Ask about smaller boxes.
    pub too_large_areas: u64,
    /// Whether the server's world is another incarnation than the cache knew, so that versions were treated as
    /// unknown.
    pub is_restart: bool,
    /// Instances of components that were dropped, by name: the component has another shape in the cache, or the block
    /// does not have it.
    pub components_left: BTreeMap<String, u64>,
}
