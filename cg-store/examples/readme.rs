//! The ten lines of the README: open a world, edit it in a transaction, read it back.
use std::error::Error;
use std::path::Path;

use cg_store::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    run(Path::new(&std::env::args().nth(1).ok_or("usage: readme NEW_DIRECTORY")?))
}

pub(crate) fn run(dir: &Path) -> Result<(), Box<dyn Error>> {
    let world = World::builder().create(dir)?;
    let overworld = world.registry().register_dimension("game:overworld")?;
    let [air, stone] = world.registry().register_blocks([":air", "game:stone"])?;
    let at = BlockPos::new(3, 70, -5);
    world.transaction(|tx| {
        let empty = tx.new_chunk(air)?;
        tx.save(ChunkAt::new(overworld, at.chunk()), empty);
        tx.set_block(overworld, at, stone)
    })?;
    let chunk = world.load(ChunkAt::new(overworld, at.chunk()))?.ok_or("it was just saved")?;
    assert_eq!(chunk.block(at.local()), stone);
    Ok(world.close()?)
}
