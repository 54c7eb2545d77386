//! Stored chunks: finding one across the tiers, walking all, decoding.

mod absent;
mod column;
mod cubes;
pub(crate) mod decode;
mod decode_dedup;
mod find;
mod find_many;
mod load;
mod read_view;
mod walk;
mod walk_cube;

use cg_format::{ChunkAt, Tier};

use crate::engine::CommitSeq;

pub use cubes::Area;
pub(crate) use cubes::{Cubes, keys_of};
pub(crate) use find::{find, find_in, hot};
pub(crate) use find_many::{find_many, find_many_in};
pub(crate) use load::{LoadResult, panicked};
pub use load::{LoadTicket, Peek};
pub(crate) use read_view::WorldView;
pub(crate) use walk::{positions_in, walk, walk_live, walk_one};

/// One live chunk as it is stored in the engine. Its checksum was verified; its layout was not.
#[derive(Debug, Clone, Copy)]
pub struct StoredChunk<'a> {
    /// Which chunk.
    pub at: ChunkAt,
    /// The commit that last changed its content.
    pub version: CommitSeq,
    /// The schema generation with which its ids and columns were written.
    pub schema_generation: u32,
    /// The tier in which it is stored.
    pub tier: Tier,
    /// The chunk's own bytes and the side data after them.
    pub value: &'a [u8],
}
