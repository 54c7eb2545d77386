//! A snapshot as a file: head, names, index, entities, and sections in compressed groups.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 31 + n | head: the snapshot's name, box and sizes, with a checksum; can be read without the rest |
//! | … | 14 + n each | names, index and entities: each after its length and checksum, compressed |
//! | … | n each | groups of sections, each compressed separately, at the place that the index gives |
//!
//! The names define the ids in sections and entities. `docs/format/snapshot.md` describes every field and the reasons.
//!
//! # Untrusted bytes
//! Any input gives a snapshot or an error with its place and cause. A reader never reads more than the file holds.
//! Decompressed bytes are charged to the caller's [`Limits`]. Names and entities are charged a second time, because
//! they take more in memory.

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

/// Options for writing a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// The compression. Default LZ4; Zstandard is smaller and slower.
    pub codec: Codec,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { codec: Codec::Lz4 }
    }
}

/// Explains the bytes of a snapshot file: the fields that a reader reads, up to the first error, and the result.
/// Offsets in compressed parts count from the start of the decompressed bytes.
pub fn explain(bytes: &[u8], limits: Limits) -> (Vec<Span>, Result<Snapshot, SnapshotError>) {
    let trace = Trace::default();
    let file = SnapshotFile::open_traced(std::io::Cursor::new(bytes), limits, Some(&trace));
    let snapshot = file.and_then(|mut file| file.load(Unverifiable::Fail));
    (trace.take(), snapshot)
}
