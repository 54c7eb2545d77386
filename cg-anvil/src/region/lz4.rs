//! The framing that lz4-java puts around its blocks, which is not the LZ4 frame format.
//!
//! ```text
//! offset  width  field
//! 0       8      "LZ4Block"
//! 8       1      high half: 1 stored, 2 compressed; low half: log2 of the block size less 10
//! 9       4      u32 little-endian: stored bytes
//! 13      4      u32 little-endian: raw bytes
//! 17      4      u32 little-endian: xxHash32 of the raw bytes, seed 0x9747B28C, low 28 bits
//! 21             the stored bytes
//! ```
//!
//! A block of 0 raw bytes ends the stream. Encoders other than lz4-java leave it out, and the game does not miss it, so
//! the end of the bytes after a whole block is an end too.

use twox_hash::XxHash32;

use super::{Compression, SlotError};

pub(super) const MAGIC: &[u8; 8] = b"LZ4Block";
pub(super) const HASH_SEED: u32 = 0x9747_B28C;
pub(super) const HASH_MASK: u32 = 0x0FFF_FFFF;
pub(super) const STORED: u8 = 0x10;
pub(super) const COMPRESSED: u8 = 0x20;
/// The largest block that lz4-java writes.
const MAX_BLOCK_BYTES: usize = 32 << 20;

/// Bytes of a block as lz4-java makes them.
const BLOCK_BYTES: usize = 64 << 10;
/// The log2 of that less 10.
const BLOCK_LEVEL: u8 = 6;

/// A stream as lz4-java writes it.
pub(super) fn compress(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in raw.chunks(BLOCK_BYTES).chain([&[][..]]) {
        let mut packed = vec![0; lz4_flex::block::get_maximum_output_size(block.len())];
        let packed_len = lz4_flex::block::compress_into(block, &mut packed);
        packed.truncate(packed_len.expect("the largest output has room"));
        let is_packed = packed.len() < block.len();
        let (method, stored) = if is_packed { (COMPRESSED, &packed[..]) } else { (STORED, block) };
        let hash = if block.is_empty() { 0 } else { XxHash32::oneshot(HASH_SEED, block) & HASH_MASK };
        out.extend(MAGIC);
        out.push(method | BLOCK_LEVEL);
        for number in [stored.len() as u32, block.len() as u32, hash] {
            out.extend(number.to_le_bytes());
        }
        out.extend(stored);
    }
    out
}

pub(super) fn decompress(stored: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), SlotError> {
    let mut rest = stored;
    while out.is_empty() || !rest.is_empty() {
        if take(&mut rest, MAGIC.len())? != MAGIC {
            return Err(damaged("a block does not begin with \"LZ4Block\""));
        }
        let method = method(&mut rest)?;
        let (stored_len, raw_len, hash) = (le_u32(&mut rest)?, le_u32(&mut rest)?, le_u32(&mut rest)?);
        let (stored_len, raw_len) = (stored_len as usize, raw_len as usize);
        if raw_len > MAX_BLOCK_BYTES {
            return Err(damaged(format!(
                "a block of {raw_len} bytes is larger than the largest, {MAX_BLOCK_BYTES}"
            )));
        }
        if raw_len == 0 {
            return if stored_len == 0 { Ok(()) } else { Err(damaged("an empty block holds bytes")) };
        }
        if out.len() + raw_len > limit_bytes {
            return Err(SlotError::TooLarge { limit_bytes });
        }
        let block = take(&mut rest, stored_len)?;
        let from = out.len();
        match method {
            STORED if stored_len == raw_len => out.extend(block),
            STORED => {
                return Err(damaged(format!("a stored block of {stored_len} bytes promises {raw_len}")));
            }
            COMPRESSED => unpack(block, raw_len, out)?,
            other => return Err(damaged(format!("block method {other:#04x} does not exist"))),
        }
        let found = XxHash32::oneshot(HASH_SEED, out.get(from..).unwrap_or_default()) & HASH_MASK;
        if found != hash {
            return Err(damaged(format!("a block's hash is {found:08x} where {hash:08x} is stored")));
        }
    }
    Ok(())
}

/// One LZ4 byte gives at most 255, so a promise beyond that is refused before it is allocated.
fn unpack(block: &[u8], raw_len: usize, out: &mut Vec<u8>) -> Result<(), SlotError> {
    if raw_len > block.len().saturating_mul(255) {
        return Err(damaged(format!("{} bytes cannot hold a block of {raw_len}", block.len())));
    }
    let from = out.len();
    out.resize(from + raw_len, 0);
    let target = out.get_mut(from..).unwrap_or_default();
    let written =
        lz4_flex::block::decompress_into(block, target).map_err(|error| damaged(error.to_string()))?;
    if written == raw_len {
        Ok(())
    } else {
        Err(damaged(format!("a block of {raw_len} bytes ends after {written}")))
    }
}

fn method(rest: &mut &[u8]) -> Result<u8, SlotError> {
    Ok(take(rest, 1)?.first().copied().unwrap_or_default() & 0xF0)
}

fn le_u32(rest: &mut &[u8]) -> Result<u32, SlotError> {
    let bytes = take(rest, 4)?;
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], SlotError> {
    let (taken, left) = rest.split_at_checked(len).ok_or(SlotError::Truncated(Compression::Lz4))?;
    *rest = left;
    Ok(taken)
}

fn damaged(what: impl Into<String>) -> SlotError {
    SlotError::Damaged { compression: Compression::Lz4, what: what.into() }
}
