//! Deltas: rows with the changes of a commit to a chunk, instead of the whole chunk.
//!
//! The content of a chunk is its row, in any tier, and the deltas whose commits are newer. So moves between tiers
//! ignore deltas, and a row that is saved later hides older deltas.
//!
//! **Invariants**.
//! - A delta has the schema generation of its chunk's row, and is applied before that row is upgraded.
//! - The batch that saves or deletes a chunk as a whole deletes its deltas. Maintenance also deletes deltas when it
//!   [folds](crate::maintain) them into the row.
//! - [`DeltaIndex`] contains every chunk that has deltas, and may contain some that have none any more. So a lookup
//!   that finds no entry misses no delta. The index also caches the deltas, within a bound.

mod fold;
mod index;

pub(crate) use fold::{DeltasInView, fold, read};
pub(crate) use index::{DeltaIndex, Deltas};

use cg_format::LocalPos;
use cg_format::chunk::{CellLayer, Chunk};
use cg_format::delta::Delta;
use cg_format::frame::{self, Codec, Draft};
use cg_registry::Schema;

/// A chunk with this many deltas is saved as a whole the next time, so that loading it stays cheap.
pub(crate) const MAX_DELTAS: usize = 16;
/// The maximum number of chunks with deltas, which bounds the index.
pub(crate) const MAX_CHUNKS: usize = 1 << 16;
/// The maximum number of blocks that a delta sets.
pub(crate) const MAX_SETS: usize = 64;
/// A delta takes at most this part of the bytes of the whole chunk.
const WORTH_PART: usize = 4;

/// The delta row from an old chunk to a new one, if it is worth it. If cells are named, at most [`MAX_SETS`], all other
/// blocks are equal.
pub(crate) fn delta_row(
    old: &Chunk,
    new: &Chunk,
    named: Option<&[LocalPos]>,
    schema: &Schema,
) -> Option<Draft> {
    let delta = match named {
        Some(cells) => Delta::of_blocks(old, new, cells.iter().copied().map(CellLayer::base), schema),
        None => Delta::between(old, new, schema, MAX_SETS),
    };
    let bytes = encoded_if_worth(&delta?, new)?;
    Some(Draft::deltas(Codec::None, schema.generation(), |out| out.extend(bytes)))
}

/// The bytes of the delta from an old chunk to a new one, if there is one and it is worth it.
pub fn worth_a_delta(old: &Chunk, new: &Chunk, schema: &Schema) -> Option<Vec<u8>> {
    encoded_if_worth(&Delta::between(old, new, schema, MAX_SETS)?, new)
}

fn encoded_if_worth(delta: &Delta, new: &Chunk) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    delta.encode(&mut bytes);
    ((frame::LEN_BYTES + bytes.len()) * WORTH_PART <= new.max_len_bytes()).then_some(bytes)
}
