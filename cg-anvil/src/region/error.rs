//! Why the column in a slot cannot be read.

use std::io;

use super::Compression;

/// Why the column in a slot cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// The slot points into the header.
    #[error("the slot points at sector {sector}, inside the header")]
    InHeader {
        /// 0 or 1.
        sector: u32,
    },
    /// The slot's first bytes lie past the end of the file.
    #[error("the slot points at byte {offset_bytes}, and the file ends at {file_bytes}")]
    PastEnd {
        /// The first byte of the slot.
        offset_bytes: u64,
        /// The length of the file.
        file_bytes: u64,
    },
    /// The slot points where many others do.
    #[error("{slots} slots point at sector {sector}, where one belongs")]
    Shared {
        /// The sector.
        sector: u32,
        /// The slots, this one too.
        slots: usize,
    },
    /// The slot's bytes do not end where the fourth other slot begins.
    #[error("its {len_bytes} bytes overlap more than three other slots, the fourth after {room_bytes} bytes")]
    Overlaps {
        /// The bytes that the slot states, without the compression byte.
        len_bytes: u64,
        /// Bytes before the fourth other slot.
        room_bytes: u64,
    },
    /// The slot says that it holds no byte, not even the compression.
    #[error("the stored length is 0")]
    NoPayload,
    /// The stored length reaches past the end of the file, or is negative as the game reads it.
    #[error("the stored length of {len_bytes} bytes exceeds the {left_bytes} bytes left in the file")]
    LengthPastEnd {
        /// The length that the slot states, compression byte included.
        len_bytes: u32,
        /// Bytes between the length and the end of the file.
        left_bytes: u64,
    },
    /// A compression that does not exist.
    #[error("compression {0} does not exist")]
    UnknownCompression(u8),
    /// Compression 127: an algorithm of a mod, by name.
    #[error("compression 127 names an algorithm of a mod, which is not supported")]
    CustomCompression,
    /// The column lies in another file, whose name needs the region's coordinates.
    #[error(
        "the column lies in a c.X.Z.mcc file, but this file's name has no r.X.Z coordinates to find it by"
    )]
    ExternalUnknown,
    /// The column lies in another file that is not there.
    #[error("the column lies in {name}, which is missing")]
    ExternalMissing {
        /// The file's name, beside the region file.
        name: String,
    },
    /// The payload is longer than allowed, stored or decompressed.
    #[error("more than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The compressed bytes end before their stream does.
    #[error("the {0} stream ends early")]
    Truncated(Compression),
    /// The compressed bytes are damaged.
    #[error("the {compression} stream is damaged: {what}")]
    Damaged {
        /// How the payload was compressed.
        compression: Compression,
        /// Fault that the decompressor found.
        what: String,
    },
    /// The file cannot be read.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
}
