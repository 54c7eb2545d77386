//! Contents of a world, counted from its chunks and entities as another decoder counted the save.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use cg_anvil::mapping::{Ids, Origin};
use cg_anvil::{Decoder, Payload, nbt};
use cg_minecraft::{name, water};
use cg_store::prelude::*;
use cg_store::view::Area;
use serde_json::{Value, json};

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) columns: BTreeSet<(u64, i32, i32)>,
    pub(crate) chunks: u64,
    pub(crate) states: BTreeMap<String, u64>,
    pub(crate) block_entities: BTreeMap<String, u64>,
    /// Of these, those that are a component of their block.
    pub(crate) owned_block_entities: u64,
    /// Entities that ride nothing.
    pub(crate) entities: BTreeMap<String, u64>,
    pub(crate) riders: u64,
    pub(crate) detached: u64,
    pub(crate) statuses: BTreeMap<String, u64>,
    pub(crate) heights: Option<(i64, i64)>,
}

pub(crate) fn open(dir: &Path) -> World {
    World::builder().options(&WorldOptions::process()).open(dir).expect("the world opens")
}

fn kind(nbt: &[u8]) -> String {
    let nbt = nbt::Compound::parse(nbt, &nbt::Limits::default()).expect("a compound");
    nbt.text("id").expect("an id").lossy().into_owned()
}

pub(crate) fn count(world: &World) -> Held {
    let catalog = world.catalog();
    let ids = Ids::find(&catalog);
    let mut held = Held::default();
    let mut rests = Vec::new();
    let stopped = world.read_view(|view| {
        view.for_each_chunk(Area::World, |stored| {
            let stored = stored.expect("no damage");
            let chunk = view.decode(stored).expect("it decodes");
            held.chunks += 1;
            let y = stored.at.pos.y();
            let (low, high) = held.heights.unwrap_or((y, y));
            held.heights = Some((low.min(y), high.max(y)));
            let text = |block| name::text(catalog.block_name(block).expect("a registered block").as_str());
            let mut counts: BTreeMap<BlockId, u64> =
                chunk.palette().iter().map(|entry| (entry.block, u64::from(entry.count))).collect();
            for (place, upper) in chunk.upper_layers() {
                assert_eq!(place.layer, 1);
                let dry = chunk.block(place.cell);
                for block in [dry, upper] {
                    *counts.get_mut(&block).expect("the palette has it") -= 1;
                }
                let wet = water::join(&text(dry), &text(upper)).expect("a waterlogged block");
                *held.states.entry(wet).or_default() += 1;
            }
            for (block, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                *held.states.entry(text(block)).or_default() += count;
            }
            for (component, _, bytes) in chunk.components() {
                assert_eq!(Some(component), ids.block_entity);
                if !bytes.is_empty() {
                    *held.block_entities.entry(kind(bytes)).or_default() += 1;
                    held.owned_block_entities += 1;
                }
            }
            for (side, bytes) in chunk.sides() {
                if Some(side) == ids.block_entities {
                    let list = nbt::Compound::parse(bytes, &nbt::Limits::default()).expect("a compound");
                    for entity in list.list("block_entities").expect("a list").compounds() {
                        *held.block_entities.entry(kind(entity.raw())).or_default() += 1;
                    }
                } else if Some(side) == ids.column {
                    rests.push((stored.at.dimension.get(), bytes.to_vec()));
                }
            }
            ControlFlow::<()>::Continue(())
        })
    });
    stopped.expect("the walk ends");
    let stopped = world.read_view(|view| {
        view.for_each_property("", |property| {
            let (property, bytes) = property.expect("no damage");
            if property == cg_minecraft::content::GAME {
                assert_eq!(bytes, cg_minecraft::content::JAVA.as_bytes(), "a save is of Java Edition");
                return ControlFlow::<()>::Continue(());
            }
            let (dimension, ..) = name::column_of_property(property).expect("nothing else is left behind");
            let dimension =
                world.catalog().dimension(name::of(&dimension).unwrap().as_str()).expect("registered");
            rests.push((dimension.get(), bytes.to_vec()));
            ControlFlow::<()>::Continue(())
        })
    });
    stopped.expect("the walk ends");
    for (dimension, rest) in rests {
        let Ok(Payload::Column(rest)) = Decoder::default().decode(&rest) else { panic!("no column") };
        assert!(
            held.columns.insert((dimension, rest.pos.x, rest.pos.z)),
            "column ({}, {}) is there twice",
            rest.pos.x,
            rest.pos.z
        );
        *held.statuses.entry(rest.status().unwrap_or("-".to_owned())).or_default() += 1;
        for entity in rest.block_entities {
            *held.block_entities.entry(entity.kind).or_default() += 1;
        }
    }
    let stopped = world.read_view(|view| {
        view.for_each_entity(|entity| {
            let (_, entity) = entity.expect("no damage");
            let component =
                |id: Option<ComponentId>| entity.component(id.expect("registered")).expect("it is there");
            let origin = Origin::decode(component(ids.entity_origin)).expect("an origin");
            if origin.vehicle.is_some() {
                held.riders += 1;
            } else {
                *held.entities.entry(kind(component(ids.entity_nbt))).or_default() += 1;
            }
            held.detached += u64::from(matches!(entity.owner, Owner::Detached(_)));
            ControlFlow::<()>::Continue(())
        })
    });
    stopped.expect("the walk ends");
    held
}

impl Held {
    /// The figures under the names that `TRUTH.json` gives them, of a file with columns.
    pub(crate) fn figures(&self) -> Value {
        json!({
            "chunks": self.columns.len(),
            "sections_with_blocks": self.chunks,
            "section_y": self.heights.map_or(json!([null, null]), |(low, high)| json!([low, high])),
            "blocks_total": self.states.values().sum::<u64>(),
            "distinct_states": self.states.len(),
            "states": self.states,
            "block_entities": self.block_entities,
            "entities": self.entities,
            "status": self.statuses,
        })
    }
}

/// The state of a block as a save would say it.
pub(crate) fn state(world: &World, dimension: Dimension, [x, y, z]: [i64; 3]) -> Option<String> {
    let pos = BlockPos::new(x, y, z);
    let chunk = world.load(ChunkAt::new(dimension, pos.chunk())).expect("no damage")?;
    let catalog = world.catalog();
    let text = |block| name::text(catalog.block_name(block).expect("registered").as_str());
    let dry = text(chunk.block(pos.local()));
    Some(match chunk.layer(pos.local(), 1) {
        Some(upper) => water::join(&dry, &text(upper)).expect("waterlogged"),
        None => dry,
    })
}

/// The kinds of the block entities that a block owns or that lie beside it at its place.
pub(crate) fn block_entities(world: &World, dimension: Dimension, pos: [i64; 3]) -> Vec<String> {
    let block = BlockPos::new(pos[0], pos[1], pos[2]);
    let ids = Ids::find(&world.catalog());
    let Some(chunk) = world.load(ChunkAt::new(dimension, block.chunk())).expect("no damage") else {
        return Vec::new();
    };
    let owned = ids.block_entity.and_then(|id| chunk.component(CellLayer::base(block.local()), id));
    let mut found: Vec<_> = owned.filter(|bytes| !bytes.is_empty()).map(kind).into_iter().collect();
    if let Some(side) = ids.block_entities.and_then(|side| chunk.side(side)) {
        let list = nbt::Compound::parse(side, &nbt::Limits::default()).expect("a compound");
        for entity in list.list("block_entities").expect("a list").compounds() {
            let at = ["x", "y", "z"].map(|name| entity.long(name));
            if at == pos.map(Some) {
                found.push(kind(entity.raw()));
            }
        }
    }
    found
}
