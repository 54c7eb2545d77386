//! Content that the host does not know stays as it is.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{ChunkAt, LocalPos};
use cg_host::{BlockEntity, HostOptions, Saved};
use cg_registry::{BlockOffer, ComponentOffer, Registration};
use cg_store::World;
use cg_store::prelude::BlockId;

use crate::maker::{
    AIR, CHEST, FORM, Made, STONE, UNKNOWN, cells, known, name, number, over, section, uniform,
};

/// A world with a chunk that has blocks of a mod, with data, and the chunk.
fn with_mod() -> (Made, ChunkAt, BlockId) {
    let world = World::builder().in_memory().expect("memory");
    let catalog = world
        .registry()
        .register(&Registration {
            components: vec![ComponentOffer::variable(name("mod:tank"))],
            blocks: vec![
                BlockOffer::new(name("game:stone")),
                BlockOffer { components: vec![name("mod:tank")], ..BlockOffer::new(name("mod:pump")) },
            ],
            ..Registration::default()
        })
        .expect("new");
    let made = over(world, HostOptions::default(), known(0));
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let [stone, pump] = ["game:stone", "mod:pump"].map(|text| catalog.block_id(text).expect("registered"));
    let tank = catalog.component_id("mod:tank").expect("registered");
    let schema = made.host.world().catalog().current_schema();
    let mut chunk = Chunk::filled(stone, &schema).expect("known");
    for cell in [LocalPos::new(1, 2, 3), LocalPos::new(4, 5, 6)] {
        chunk.set_block(cell, pump, &schema).expect("known");
        chunk.set_component(CellLayer::base(cell), tank, &[cell.x(), 77]).expect("it has one");
    }
    chunk.push_layer(LocalPos::new(9, 9, 9), pump, &schema).expect("room");
    let saved = made.host.world().transaction(|tx| {
        tx.save(place, chunk);
        Ok::<_, cg_store::Error>(())
    });
    saved.expect("it fits");
    (made, place, pump)
}

#[test]
fn an_unknown_block_is_shown_as_placeholder_and_stays_with_its_data() {
    let (made, place, pump) = with_mod();
    let before = made.host.world().load(place).expect("sound").expect("stored");
    let mut column = made.load().expect("stored");
    assert_eq!(column.kept, 3);
    assert_eq!(number(&column.sections[0].layers[0], [1, 2, 3]), UNKNOWN);
    assert_eq!(number(&column.sections[0].layers[1], [9, 9, 9]), UNKNOWN);
    assert_eq!(made.binding.unknown(made.host.world())[0], [name("mod:pump")]);
    made.host.forget();
    assert_eq!(made.save(&column), Saved::Unchanged, "the same column changes nothing");
    // The host digs one of them away, and changes another cell.
    let layer = &column.sections[0].layers[0].clone();
    column.sections[0].layers[0] = cells(FORM, 2, |cell| match [cell / 256, cell % 16, cell / 16 % 16] {
        [4, 5, 6] => AIR,
        [0, 0, 0] => CHEST,
        place => number(layer, place),
    });
    made.save(&column);
    let after = made.host.world().load(place).expect("sound").expect("stored");
    let tank = made.host.world().catalog().component_id("mod:tank").expect("registered");
    let kept = LocalPos::new(1, 2, 3);
    assert_eq!(after.block(kept), pump);
    assert_eq!(after.component(CellLayer::base(kept), tank), Some(&[1, 77][..]));
    assert_eq!(after.layer(LocalPos::new(9, 9, 9), 1), Some(pump));
    assert_ne!(after.block(LocalPos::new(4, 5, 6)), pump);
    assert_ne!(after.block(LocalPos::new(0, 0, 0)), before.block(LocalPos::new(0, 0, 0)));
}

#[test]
fn a_placeholder_where_nothing_unknown_is_stored_is_a_block_of_its_own() {
    let (made, place, _) = with_mod();
    let column = uniform(made.at, &[UNKNOWN]);
    made.save(&column);
    let chunk = made.host.world().load(place).expect("sound").expect("stored");
    let placeholder = made.binding.block(UNKNOWN).expect("registered");
    assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), placeholder);
}

#[test]
fn components_of_a_cell_whose_block_is_the_same_stay() {
    let (made, place, _) = with_mod();
    let world = made.host.world();
    let schema = world.catalog().current_schema();
    let chest = made.binding.block(CHEST).expect("registered");
    let cell = LocalPos::new(0, 0, 0);
    let set = world.transaction(|tx| {
        tx.edit(place, |chunk| chunk.set_block(cell, chest, &schema).map(drop))??;
        Ok::<_, cg_store::Error>(())
    });
    set.expect("it fits");
    let mut column = made.load().expect("stored");
    column.block_entities.push(BlockEntity { at: made.block(0, 0, 0), nbt: vec![4, 2] });
    made.save(&column);
    assert_eq!(made.load().expect("stored").block_entities, column.block_entities);
    // A block entity that the host no longer has goes: the block is the host's.
    column.block_entities.clear();
    made.save(&column);
    assert_eq!(made.load().expect("stored").block_entities, []);
}

#[test]
fn a_block_entity_on_a_block_that_cannot_own_one_is_kept_beside_the_chunk() {
    let (made, _, _) = with_mod();
    let mut column = uniform(made.at, &[STONE]);
    column.block_entities.push(BlockEntity { at: made.block(3, 3, 3), nbt: vec![6] });
    made.save(&column);
    assert_eq!(made.load().expect("stored").block_entities, column.block_entities);
    column.block_entities.clear();
    made.save(&column);
    assert_eq!(made.load().expect("stored").block_entities, []);
}

#[test]
fn biomes_and_ticks_of_unknown_names_stay() {
    let (made, place, _) = with_mod();
    let mut known = known(0);
    known.biomes.push(cg_host::KnownBiome { name: name("mod:swamp"), number: 20 });
    known.blocks.push(cg_host::KnownBlock {
        name: name("mod:pump"),
        is_opaque: true,
        owns_block_entity: false,
    });
    let with_names = made.host.bind(known).expect("it fits");
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(cells(FORM, 2, |cell| [7, 20, 9][cell % 3]));
    let at = made.block(1, 1, 1);
    column.scheduled.push(cg_host::Scheduled { at, due: 5, block: 5, priority: 0 });
    made.host.save(&with_names, column, false).expect("it fits");
    let side = |name: &str| {
        let world = made.host.world();
        let kind = world.catalog().side_kind(name).expect("registered");
        let chunk = world.load(place).expect("sound").expect("stored");
        chunk.side(kind).map(<[u8]>::to_vec)
    };
    let before = side("bedrock:biomes");
    assert!(side("host:ticks").is_some());
    let mut shown = made.load().expect("stored");
    let biomes = shown.sections[0].biomes.as_ref().expect("biomes");
    assert_eq!(number(biomes, [0, 1, 0]), 0, "it is shown as the placeholder");
    assert_eq!((shown.scheduled.len(), shown.kept), (0, 1));
    shown.sections.push(section(5, Vec::new()));
    made.save(&shown);
    assert_eq!(side("bedrock:biomes"), before);
    let again = made.host.load(&with_names, made.at).expect("sound").expect("stored");
    assert_eq!(again.scheduled[0].due - again.tick, 5);
}
