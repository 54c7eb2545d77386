//! Holds a stored world against a fresh generation: every block of every layer, every component, entity and side.
//!
//! The two chunks are asked the questions that a game asks, and never compared as bytes: a defect that writes and
//! reads wrongly in the same way would pass that.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

use cg_format::entity::Entity;
use cg_format::{Chunk, ChunkAt, ChunkBox, EntityId, LocalPos};
use cg_store::{Error, Property, World};

use crate::world::{Generated, Generator};

/// How much was compared and found equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreement {
    /// Chunks.
    pub chunks: u64,
    /// Blocks in layer 0.
    pub blocks: u64,
    /// Blocks above layer 0.
    pub upper_blocks: u64,
    /// Component instances of blocks.
    pub components: u64,
    /// Entities, with all their components.
    pub entities: u64,
    /// Pieces of side data.
    pub sides: u64,
}

/// The first thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: a chunk, an entity or a property, and the part of it.
    pub place: String,
    /// The part as the store returns it.
    pub stored: String,
    /// The part as it was generated.
    pub generated: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, stored, generated } = self;
        write!(f, "{place}: {stored} is stored, {generated} was generated")
    }
}

/// Compares all that [`fill`](crate::fill::fill) stores. `progress` is called with the number of chunks so far.
///
/// # Errors
/// If the store cannot read what it holds.
pub fn compare(
    world: &World,
    generator: &Generator,
    area: ChunkBox,
    mut progress: impl FnMut(u64),
) -> Result<Result<Agreement, Difference>, Error> {
    let mut agreement = Agreement::default();
    let seed = world.property(&Property::Seed)?;
    let expected = generator.seed().to_le_bytes();
    if let Err(difference) = same("the seed", &seed.as_deref(), &Some(&expected[..])) {
        return Ok(Err(difference));
    }
    for pos in area.iter() {
        let at = ChunkAt::new(generator.dimension(), pos);
        let Generated { chunk, entities } = generator.chunk(pos);
        let Some(stored) = world.load(at)? else {
            return Ok(Err(absent(at, "the chunk")));
        };
        if let Err(mut difference) = chunks(&stored, &chunk, &mut agreement) {
            difference.place = format!("{at}, {}", difference.place);
            return Ok(Err(difference));
        }
        if let Err(difference) = self::entities(world, entities, &mut agreement)? {
            return Ok(Err(difference));
        }
        agreement.chunks += 1;
        progress(agreement.chunks);
    }
    Ok(self::entities(world, generator.away(), &mut agreement)?.map(|()| agreement))
}

/// Compares two chunks part by part, and counts what is equal.
fn chunks(stored: &Chunk, generated: &Chunk, agreement: &mut Agreement) -> Result<(), Difference> {
    for cell in LocalPos::all() {
        same(format_args!("block at {cell:?}"), &stored.block(cell), &generated.block(cell))?;
        agreement.blocks += 1;
    }
    let upper = |chunk: &Chunk| chunk.upper_layers().collect::<BTreeMap<_, _>>();
    agreement.upper_blocks += maps("layer", &upper(stored), &upper(generated))?;
    let components = |chunk: &Chunk| {
        let instances = chunk.components().map(|(id, at, bytes)| ((id, at), bytes.to_vec()));
        instances.collect::<BTreeMap<_, _>>()
    };
    agreement.components += maps("component", &components(stored), &components(generated))?;
    same("unread components", &stored.unread_components(), &generated.unread_components())?;
    same("references", &stored.entities(), &generated.entities())?;
    let sides = |chunk: &Chunk| {
        let sides = chunk.sides().map(|(kind, bytes)| (kind, bytes.to_vec()));
        sides.collect::<BTreeMap<_, _>>()
    };
    agreement.sides += maps("side", &sides(stored), &sides(generated))?;
    Ok(())
}

fn entities(
    world: &World,
    generated: Vec<(EntityId, Entity)>,
    agreement: &mut Agreement,
) -> Result<Result<(), Difference>, Error> {
    for (id, entity) in generated {
        let place = format!("entity {id}");
        let Some(stored) = world.entity(id)? else { return Ok(Err(absent(place, "the entity"))) };
        if let Err(difference) = same(place, &stored, &entity) {
            return Ok(Err(difference));
        }
        agreement.entities += 1;
    }
    Ok(Ok(()))
}

/// Compares two maps, and gives the number of their equal entries.
fn maps<K: Ord + Debug, V: PartialEq + Debug>(
    what: &str,
    stored: &BTreeMap<K, V>,
    generated: &BTreeMap<K, V>,
) -> Result<u64, Difference> {
    for key in stored.keys().chain(generated.keys()) {
        same(format_args!("{what} {key:?}"), &stored.get(key), &generated.get(key))?;
    }
    Ok(stored.len() as u64)
}

fn same<T: PartialEq + Debug>(place: impl Display, stored: &T, generated: &T) -> Result<(), Difference> {
    if stored == generated {
        return Ok(());
    }
    let (stored, generated) = (format!("{stored:?}"), format!("{generated:?}"));
    Err(Difference { place: place.to_string(), stored, generated })
}

fn absent(place: impl Display, generated: &str) -> Difference {
    Difference { place: place.to_string(), stored: "nothing".into(), generated: generated.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::chunk::CellLayer;
    use cg_format::{BlockId, BlockPos, ChunkPos, SchemaView};
    use cg_store::WorldOptions;

    use expect_test::{Expect, expect};

    use crate::fill::fill;
    use crate::world::Scene;

    const SEED: u64 = 7;

    fn area() -> ChunkBox {
        ChunkBox::new(ChunkPos::constant(0, 3, 0), ChunkPos::constant(2, 4, 2))
    }

    fn filled() -> (World, Generator) {
        let world = World::builder().options(&WorldOptions::process()).in_memory().unwrap();
        let generator = Generator::in_world(Scene::Library, SEED, &world).unwrap();
        fill(&world, &generator, area(), |_| {}).unwrap();
        (world, generator)
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Chunk, &Generator), expected: Expect) {
        let (world, generator) = filled();
        let at = ChunkAt::new(generator.dimension(), ChunkPos::constant(1, 3, 1));
        world.transaction(|tx| tx.edit(at, |chunk| change(chunk, &generator))).unwrap();
        let difference = compare(&world, &generator, area(), |_| {}).unwrap().unwrap_err();
        expected.assert_eq(&difference.to_string());
    }

    #[test]
    fn a_filled_world_equals_its_generator() {
        let (world, generator) = filled();
        let mut seen = Vec::new();
        let agreement = compare(&world, &generator, area(), |chunks| seen.push(chunks)).unwrap().unwrap();
        assert_eq!(seen, (1..=18).collect::<Vec<_>>());
        assert_eq!((agreement.chunks, agreement.blocks, agreement.sides), (18, 18 * 4096, 18 * 3));
        assert!(agreement.components > 18 * 500, "{agreement:?}");
        assert_eq!(agreement.entities, 1, "the player who is away");
    }

    #[test]
    fn one_other_block_is_found() {
        let cell = BlockPos::new(16, 49, 17).local();
        check(
            |chunk, generator| {
                chunk.set_block(cell, BlockId::new(2), generator.schema()).unwrap();
            },
            expect![
                "chunk 1, 3, 1 of dimension 0, block at LocalPos(0, 1, 1): BlockId(2) is stored, BlockId(0) was generated"
            ],
        );
    }

    #[test]
    fn one_more_layer_is_found() {
        check(
            |chunk, generator| {
                chunk.push_layer(LocalPos::new(1, 2, 3), BlockId::new(0), generator.schema()).unwrap();
            },
            expect![
                "chunk 1, 3, 1 of dimension 0, layer CellLayer { cell: LocalPos(1, 2, 3), layer: 1 }: Some(BlockId(0)) is stored, None was generated"
            ],
        );
    }

    #[test]
    fn one_other_byte_of_a_component_is_found() {
        check(
            |chunk, generator| {
                let (component, at, _) = chunk.components().last().unwrap();
                assert!(generator.schema().shape(component).is_some());
                chunk.set_component(CellLayer::base(at.cell), component, b"!").unwrap();
            },
            expect![
                "chunk 1, 3, 1 of dimension 0, component (ComponentId(9223372036854775810), CellLayer { cell: LocalPos(15, 5, 6), layer: 0 }): Some([33]) is stored, Some([83, 105, 108, 101, 110, 99, 101]) was generated"
            ],
        );
    }

    #[test]
    fn side_data_that_is_gone_is_found() {
        check(
            |chunk, _| {
                let (kind, _) = chunk.sides().last().unwrap();
                chunk.remove_side(kind).unwrap();
            },
            expect![
                "chunk 1, 3, 1 of dimension 0, side SideKind(4): None is stored, Some([255]) was generated"
            ],
        );
    }
}
