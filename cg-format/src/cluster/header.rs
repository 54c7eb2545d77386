//! The seed form's header: where each chunk of a cluster starts.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 8 | format version | 1 |
//! | 8 | 1 | scale level | 1 = L1, 2 = L2 |
//! | 9 | 8·slots | chunk offsets | per slot the offset of its chunk from byte 0; 0 = absent |
//! | 9 + 8·slots | … | chunk | the present chunks in slot order, without gaps |
//!
//! Source: `ChunkClusterHeader` of CherryGrove's "World Storage" reference. A chunk ends where the next present one
//! starts. The last one ends with the value.

use alloc::vec::Vec;

use super::Slot;
use crate::wire::{Reader, Writer};
use crate::{ClusterTier, DecodeError, Problem};

/// The newest version of the layout, and the one that is written.
pub const FORMAT_VERSION: u64 = 1;

/// The length of the header: 521 for L1, 32,777 for L2.
pub const fn header_len_bytes(tier: ClusterTier) -> usize {
    FIXED_LEN_BYTES + tier.slot_count() * 8
}

/// The length of the fields before the offsets.
pub(super) const FIXED_LEN_BYTES: usize = 9;

/// A checked header: at least one chunk is present, offsets ascend, the first chunk directly follows the header, and
/// every chunk has at least one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) tier: ClusterTier,
    pub(super) offsets: &'a [[u8; 8]],
}

impl<'a> Header<'a> {
    /// Reads a header. The reader must be at the first byte of a whole cluster.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let len_bytes = reader.left_bytes() as u64;
        reader.version_u64("format version", FORMAT_VERSION)?;
        let tier = reader.scale_level()?;
        let start = reader.clone();
        let mut at = reader.clone().traced(None);
        let (offsets, _) = reader.take_items("chunk offsets", tier.slot_count() as u64, 8)?.as_chunks();
        let header_len_bytes = header_len_bytes(tier) as u64;
        let mut last = None;
        for bytes in offsets {
            let field = "chunk offset";
            let found = u64::from_le_bytes(*bytes);
            let problem = match last {
                _ if found == 0 => None,
                None if found != header_len_bytes => {
                    Some(Problem::Disagrees { field, found, expected: header_len_bytes })
                }
                Some(last) if found == last => Some(Problem::Duplicate { field, found }),
                Some(last) if found < last => {
                    let allowed = "above the offset of the chunk before it";
                    Some(Problem::OutOfRange { field, found, allowed })
                }
                _ if found >= len_bytes => {
                    Some(Problem::OutOfRange { field, found, allowed: "inside the cluster's bytes" })
                }
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(at.error(problem));
            }
            if found != 0 {
                last = Some(found);
            }
            at.take(field, 8)?;
        }
        if last.is_none() {
            let (field, allowed) = ("chunk offsets", "at least one present chunk");
            return Err(start.error(Problem::OutOfRange { field, found: 0, allowed }));
        }
        Ok(Self { tier, offsets })
    }
}

/// Appends a cluster in the seed form. The values must be in ascending slot order, and none may be empty.
pub(super) fn encode<'a>(
    tier: ClusterTier,
    values: impl Iterator<Item = (Slot, &'a [u8])> + Clone,
    out: &mut Vec<u8>,
) {
    encode_offsets(tier, values.clone().map(|(slot, value)| (slot, value.len())), out);
    for (_, value) in values {
        out.extend_from_slice(value);
    }
}

/// Appends the header of a cluster in the seed form, which its chunks follow. The lengths must be in ascending slot
/// order, and none may be 0. Reserves room for the chunks.
pub(super) fn encode_offsets(
    tier: ClusterTier,
    lengths: impl Iterator<Item = (Slot, usize)> + Clone,
    out: &mut Vec<u8>,
) {
    let mut writer = Writer::new(out);
    writer.reserve(header_len_bytes(tier) + lengths.clone().map(|(_, len_bytes)| len_bytes).sum::<usize>());
    writer.u64(FORMAT_VERSION);
    writer.u8(tier.scale_level());
    let mut offset_bytes = header_len_bytes(tier) as u64;
    let mut pending = lengths.peekable();
    for slot in Slot::all(tier) {
        match pending.next_if(|(present, _)| *present == slot) {
            Some((_, len_bytes)) => {
                debug_assert!(len_bytes > 0, "an empty chunk has no place in the layout");
                writer.u64(offset_bytes);
                offset_bytes += len_bytes as u64;
            }
            None => writer.u64(0),
        }
    }
    debug_assert!(pending.next().is_none(), "values come in slot order");
}
