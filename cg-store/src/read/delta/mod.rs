//! Deltas: rows that say what a commit changed of a chunk, instead of the whole chunk.
//!
//! A chunk is its row, in whatever tier, and after it the deltas whose commits are newer. So moves between tiers need not
//! know of deltas, and a row that was saved since hides those before it.
//!
//! **Invariants**.
//! - A delta has the schema generation of the row that it goes on, and is applied before that row is upgraded.
//! - The batch that saves or deletes a chunk as a whole deletes its deltas. So does maintenance, which [folds](crate::maintain) them
//!   into the row in time.
//! - [`DeltaIndex`] names every chunk that has deltas, and may name some that have none any more: a look-up that it
//!   does not send to the deltas has none to miss. What they say it has in memory too, within a bound.

mod cached;
mod fold;
mod gaps;
mod index;

pub(crate) use cached::CachedDeltas;
pub(crate) use fold::{Folding, fold_cached, fold_stored, read, show_folded, walk_folded};
pub(crate) use gaps::WithDeltas;
pub(crate) use index::{DeltaIndex, Deltas};

use cg_format::chunk::Chunk;
use cg_format::delta::Delta;
use cg_format::frame::{self, Codec, Draft};
use cg_registry::Schema;

/// A chunk with so many deltas is saved as a whole the next time, so that loading it stays cheap.
pub(crate) const MAX_DELTAS: usize = 16;
/// So many chunks may have deltas: what the index may hold.
pub(crate) const MAX_CHUNKS: usize = 1 << 16;
/// A delta sets at most so many blocks.
const MAX_SETS: usize = 64;
/// A delta takes at most this part of the bytes that the chunk would take.
const WORTH_PART: usize = 4;

/// The row that makes a new chunk of an old one, if it is worth it.
pub(crate) fn delta_row(old: &Chunk, new: &Chunk, schema: &Schema) -> Option<Draft> {
    let delta = worth_a_delta(old, new, schema)?;
    Some(Draft::deltas(Codec::None, schema.generation(), |out| out.extend(delta)))
}

/// The bytes of the delta that makes a new chunk of an old one, if one can say it and is worth it.
pub(crate) fn worth_a_delta(old: &Chunk, new: &Chunk, schema: &Schema) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Delta::between(old, new, schema, MAX_SETS)?.encode(&mut bytes);
    ((frame::LEN_BYTES + bytes.len()) * WORTH_PART <= new.max_len_bytes()).then_some(bytes)
}
