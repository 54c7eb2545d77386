//! Bindings: the host's numbers of blocks, biomes and kinds of entity, and the world's names of them.

mod known;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::{BlockId, ComponentId, EntityTypeId, SideKind};
use cg_minecraft::content::{BIOMES, BLOCK_LIGHT, SKY_LIGHT};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, ListKind, Name, Registration};
use cg_store::World;

pub use known::{Known, KnownBiome, KnownBlock};

use crate::column::Form;
use crate::error::Error;
use crate::place::ColumnAt;
use crate::problem::ColumnProblem;

/// The component of a block that holds the NBT of its block entity.
pub const BLOCK_ENTITY: &str = cg_minecraft::content::BLOCK_ENTITY;
/// The component of an entity that holds its NBT.
pub const ENTITY_NBT: &str = cg_minecraft::content::ENTITY_NBT;
/// Side data: the biome of each block, by name.
pub(crate) const BLOCK_BIOMES: &str = "bedrock:biomes";
/// Side data: blocks that are to be updated at a tick.
pub(crate) const TICKS: &str = "host:ticks";
/// Side data: block entities whose block cannot own one.
pub(crate) const STRAYS: &str = "host:block_entities";

/// The numbers of a host, bound to the names of a world.
///
/// A look-up in either direction is one read of an array. Names that the world has and the host does not are *unknown*:
/// a load shows the placeholder instead, and a save keeps them.
#[derive(Debug)]
pub struct Binding {
    /// Unlike that of any other binding of the process.
    own_number: u64,
    known: Known,
    /// The world's id of each number. `None` in a world without that name that is open for reading.
    ids: Vec<Option<BlockId>>,
    /// The host's number of each id, [`UNKNOWN`] if it has none.
    numbers: Vec<u32>,
    /// The world's kind of each of the host's kinds of entity.
    kinds: Vec<Option<EntityTypeId>>,
    kind_numbers: HashMap<EntityTypeId, u32>,
    biome_names: HashMap<u32, Arc<str>>,
    biome_numbers: HashMap<Arc<str>, u32>,
    pub(crate) names: Names,
}

/// The ids of the names that every host uses; `None` in a world without them that is open for reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) block_entity: Option<ComponentId>,
    pub(crate) entity_nbt: Option<ComponentId>,
    pub(crate) biomes: Option<SideKind>,
    pub(crate) block_biomes: Option<SideKind>,
    pub(crate) block_light: Option<SideKind>,
    pub(crate) sky_light: Option<SideKind>,
    pub(crate) ticks: Option<SideKind>,
    pub(crate) strays: Option<SideKind>,
}

const UNKNOWN: u32 = u32::MAX;

/// The bindings that the process has made.
static BINDINGS: AtomicU64 = AtomicU64::new(0);

impl Names {
    fn find(catalog: &Catalog) -> Self {
        Self {
            block_entity: catalog.component_id(BLOCK_ENTITY),
            entity_nbt: catalog.component_id(ENTITY_NBT),
            biomes: catalog.side_kind(BIOMES),
            block_biomes: catalog.side_kind(BLOCK_BIOMES),
            block_light: catalog.side_kind(BLOCK_LIGHT),
            sky_light: catalog.side_kind(SKY_LIGHT),
            ticks: catalog.side_kind(TICKS),
            strays: catalog.side_kind(STRAYS),
        }
    }
}

impl Binding {
    /// Binds what a host knows. Registers the names that the world does not have, in one commit.
    pub(crate) fn new(world: &World, known: Known) -> Result<Self, Error> {
        let known = known.checked()?;
        let missing = missing(&world.catalog(), &known);
        let catalog = if missing == Registration::default() {
            world.catalog()
        } else {
            match world.registry().register(&missing) {
                // What is missing then stays without an id, and only loads are of use.
                Err(error) if error.kind() == cg_store::ErrorKind::ReadOnly => world.catalog(),
                registered => registered?,
            }
        };
        Ok(Self::of(&catalog, known))
    }

    fn of(catalog: &Catalog, known: Known) -> Self {
        let blocks = catalog.list(ListKind::Blocks);
        let ids: Vec<Option<BlockId>> =
            known.blocks.iter().map(|block| catalog.block_id(block.name.as_str())).collect();
        let mut numbers = vec![UNKNOWN; blocks.len()];
        for (number, id) in (0..).zip(&ids) {
            let place = id.and_then(|id| numbers.get_mut(usize::try_from(id.get()).ok()?));
            if let Some(place) = place {
                *place = number;
            }
        }
        // The engine's own air, if the host has none of that name.
        if let Some(place) = catalog.block_id(":air").and_then(|air| numbers.get_mut(air.get() as usize))
            && *place == UNKNOWN
        {
            *place = known.air;
        }
        // A kind that was united with another one shows the number of the newest.
        for id in 0..numbers.len() {
            let newest = blocks.newest(id as u64) as usize;
            let number = numbers.get(newest).copied().unwrap_or(UNKNOWN);
            if let Some(place) = numbers.get_mut(id).filter(|place| **place == UNKNOWN) {
                *place = number;
            }
        }
        let kinds: Vec<Option<EntityTypeId>> =
            known.entities.iter().map(|name| catalog.entity_type(name.as_str())).collect();
        let kind_numbers = (0..).zip(&kinds).filter_map(|(number, kind)| Some(((*kind)?, number))).collect();
        let biomes =
            || known.biomes.iter().map(|biome| (biome.number, Arc::<str>::from(biome.name.as_str())));
        Self {
            own_number: BINDINGS.fetch_add(1, Ordering::Relaxed),
            ids,
            numbers,
            kinds,
            kind_numbers,
            biome_names: biomes().collect(),
            biome_numbers: biomes().map(|(number, name)| (name, number)).collect(),
            names: Names::find(catalog),
            known,
        }
    }

    /// A number that no other binding of the process has.
    pub(crate) const fn own_number(&self) -> u64 {
        self.own_number
    }

    /// What the host knows.
    pub const fn known(&self) -> &Known {
        &self.known
    }

    /// The form in which the host wants cells.
    pub const fn form(&self) -> Form {
        self.known.form
    }

    /// The host's number of a block; `None` if the host does not know it.
    pub fn number(&self, block: BlockId) -> Option<u32> {
        let number = self.numbers.get(usize::try_from(block.get()).ok()?).copied()?;
        (number != UNKNOWN).then_some(number)
    }

    /// The world's id of a host's number.
    pub fn block(&self, number: u32) -> Option<BlockId> {
        self.ids.get(number as usize).copied().flatten()
    }

    /// The world's id of a number that a column has.
    pub(crate) fn block_in(&self, at: &ColumnAt, number: u32) -> Result<BlockId, Error> {
        let count = self.ids.len();
        let part = "block";
        let id = self.ids.get(number as usize);
        let id = id.ok_or_else(|| at.refuse(ColumnProblem::Number { part, number, count }))?;
        id.ok_or_else(|| at.refuse(ColumnProblem::NoName { part, number }))
    }

    /// Whether the host has a block entity in cells of this number.
    pub(crate) fn owns_block_entity(&self, number: u32) -> bool {
        self.known.blocks.get(number as usize).is_some_and(|block| block.owns_block_entity)
    }

    /// The host's number of a kind of entity.
    pub fn kind_number(&self, kind: EntityTypeId) -> Option<u32> {
        self.kind_numbers.get(&kind).copied()
    }

    /// The world's kind of one of the host's kinds of entity.
    pub(crate) fn kind_in(&self, at: &ColumnAt, number: u32) -> Result<EntityTypeId, Error> {
        let (part, count) = ("kind of entity", self.kinds.len());
        let kind = self.kinds.get(number as usize);
        let kind = kind.ok_or_else(|| at.refuse(ColumnProblem::Number { part, number, count }))?;
        kind.ok_or_else(|| at.refuse(ColumnProblem::NoName { part, number }))
    }

    /// The world's kind of one of the host's kinds of entity.
    pub fn kind(&self, number: u32) -> Option<EntityTypeId> {
        self.kinds.get(number as usize).copied().flatten()
    }

    pub(crate) fn biome_name(&self, number: u32) -> Option<&Arc<str>> {
        self.biome_names.get(&number)
    }

    pub(crate) fn biome_number(&self, name: &str) -> Option<u32> {
        self.biome_numbers.get(name).copied()
    }

    pub(crate) fn biome_count(&self) -> usize {
        self.biome_names.len()
    }

    /// The world's id of each of the host's numbers.
    pub fn blocks(&self) -> &[Option<BlockId>] {
        &self.ids
    }

    /// Names of the world that the host does not know: blocks, then kinds of entity.
    pub fn unknown(&self, world: &World) -> [Vec<Name>; 2] {
        let catalog = world.catalog();
        let list = |list, is_known: &dyn Fn(u64) -> bool| {
            let names = (0..).zip(catalog.list(list).names());
            names.filter(|(id, _)| !is_known(*id)).map(|(_, name)| name.clone()).collect()
        };
        [
            list(ListKind::Blocks, &|id| self.number(BlockId::new(id)).is_some()),
            list(ListKind::Entities, &|id| {
                u32::try_from(id).is_ok_and(|id| self.kind_number(EntityTypeId::new(id.into())).is_some())
            }),
        ]
    }
}

/// What a host knows and a world has no name of.
fn missing(catalog: &Catalog, known: &Known) -> Registration {
    let name = |text: &str| Name::new(text).expect("a literal name");
    let component = |text: &&str| catalog.component_id(text).is_none();
    let side = |text: &&str| catalog.side_kind(text).is_none();
    let owner = |owns: bool| if owns { vec![name(BLOCK_ENTITY)] } else { Vec::new() };
    let sides = [
        if known.biome_side_log2 == 2 { BIOMES } else { BLOCK_BIOMES },
        BLOCK_LIGHT,
        SKY_LIGHT,
        TICKS,
        STRAYS,
    ];
    let blocks = known.blocks.iter().filter(|block| catalog.block_id(block.name.as_str()).is_none());
    Registration {
        components: [BLOCK_ENTITY, ENTITY_NBT]
            .into_iter()
            .filter(component)
            .map(|text| ComponentOffer::variable(name(text)))
            .collect(),
        blocks: blocks
            .map(|block| BlockOffer {
                components: owner(block.owns_block_entity),
                opaque: block.is_opaque,
                ..BlockOffer::new(block.name.clone())
            })
            .collect(),
        entities: known
            .entities
            .iter()
            .filter(|kind| catalog.entity_type(kind.as_str()).is_none())
            .cloned()
            .collect(),
        sides: sides.into_iter().filter(side).map(name).collect(),
        ..Registration::default()
    }
}
