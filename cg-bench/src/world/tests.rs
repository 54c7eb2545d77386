//! The generator: the same from the same seed, and every section of the format in use.

use std::collections::BTreeSet;

use cg_format::entity::Owner;
use cg_format::wire::bits::width_for;
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ComponentId};
use cg_registry::Catalog;
use cg_store::WorldOptions;
use cg_store::verify::VerifyDepth;
use expect_test::expect;

use super::*;
use crate::compare::compare;
use crate::fill::fill;

const SEED: u64 = 7;

fn generator(scene: Scene, seed: u64) -> Generator {
    let mut catalog = Catalog::new();
    catalog.register(&Generator::registration()).unwrap();
    Generator::new(scene, seed, &catalog).unwrap()
}

/// All heights over 4×4 columns of chunks.
fn area() -> ChunkBox {
    let (bottom, top) = (Generator::BOTTOM_CHUNK_Y, Generator::TOP_CHUNK_Y);
    ChunkBox::new(ChunkPos::constant(-2, bottom, -2), ChunkPos::constant(1, top, 1))
}

/// The CRC of all chunks and entities of a box, in order.
fn sum(generator: &Generator, area: ChunkBox) -> u32 {
    area.iter().map(|pos| generator.chunk(pos)).fold(0, |sum, generated| {
        let mut bytes = generated.chunk.to_bytes();
        for (_, entity) in generated.entities {
            entity.encode(&mut bytes);
        }
        crc32c::crc32c_append(sum, &bytes)
    })
}

#[test]
fn a_seed_gives_the_same_bytes_on_every_machine() {
    let small = ChunkBox::new(ChunkPos::constant(-1, 3, 0), ChunkPos::constant(0, 4, 1));
    let sums = Scene::ALL.map(|scene| (scene.name(), sum(&generator(scene, SEED), small)));
    expect![[r#"
        [
            (
                "hills",
                3984941200,
            ),
            (
                "library",
                538590805,
            ),
            (
                "flat",
                63380172,
            ),
        ]
    "#]]
    .assert_debug_eq(&sums);
    assert_ne!(sum(&generator(Scene::Hills, SEED + 1), small), sums[0].1);
}

#[test]
fn chunks_do_not_depend_on_the_order_in_which_they_are_made() {
    let (one, other) = (generator(Scene::Hills, SEED), generator(Scene::Hills, SEED));
    let positions: Vec<ChunkPos> =
        ChunkBox::new(ChunkPos::constant(0, 3, 0), ChunkPos::constant(1, 4, 1)).iter().collect();
    let forward: Vec<Generated> = positions.iter().map(|pos| one.chunk(*pos)).collect();
    let mut backward: Vec<Generated> = positions.iter().rev().map(|pos| other.chunk(*pos)).collect();
    backward.reverse();
    assert_eq!(forward, backward);
}

#[test]
fn hills_use_every_section_of_the_format() {
    let generator = generator(Scene::Hills, SEED);
    let mut widths = BTreeSet::new();
    let mut layers = BTreeSet::new();
    let mut components = BTreeSet::<ComponentId>::new();
    let mut lengths = BTreeSet::new();
    let (mut entities, mut named, mut light) = (0, 0, BTreeSet::new());
    for pos in area().iter() {
        let Generated { chunk, entities: held } = generator.chunk(pos);
        widths.insert(width_for(chunk.palette().len() as u64));
        layers.extend(chunk.upper_layers().map(|(at, _)| at.layer));
        for (component, _, bytes) in chunk.components() {
            components.insert(component);
            lengths.insert((component, bytes.len()));
        }
        for (id, entity) in &held {
            let at = ChunkAt::new(generator.dimension(), pos);
            assert_eq!(entity.owner, Owner::Chunk(at), "{id}");
            assert_eq!(entity.position.block().chunk(), pos, "{id}");
            assert!(chunk.entities().contains(id), "{id}");
            named += usize::from(entity.components().len() == 2);
        }
        assert_eq!(chunk.entities().len(), held.len(), "{pos}");
        entities += held.len();
        let sides: Vec<_> = chunk.sides().map(|(kind, _)| kind).collect();
        let ids = &generator.ids.sides;
        assert_eq!(sides, [ids.sky_light, ids.biomes, ids.stage]);
        light.insert(chunk.side(ids.sky_light).unwrap().len());
    }
    assert_eq!(widths, (0..=4).collect(), "palettes from one kind to more than eight");
    assert_eq!(layers, [1, 2].into());
    let kinds: BTreeSet<bool> = components.iter().map(|component| component.is_variable()).collect();
    assert_eq!((kinds, components.len()), ([false, true].into(), 3), "both kinds of components");
    assert_eq!(lengths.len(), 5, "one width of the fixed one, two lengths of each other: {lengths:?}");
    assert!(entities > 20 && named > 0, "{entities} entities, {named} with a name");
    assert_eq!(light, [1, 2048].into());
    assert!(matches!(generator.away()[..], [(_, Entity { owner: Owner::Detached(_), .. })]));
}

#[test]
fn libraries_hold_data_in_a_third_of_their_blocks() {
    let generator = generator(Scene::Library, SEED);
    let Generated { chunk, .. } = generator.chunk(ChunkPos::constant(-3, 2, 5));
    let instances = chunk.components().count();
    assert!((900..1600).contains(&instances), "{instances}");
}

#[test]
fn lawns_are_uniform_but_for_their_surface() {
    let generator = generator(Scene::Flat, SEED);
    let kinds = |y| generator.chunk(ChunkPos::constant(0, y, 0)).chunk.palette().len();
    assert_eq!([-4, -1, 0, 3, 4].map(kinds), [2, 1, 1, 3, 1]);
}

#[test]
fn a_name_that_is_missing_is_named() {
    let mut catalog = Catalog::new();
    let mut registration = Generator::registration();
    registration.sides.clear();
    catalog.register(&registration).unwrap();
    let error = Generator::new(Scene::Flat, SEED, &catalog).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`cherrygrove:sky_light` is not registered; register what `Generator::registration` names first"
    );
}

#[test]
fn hills_come_back_from_a_store_as_they_were_made() {
    let world: World = World::builder().options(&WorldOptions::process()).in_memory().unwrap();
    let generator = Generator::in_world(Scene::Hills, SEED, &world).unwrap();
    fill(&world, &generator, area(), |_| {}).unwrap();
    let agreement = compare(&world, &generator, area(), |_| {}).unwrap().unwrap();
    assert_eq!((agreement.chunks, agreement.blocks), (192, 192 * 4096));
    assert!(agreement.upper_blocks > 20 && agreement.components > 3, "{agreement:?}");
    let report = world.verify(VerifyDepth::Full, |_| {}).unwrap();
    assert_eq!((report.findings, report.checked["chunks"]), (vec![], 192));
}
