//! Catalogs and regions to try things on: two registries with the same names in different order, chunks of every kind.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{
    BlockBox, BlockId, BlockPos, ChunkAt, ChunkSink as _, Dimension, Editor, EntityId, LocalPos,
};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, FieldOffer, Name, Registration};
use cg_snapshot::memory::Memory;
use cg_snapshot::{CaptureOptions, Region, Snapshot, capture};

pub(crate) const ITEMS: &str = "game:items";
pub(crate) const FACING: &str = "game:facing";
pub(crate) const LIGHT: &str = "game:light";

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn register(catalog: &mut Catalog, blocks: &[&str], dimensions: &[&str]) {
    let offer = |text: &&str| {
        let components = if *text == "game:chest" { vec![name(FACING), name(ITEMS)] } else { Vec::new() };
        BlockOffer { components, opaque: *text != ":air", ..BlockOffer::new(name(text)) }
    };
    let field = |name: &str| FieldOffer::new(name, 1);
    let facing = ComponentOffer {
        fields: vec![field("yaw"), field("pitch")],
        ..ComponentOffer::fixed(name(FACING), 2)
    };
    let registration = Registration {
        components: vec![ComponentOffer::variable(name(ITEMS)), facing],
        blocks: blocks.iter().map(offer).collect(),
        entities: vec![name("game:sheep")],
        dimensions: dimensions.iter().map(|text| name(text)).collect(),
        sides: vec![name(LIGHT)],
        ..Registration::default()
    };
    catalog.register(&registration).expect("new names");
}

/// Air is 0, the chest 3; the arena is dimension 0.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    register(&mut catalog, &[":air", "game:stone", "game:dirt", "game:chest", "game:water"], &["game:arena"]);
    catalog
}

/// The same names and more, with other ids.
pub(crate) fn other_catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let first = Registration {
        components: vec![ComponentOffer::fixed(name("mod:charge"), 4)],
        entities: vec![name("mod:drone")],
        sides: vec![name("mod:fog")],
        ..Registration::default()
    };
    catalog.register(&first).expect("new names");
    let blocks = ["mod:wire", "game:water", "game:chest", "game:dirt", "game:stone", ":air"];
    register(&mut catalog, &blocks, &["mod:moon", "game:arena"]);
    catalog
}

pub(crate) fn arena(catalog: &Catalog) -> Dimension {
    catalog.dimension("game:arena").expect("registered")
}

/// Numbers that are always the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

pub(crate) fn id(number: u64) -> EntityId {
    EntityId::from_bytes(u128::from(number).to_le_bytes())
}

fn sheep(at: ChunkAt, cell: LocalPos, wool: u8) -> Entity {
    let position = EntityPos::new(at.dimension, at.pos.block(cell), [0.5, 0.0, 0.25]).expect("a position");
    let catalog = catalog();
    let mut sheep =
        Entity::new(catalog.entity_type("game:sheep").expect("registered"), Owner::Chunk(at), position);
    let items = catalog.component_id(ITEMS).expect("registered");
    sheep.set_component(items, vec![wool; 3]).expect("short");
    sheep
}

/// A region of several chunks around the origin: uniform, mixed and layered ones, chests, side data and sheep; some places
/// without a chunk.
pub(crate) fn host(seed: u64) -> Memory {
    let catalog = catalog();
    let schema = catalog.current_schema();
    let mut dice = Dice(seed);
    let mut host = Memory::new(&catalog);
    let mut next = 1;
    for pos in around().chunks().iter() {
        let at = ChunkAt::new(arena(&catalog), pos);
        let kind = dice.below(6);
        if kind == 0 {
            continue;
        }
        let mut chunk = Chunk::filled(BlockId::new(dice.below(3)), &schema).expect("known");
        if kind > 1 {
            scribble(&mut chunk, &mut dice, 40);
        }
        if kind > 3 {
            let side = catalog.side_kind(LIGHT).expect("registered");
            chunk.set_side(side, vec![dice.below(256) as u8; 5]);
        }
        host.insert(at, chunk);
        if kind > 4 {
            let cell = cell(&mut dice);
            host.put_entity(id(next), sheep(at, cell, next as u8)).unwrap_or_else(|never| match never {});
            next += 1;
        }
    }
    host
}

/// The box that [`host`] fills.
pub(crate) fn around() -> BlockBox {
    BlockBox::new(BlockPos::new(-32, -16, -16), BlockPos::new(31, 15, 31))
}

fn cell(dice: &mut Dice) -> LocalPos {
    LocalPos::from_index(dice.below(4096) as u16).expect("below 4,096")
}

fn scribble(chunk: &mut Chunk, dice: &mut Dice, times: u64) {
    let catalog = catalog();
    let schema = catalog.current_schema();
    for _ in 0..times {
        let cell = cell(dice);
        let block = BlockId::new(dice.below(5));
        match dice.below(4) {
            0 if chunk.layer_count(cell) < 3 => drop(chunk.push_layer(cell, block, &schema).expect("known")),
            1 if chunk.layer_count(cell) > 1 => drop(chunk.remove_layer(cell, 1).expect("there")),
            _ => drop(chunk.set_block(cell, block, &schema).expect("known")),
        }
        let items = catalog.component_id(ITEMS).expect("registered");
        if chunk.component(CellLayer::base(cell), items).is_some() {
            let bytes = vec![dice.below(256) as u8; dice.below(4) as usize];
            chunk.set_component(CellLayer::base(cell), items, &bytes).expect("a chest");
        }
    }
}

/// Changes blocks, layers, contents of chests, side data and sheep all over the host.
pub(crate) fn damage(host: &mut Memory, seed: u64) {
    let catalog = catalog();
    let mut dice = Dice(seed);
    let light = catalog.side_kind(LIGHT).expect("registered");
    for pos in around().chunks().iter() {
        let at = ChunkAt::new(arena(&catalog), pos);
        host.edit(at, |chunk| {
            let times = [0, 1, 30, 400][dice.below(4) as usize];
            scribble(chunk, &mut dice, times);
            if dice.below(3) == 0 {
                chunk.set_side(light, vec![7]);
            }
        });
        let is_there = host.edit(at, |_| ()).is_some();
        if is_there && dice.below(3) == 0 {
            let number = 1000 + dice.below(1000);
            host.put_entity(id(number), sheep(at, cell(&mut dice), 9)).unwrap_or_else(|never| match never {});
        }
    }
    let sheep: Vec<EntityId> = host.entities().map(|(id, _)| id).filter(|it| *it < id(1000)).collect();
    for id in sheep {
        if dice.below(2) == 0 {
            host.delete_entity(id).unwrap_or_else(|never| match never {});
        }
    }
}

pub(crate) fn region(area: BlockBox) -> Region {
    Region::new(Dimension::new(0), area)
}

pub(crate) fn captured(host: &Memory, area: BlockBox) -> Snapshot {
    capture(host, &catalog(), region(area), &CaptureOptions::named("made")).expect("captured")
}

/// A small region of fixed content: stone, a chest, water over dirt, light and a sheep; one chunk is missing.
pub(crate) fn yard() -> Snapshot {
    yard_up_to(60)
}

/// The yard up to a column, of which the first chunk holds everything.
pub(crate) fn yard_up_to(x: i64) -> Snapshot {
    let catalog = catalog();
    let schema = catalog.current_schema();
    let mut host = Memory::new(&catalog);
    let at = |x| ChunkAt::new(arena(&catalog), cg_format::ChunkPos::constant(x, 0, 0));
    let stone = Chunk::filled(BlockId::new(1), &schema).expect("known");
    let mut full = stone.clone();
    let chest = LocalPos::new(1, 2, 3);
    full.set_block(chest, BlockId::new(3), &schema).expect("known");
    let items = catalog.component_id(ITEMS).expect("registered");
    full.set_component(CellLayer::base(chest), items, b"apple").expect("a chest");
    full.set_block(LocalPos::new(4, 5, 6), BlockId::new(2), &schema).expect("known");
    full.push_layer(LocalPos::new(4, 5, 6), BlockId::new(4), &schema).expect("known");
    full.set_side(catalog.side_kind(LIGHT).expect("registered"), b"bright".to_vec());
    host.save(at(0), full.into()).unwrap_or_else(|never| match never {});
    host.insert(at(1), stone.clone());
    host.insert(at(2), stone);
    host.put_entity(id(5), sheep(at(0), LocalPos::new(8, 8, 8), 1)).unwrap_or_else(|never| match never {});
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(x, 15, 15));
    let options = CaptureOptions { created_ms: 1_700_000_000_000, ..CaptureOptions::named("yard") };
    capture(&host, &catalog, region(area), &options).expect("captured")
}
