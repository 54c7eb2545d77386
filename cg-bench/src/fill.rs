//! Fills a store with a generated world.

use cg_format::{ChunkAt, ChunkBox, ChunkPos};
use cg_store::{Error, Property, World};

use crate::world::Generator;

/// This many chunks are committed together: the batch stays far below the limit, and its cost is spread over them.
const CHUNKS_PER_COMMIT: usize = 256;

/// Stores every chunk of a box with its entities, the entities that no chunk holds, and the seed.
///
/// `progress` is called with the number of chunks after each commit.
///
/// # Errors
/// As [`World::transaction`].
pub fn fill(
    world: &World,
    generator: &Generator,
    area: ChunkBox,
    mut progress: impl FnMut(u64),
) -> Result<(), Error> {
    world.transaction(|tx| {
        tx.set_property(Property::Seed, Some(generator.seed().to_le_bytes().to_vec()));
        for (id, entity) in generator.away() {
            tx.put_entity(id, entity);
        }
        Ok::<_, Error>(())
    })?;
    let positions: Vec<ChunkPos> = area.iter().collect();
    let mut stored = 0;
    for together in positions.chunks(CHUNKS_PER_COMMIT) {
        world.transaction(|tx| {
            for pos in together {
                let generated = generator.chunk(*pos);
                tx.save(ChunkAt::new(generator.dimension(), *pos), generated.chunk);
                for (id, entity) in generated.entities {
                    tx.put_entity(id, entity);
                }
            }
            Ok::<_, Error>(())
        })?;
        stored += together.len() as u64;
        progress(stored);
    }
    Ok(())
}
