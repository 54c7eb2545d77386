//! Clusters: 4³ or 16³ chunks under one key.
//!
//! A cluster has two forms. The *seed form* ([`ClusterView`]) is the layout of the design: a header of offsets, then
//! the chunks. The *stored form* ([`StoredCluster`]) is what a row holds: a frame, a directory, and one compressed
//! block per 4³ group. A decompressed group is itself a seed-form cluster of 4³ chunks, so there is one way to find
//! a chunk in bytes.
//!
//! ```text
//!  stored    | frame 24 | directory: head, groups, slots | group 0 | group 1 | ... |
//!                                                             |
//!                                                         decompress
//!                                                             v
//!  seed form                       | version | scale | 64 offsets | chunk | chunk | ... |
//! ```
//!
//! The two forms convert both ways: [`StoredCluster::to_seed_bytes`] and [`ClusterBuilder::from_seed`]. The stored
//! form adds each chunk's version and schema generation, which the seed form cannot carry.
//!
//! # What damage costs
//! The frame's checksum covers the directory, and the directory holds the checksum of every group. A damaged group
//! costs its own chunks, 64 at most. A damaged frame or directory costs the row, and is an error, never absence.
//!
//! Chunk values are opaque here: their length follows from the offsets.

mod assemble;
pub(crate) mod directory;
mod header;
mod slot;
mod stored;
mod view;

pub use assemble::{
    AssembleError, ClusterBuilder, EncodedGroup, MAX_RAW_BYTES, MAX_STORED_BYTES, join_groups,
};
pub use directory::SlotInfo;
pub use header::{FORMAT_VERSION, header_len_bytes};
pub use slot::{GROUP_SLOT_COUNT, Slot};
pub use stored::{GroupBytes, LastGroup, StoredCluster, trace};
pub use view::{ClusterView, trace_seed};

#[cfg(test)]
mod tests;
