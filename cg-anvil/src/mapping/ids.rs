//! The ids that a world gave to what every import uses.

use cg_format::{ComponentId, SideKind};
use cg_minecraft::content::{
    BIOMES, BLOCK_BIOMES, BLOCK_ENTITIES, BLOCK_ENTITY, BLOCK_LIGHT, COLUMN, DATA_VERSION, ENTITY_NBT,
    ENTITY_ORIGIN, SKY_LIGHT, STATUS,
};
use cg_registry::{Catalog, ComponentOffer, Name, Registration};
use cg_store::{Error, World};

/// The ids of components and kinds of side data; `None` for what a world has no name of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the id of the constant of its name")]
pub struct Ids {
    pub block_entity: Option<ComponentId>,
    pub entity_nbt: Option<ComponentId>,
    pub entity_origin: Option<ComponentId>,
    pub biomes: Option<SideKind>,
    pub block_light: Option<SideKind>,
    pub sky_light: Option<SideKind>,
    pub status: Option<SideKind>,
    pub block_entities: Option<SideKind>,
    pub column: Option<SideKind>,
    pub data_version: Option<SideKind>,
    pub block_biomes: Option<SideKind>,
}

impl Ids {
    /// Finds what a world has.
    pub fn find(catalog: &Catalog) -> Self {
        Self {
            block_entity: catalog.component_id(BLOCK_ENTITY),
            entity_nbt: catalog.component_id(ENTITY_NBT),
            entity_origin: catalog.component_id(ENTITY_ORIGIN),
            biomes: catalog.side_kind(BIOMES),
            block_light: catalog.side_kind(BLOCK_LIGHT),
            sky_light: catalog.side_kind(SKY_LIGHT),
            status: catalog.side_kind(STATUS),
            block_entities: catalog.side_kind(BLOCK_ENTITIES),
            column: catalog.side_kind(COLUMN),
            data_version: catalog.side_kind(DATA_VERSION),
            block_biomes: catalog.side_kind(BLOCK_BIOMES),
        }
    }

    /// Registers what a world does not have yet, and finds all.
    ///
    /// # Errors
    /// If a component of the name is there with another shape, and what the store says.
    pub fn register(world: &World) -> Result<Self, Error> {
        Self::register_with(world, &[BIOMES, BLOCK_LIGHT, SKY_LIGHT, STATUS, BLOCK_ENTITIES, COLUMN])
    }

    /// Registers what a schematic uses and a world does not have yet, and finds all.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_for_schematic(world: &World) -> Result<Self, Error> {
        Self::register_with(world, &[BIOMES, BLOCK_ENTITIES, DATA_VERSION, BLOCK_BIOMES])
    }

    fn register_with(world: &World, sides: &[&str]) -> Result<Self, Error> {
        let name = |text: &str| Name::new(text).expect("a literal name");
        let component = |text: &str| ComponentOffer::variable(name(text));
        let catalog = world.registry().register(&Registration {
            components: [BLOCK_ENTITY, ENTITY_NBT, ENTITY_ORIGIN].map(component).into(),
            sides: sides.iter().copied().map(name).collect(),
            ..Registration::default()
        })?;
        Ok(Self::find(&catalog))
    }
}
