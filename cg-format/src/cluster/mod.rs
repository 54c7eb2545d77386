//! Clusters: 4³ or 16³ chunks under one key.
//!
//! A cluster has two forms. The *seed form* ([`ClusterView`]) is the layout of the design: a header of offsets, then
//! the chunks. The *stored form* ([`StoredCluster`]) is the content of a row: a frame, a directory, and one compressed
//! block per group. A group is 1×4×4 chunks in a warm cluster and 2×4×4 in a cold one, or 4³ as earlier drafts wrote it. A
//! decompressed group is itself a seed-form cluster of its chunks, or has them by field, as cold groups do.
//!
//! ```text
//!  stored    | frame 24 | directory: head, groups, slots | group 0 | group 1 | ... |
//!                                                             |
//!                                                         decompress
//!                                                             v
//!  seed form                       | version | scale | 64 offsets | chunk | chunk | ... |
//! ```
//!
//! Both forms can be converted into each other: [`StoredCluster::to_seed_bytes`], and [`ClusterBuilder::put`] for each of
//! [`ClusterView::chunks`]. The stored form adds each chunk's version and schema generation, which the seed form cannot
//! represent.
//!
//! # The cost of damage
//! The frame's checksum covers the directory, and the directory contains the checksum of every group. A damaged group
//! costs only its own chunks, at most 32, or 64 in rows of earlier drafts, and those of groups that share its bytes. A damaged frame or directory costs
//! the row. Damage is an error, never absence.
//!
//! The seed form takes any values: their length follows from the offsets. By field only chunks are stored.

mod assemble;
pub(crate) mod directory;
mod encoded_group;
mod fields;
mod group;
mod header;
mod planes;
mod slot;
mod stored;
mod view;

pub use assemble::{AssembleError, ClusterBuilder, MAX_RAW_BYTES, MAX_STORED_BYTES, join_groups};
pub use directory::trace_entries;
pub use encoded_group::EncodedGroup;
pub use group::{GroupBytes, LastGroup, trace_group};
pub use header::{FORMAT_VERSION, header_len_bytes};
use slot::CUBE_SLOT_COUNT;
pub use slot::{Slot, SlotInfo};
pub use stored::{StoredCluster, trace};
pub use view::{ClusterView, trace_seed};

#[cfg(test)]
mod tests;
