//! Parts of a save that a world's limits do not take: each is reported and costs nothing else.

use std::collections::BTreeMap;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

use super::apply::{Importer, TRANSACTION_BYTES};
use crate::region::Slot;

/// Bytes that a row's frame and key add to its content; an upper bound.
const ROW_OVERHEAD_BYTES: u64 = 256;

impl Importer<'_> {
    /// Whether one transaction can hold so much.
    pub(super) fn fits(&self, len_bytes: usize) -> bool {
        len_bytes <= self.transaction_limit_bytes()
    }

    /// Says that it cannot.
    pub(super) fn too_large(&self, len_bytes: usize) -> String {
        let limit_bytes = self.transaction_limit_bytes();
        format!("it takes {len_bytes} bytes, more than the {limit_bytes} of one transaction")
    }

    /// Some of what is pending may go with it.
    fn transaction_limit_bytes(&self) -> usize {
        (self.world.limits().batch_bytes as usize).saturating_sub(2 * TRANSACTION_BYTES)
    }

    /// Leaves out chunks that the world's limits refuse. Returns their heights.
    pub(super) fn drop_too_large(&mut self, slot: Slot, new: &mut BTreeMap<ChunkAt, Chunk>) -> Vec<i32> {
        let limit_bytes = self.world.limits().chunk_bytes;
        let (mut refused, mut heights) = (Vec::new(), Vec::new());
        new.retain(|at, chunk| {
            // What a chunk takes in memory is never less than half of what it takes in a row.
            if (chunk.memory_bytes() as u64) < limit_bytes / 2 {
                return true;
            }
            let len_bytes = chunk.to_bytes().len() as u64 + ROW_OVERHEAD_BYTES;
            if len_bytes > limit_bytes {
                heights.extend(i32::try_from(at.pos.y()));
                refused.push(format!(
                    "section {}: it takes {len_bytes} bytes, more than the world's {limit_bytes}",
                    at.pos.y()
                ));
            }
            len_bytes <= limit_bytes
        });
        for reason in refused {
            self.unreadable(slot, reason);
        }
        heights
    }

    /// Whether the world's limits take what stands beside a column's chunks; reports it if not.
    pub(super) fn rest_fits(&mut self, slot: Slot, lowest: Option<&Chunk>, rest: &[u8]) -> bool {
        let limits = self.world.limits();
        let (beside_bytes, limit_bytes) = match lowest {
            // As above: what is far below the limit need not be encoded to be weighed.
            Some(chunk) if ((chunk.memory_bytes() + rest.len()) as u64) < limits.chunk_bytes / 2 => {
                return true;
            }
            Some(chunk) => (chunk.to_bytes().len() as u64 + ROW_OVERHEAD_BYTES, limits.chunk_bytes),
            None => (0, limits.property_bytes),
        };
        let len_bytes = rest.len() as u64;
        let fits = beside_bytes + len_bytes <= limit_bytes;
        if !fits {
            let reason = format!(
                "what stands beside the sections takes {len_bytes} bytes, more than the world's {limit_bytes} allow"
            );
            self.unreadable(slot, reason);
        }
        fits
    }
}
