//! The places that a batch touches, as far as they are known without reading.

use std::collections::BTreeSet;

use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkPos};

use super::{Saved, Write, WriteBatch, column_of};

impl WriteBatch {
    /// Calls a function with the places that it is known to touch: of each chunk, of the lowest and the highest chunk of
    /// each column, and of the owner of each entity that it puts.
    pub(crate) fn for_each_place(&self, mut place: impl FnMut(ChunkAt)) {
        for (at, write) in &self.chunks {
            let Write::Put(Saved::Column(column)) = write else {
                place(*at);
                continue;
            };
            let mut chunks = column.chunks();
            for (y, _) in [chunks.next(), chunks.next_back()].into_iter().flatten() {
                // The column was checked to end inside the world.
                if let Ok(pos) = ChunkPos::new(at.pos.x(), y, at.pos.z()) {
                    place(ChunkAt::new(at.dimension, pos));
                }
            }
        }
        for (_, write) in &self.entities {
            if let Write::Put(Entity { owner: Owner::Chunk(at), .. }) = write {
                place(*at);
            }
        }
    }

    /// Whether it concerns a chunk, as far as that is known without reading.
    pub(crate) fn may_concern(&self, at: ChunkAt) -> bool {
        // The chunks that refer to its entities now are not known.
        self.touches_entities() || self.columns().any(|column| column == column_of(at))
    }

    /// Whether it has properties, objects or records.
    pub(crate) fn has_values(&self) -> bool {
        !self.others.is_empty()
    }

    /// Adds the places of the chunks that it writes.
    pub(in crate::commit) fn add_places(&self, places: &mut BTreeSet<ChunkAt>) {
        for (at, write) in &self.chunks {
            match write {
                Write::Put(Saved::Column(column)) => {
                    let chunks = column.placed(at.dimension, at.pos.x(), at.pos.z());
                    places.extend(chunks.into_iter().flatten().map(|(at, _)| at));
                }
                Write::Put(Saved::Chunk(_)) | Write::Delete | Write::Change(_) => {
                    places.insert(*at);
                }
            }
        }
    }
}
