//! A snapshot as a file: head, names, index, entities, and sections in compressed groups.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 31 + n | head: what the snapshot is of and how large it is, with a checksum; readable alone |
//! | … | 14 + n each | names, index and entities: each after its length and checksum, compressed |
//! | … | n each | groups of sections, each compressed alone, where the index says |
//!
//! Ids in sections and entities mean what the names say. Every field and the reasons are in `docs/format/snapshot.md`.
//!
//! # Untrusted bytes
//! Any input gives a snapshot or an error that says where and what. What is read is never more than is there; what is
//! decompressed comes out of the caller's [`Limits`], and names and entities once more, as they take more in memory.

mod head;
mod index;
mod names;
pub(crate) mod part;
mod read;
mod write;

use cg_format::wire::{Span, Trace};
use cg_format::{Limits, codec::Codec};

pub use head::read_info;
pub use read::SnapshotFile;

use crate::error::SnapshotError;
use crate::restore::Unverifiable;
use crate::snapshot::Snapshot;

#[cfg(test)]
mod tests;

/// How a snapshot is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// How it is compressed. Default LZ4; Zstandard is smaller and slower.
    pub codec: Codec,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { codec: Codec::Lz4 }
    }
}

/// Explains the bytes of a snapshot file: the fields that a reader reads, up to the first error, and what they give.
/// Offsets in compressed parts count from the start of what was compressed.
pub fn explain(bytes: &[u8], limits: Limits) -> (Vec<Span>, Result<Snapshot, SnapshotError>) {
    let trace = Trace::default();
    let file = SnapshotFile::open_traced(std::io::Cursor::new(bytes), limits, Some(&trace));
    let snapshot = file.and_then(|mut file| file.load(Unverifiable::Fail));
    (trace.take(), snapshot)
}
