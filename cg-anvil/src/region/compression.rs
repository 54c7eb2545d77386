//! How a column's bytes are compressed in its slot.

use std::fmt;
use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};

use super::{SlotError, lz4};

/// How a column's bytes are compressed in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// RFC 1952; read by every version, written by none.
    Gzip = 1,
    /// RFC 1950; the default of every version.
    Zlib = 2,
    /// The bytes as they are; since 1.15.1.
    None = 3,
    /// Blocks framed as lz4-java does; since 1.20.5.
    Lz4 = 4,
}

impl Compression {
    /// The compression of this byte, without its external bit.
    ///
    /// # Errors
    /// [`SlotError::CustomCompression`] for 127, [`SlotError::UnknownCompression`] for the rest.
    pub const fn from_byte(byte: u8) -> Result<Self, SlotError> {
        Ok(match byte {
            1 => Self::Gzip,
            2 => Self::Zlib,
            3 => Self::None,
            4 => Self::Lz4,
            127 => return Err(SlotError::CustomCompression),
            _ => return Err(SlotError::UnknownCompression(byte)),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::None => "uncompressed",
            Self::Lz4 => "LZ4",
        })
    }
}

/// Replaces `out` by the decompressed bytes, at most `limit_bytes`. Bytes after the stream's end are ignored.
///
/// Memory grows with what really comes out, never with what a header promises.
///
/// # Errors
/// [`SlotError::Truncated`], [`SlotError::Damaged`] (checksums included) or [`SlotError::TooLarge`].
pub fn decompress(
    compression: Compression,
    stored: &[u8],
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), SlotError> {
    out.clear();
    match compression {
        Compression::Zlib => inflate(stored, limit_bytes, out),
        Compression::Gzip => gunzip(stored, limit_bytes, out),
        Compression::Lz4 => lz4::decompress(stored, limit_bytes, out),
        Compression::None => {
            if stored.len() > limit_bytes {
                return Err(SlotError::TooLarge { limit_bytes });
            }
            out.extend(stored);
            Ok(())
        }
    }
}

/// Compresses as the game does: zlib at its default level.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::read::ZlibEncoder::new(bytes, flate2::Compression::default());
    let mut out = Vec::new();
    encoder.read_to_end(&mut out).expect("memory is read without errors");
    out
}

/// Compresses in this way.
pub fn compress_as(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Zlib => compress(bytes),
        Compression::Gzip => {
            let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::default());
            let mut out = Vec::new();
            encoder.read_to_end(&mut out).expect("memory is read without errors");
            out
        }
        Compression::None => bytes.to_vec(),
        Compression::Lz4 => lz4::compress(bytes),
    }
}

/// The low-level loop, because the reader of the library ends silently where the input does.
fn inflate(stored: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), SlotError> {
    const STEP_BYTES: usize = 64 << 10;
    let mut stream = Decompress::new(true);
    loop {
        let (read, written) = (stream.total_in(), out.len());
        let left = usize::try_from(read).ok().and_then(|read| stored.get(read..)).unwrap_or_default();
        if out.capacity() == out.len() {
            // One byte more than allowed tells that it is too much.
            let room_bytes = limit_bytes.saturating_sub(out.len()).saturating_add(1);
            out.reserve_exact(out.len().max(STEP_BYTES).min(room_bytes));
        }
        let status = stream.decompress_vec(left, out, FlushDecompress::None).map_err(|error| {
            SlotError::Damaged { compression: Compression::Zlib, what: error.to_string() }
        })?;
        if out.len() > limit_bytes {
            return Err(SlotError::TooLarge { limit_bytes });
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        if stream.total_in() == read && out.len() == written {
            return Err(SlotError::Truncated(Compression::Zlib));
        }
    }
}

fn gunzip(stored: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), SlotError> {
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    let stream = flate2::bufread::GzDecoder::new(stored);
    stream.take(limit.saturating_add(1)).read_to_end(out).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            SlotError::Truncated(Compression::Gzip)
        } else {
            SlotError::Damaged { compression: Compression::Gzip, what: error.to_string() }
        }
    })?;
    if out.len() > limit_bytes { Err(SlotError::TooLarge { limit_bytes }) } else { Ok(()) }
}
