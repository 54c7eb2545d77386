//! Stored chunks: finding one across the tiers, walking all, decoding.

mod absence;
mod column;
mod cubes;
pub(crate) mod decode;
mod find;
mod hot;
mod load_ticket;
mod over_network;
mod read_view;
mod walk;
mod walk_cube;

use cg_format::{ChunkAt, Tier};

use crate::engine::CommitSeq;

pub use column::check_height;
pub use cubes::Area;
pub(crate) use cubes::{Cubes, clusters_of, keys_of};
pub(crate) use find::{Rows, find, find_many};
pub(crate) use hot::{hot, hot_row, hot_row_of, open_hot};
pub(crate) use load_ticket::{LoadResult, panicked};
pub use load_ticket::{LoadTicket, Peek};
pub(crate) use read_view::WorldView;
pub(crate) use walk::{positions_in, show, walk, walk_live};
pub(crate) use walk_cube::walk_cube;

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
