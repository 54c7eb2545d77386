//! The reference: what servers do. The snapshot is a palette and indexes; every block of the region is looked at, those
//! that differ are set, and the host is told.

use std::hint::black_box;
use std::sync::Arc;

use cg_format::{BlockBox, BlockId, Chunk, ChunkAt, Editor as _, LocalPos};
use cg_snapshot::memory::Memory;
use cg_snapshot::{Place, Snapshot};

use super::arena::Arena;

/// Sections as such servers keep them.
pub(super) type Indexes = Vec<(ChunkAt, Vec<BlockId>, Vec<u16>)>;

/// A snapshot as such servers keep it: for each section a palette and an index for each block.
pub(super) fn as_indexes(snapshot: &Snapshot) -> Indexes {
    let section = |(section, place): (cg_snapshot::Section, Place<'_>)| {
        let Place::Kept(kept) = place else { return None };
        let chunk = snapshot.decode(section.at, kept).expect("sound");
        let palette: Vec<BlockId> = chunk.palette().iter().map(|entry| entry.block).collect();
        let index = |cell| palette.iter().position(|kind| *kind == chunk.block(cell)).unwrap_or(0) as u16;
        let indexes = LocalPos::all().map(index).collect();
        Some((section.at, palette, indexes))
    };
    snapshot.sections().filter_map(section).collect()
}

pub(super) fn restore(arena: &Arena, saved: &Indexes, host: &mut Memory) -> u64 {
    let schema = arena.catalog.current_schema();
    let inside: BlockBox = arena.region.area();
    let mut told = 0;
    for (at, palette, indexes) in saved {
        let Some(mut live) = host.load(*at).unwrap_or_else(|never| match never {}) else { continue };
        for (cell, index) in LocalPos::all().zip(indexes) {
            let pos = at.pos.block(cell);
            if !inside.contains(pos) {
                continue;
            }
            let new = palette[usize::from(*index)];
            if live.block(cell) != new {
                let chunk: &mut Chunk = Arc::make_mut(&mut live);
                chunk.set_block(cell, new, &schema).expect("known");
                black_box((at.dimension, pos, new));
                told += 1;
            }
        }
        host.insert(*at, live);
    }
    told
}
