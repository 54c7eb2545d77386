//! Contents of the chunks of a large world: some hundred chunks of the hills, over and over.

use std::sync::Arc;

use cg_bench::world::{Generator, Scene};
use cg_format::{BlockId, Chunk, ChunkPos, Dimension, LocalPos};
use cg_registry::Schema;
use cg_store::World;

use crate::failure::Failure;

/// Chunks without entities, from bedrock to the sky.
pub(crate) struct Contents {
    chunks: Vec<Arc<Chunk>>,
    schema: Schema,
    blocks: [BlockId; 2],
    pub(crate) dimension: Dimension,
}

impl Contents {
    /// Registers the names in a world and makes the chunks.
    pub(crate) fn in_world(world: &World) -> Result<Self, Failure> {
        let generator = Generator::in_world(Scene::Hills, 7, world)?;
        let catalog = world.catalog();
        let block = |name: &str| catalog.block_id(name).ok_or_else(|| format!("no block {name}"));
        let columns = (0..5).flat_map(|x| (0..5).map(move |z| (x * 3, z * 3)));
        let places = columns.flat_map(|(x, z)| {
            (Generator::BOTTOM_CHUNK_Y..=Generator::TOP_CHUNK_Y).map(move |y| ChunkPos::constant(x, y, z))
        });
        let chunks = places.map(|pos| Arc::new(generator.chunk(pos).chunk_without_entities())).collect();
        let blocks = [block("minecraft:stone")?, block("minecraft:bedrock")?];
        Ok(Self { chunks, schema: generator.schema().clone(), blocks, dimension: generator.dimension() })
    }

    /// The chunk of a place, after this many changes. No two that follow each other are equal.
    pub(crate) fn chunk(&self, pos: ChunkPos, changes: u64) -> Arc<Chunk> {
        let hash = [pos.x(), pos.y(), pos.z()].iter().fold(7_u64, |hash, axis| {
            (hash ^ *axis as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        let chunk = &self.chunks[(hash >> 7) as usize % self.chunks.len()];
        if changes == 0 {
            return Arc::clone(chunk);
        }
        let mut chunk = Chunk::clone(chunk);
        // A player builds: a few blocks in a row, another each time.
        for change in changes.saturating_sub(20)..changes {
            let cell = LocalPos::from_index((hash.wrapping_add(change) % 4096) as u16).expect("below 4096");
            let block = self.blocks[(change % 2) as usize];
            // A cell whose block has components stays as it is.
            let _ = chunk.set_block(cell, block, &self.schema);
        }
        Arc::new(chunk)
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }
}
