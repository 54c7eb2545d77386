//! What a reply did to a cache.

use std::collections::BTreeMap;

use cg_format::ChunkAt;

/// What a reply changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SyncOutcome {
    /// Chunks that were stored.
    pub updated: u64,
    /// Chunks that were asked about and are up to date.
    pub up_to_date: u64,
    /// Chunks that the server does not have; what the cache had of them is deleted.
    pub gone: u64,
    /// Chunks of areas that changed and are to be asked for; see [`SyncClient::request_stale`](crate::SyncClient::request_stale).
    pub stale: u64,
    /// Chunks of which a newer version is to be asked for again: it had no room in the reply, or the reply came so late
    /// that another one had told of a younger state.
    pub later: Vec<ChunkAt>,
    /// Chunks that the server cannot read, and the first chunk of each 4³ cube of an area that it cannot. The cache keeps
    /// what it has.
    pub damaged: Vec<ChunkAt>,
    /// How many areas were too large to be answered: ask for smaller boxes.
    pub too_large_areas: u64,
    /// The server's world lives another life than the cache knew, so its versions counted as unknown.
    pub is_restart: bool,
    /// Instances of components that could not come along, by name: here the component has another shape, or the block does
    /// not have it.
    pub components_left: BTreeMap<String, u64>,
}
