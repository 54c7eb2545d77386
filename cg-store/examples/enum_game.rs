//! A game with an enum and no mods: its blocks in a world on disk, in one dependency.
use cg_store::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Block {
    Air,
    Stone,
    Lamp,
    Unknown,
}

impl BlockKind for Block {
    const UNKNOWN: Self = Self::Unknown;

    fn kinds() -> impl IntoIterator<Item = (Self, &'static str)> {
        [(Self::Air, ":air"), (Self::Stone, "game:stone"), (Self::Lamp, "game:lamp")]
    }

    fn is_opaque(self) -> bool {
        self == Self::Stone
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let world = World::builder().create(home.path().join("world"))?;
    let blocks = world.registry().bind::<Block>()?;
    let cave = world.registry().register_dimension("game:cave")?;
    let lamp = BlockPos::new(-3, -70, 12);
    world.transaction(|tx| {
        let stone = tx.new_chunk(blocks.id(Block::Stone))?;
        tx.save(ChunkAt::new(cave, lamp.chunk()), stone);
        tx.set_block(cave, lamp, blocks.id(Block::Lamp))
    })?;
    let chunk = world.load(ChunkAt::new(cave, lamp.chunk()))?.expect("saved above");
    println!("at the lamp: {:?}", blocks.kind(chunk.block(lamp.local())));
    Ok(world.close()?)
}
