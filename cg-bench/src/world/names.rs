//! The names that the worlds use, and the ids under which a catalog knows them.
//!
//! Blocks and animals have the names of Minecraft's, states included, so that the map has colours for them and an
//! export of such a world means something to other tools. As in an imported save, a waterlogged block keeps the state
//! `waterlogged=false` in layer 0 and has the water in layer 1. What is ours is named `cherrygrove:…`.

use cg_format::{BlockId, ComponentId, Dimension, EntityTypeId, SideKind};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, FieldOffer, HexBytes, Name, Registration};

/// A name that [`Generator`](super::Generator) needs and the catalog does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unregistered {
    /// The name.
    pub name: &'static str,
}

impl std::fmt::Display for Unregistered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not registered; register what `Generator::registration` names first", self.name)
    }
}

impl std::error::Error for Unregistered {}

/// The dimension of all generated chunks.
pub(super) const DIMENSION: &str = "minecraft:overworld";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Opaque,
    Clear,
}
use Look::{Clear, Opaque};

macro_rules! blocks {
    ($($field:ident: $name:literal $look:ident [$($component:ident),*],)*) => {
        /// Every block kind in use.
        #[derive(Debug, Clone)]
        pub(super) struct Blocks { $(pub(super) $field: BlockId,)* }

        impl Blocks {
            fn offers() -> Vec<BlockOffer> {
                vec![$(BlockOffer {
                    name: name($name),
                    components: vec![$(name(component::$component)),*],
                    opaque: $look == Opaque,
                },)*]
            }

            fn find(catalog: &Catalog) -> Result<Self, Unregistered> {
                Ok(Self { $($field: found($name, catalog.block_id($name))?,)* })
            }
        }
    };
}

blocks! {
    air: "minecraft:air" Clear [],
    bedrock: "minecraft:bedrock" Opaque [],
    stone: "minecraft:stone" Opaque [],
    deepslate: "minecraft:deepslate[axis=y]" Opaque [],
    granite: "minecraft:granite" Opaque [],
    diorite: "minecraft:diorite" Opaque [],
    andesite: "minecraft:andesite" Opaque [],
    coal_ore: "minecraft:coal_ore" Opaque [],
    iron_ore: "minecraft:iron_ore" Opaque [],
    copper_ore: "minecraft:copper_ore" Opaque [],
    gold_ore: "minecraft:gold_ore" Opaque [],
    redstone_ore: "minecraft:redstone_ore[lit=false]" Opaque [],
    diamond_ore: "minecraft:diamond_ore" Opaque [],
    lava: "minecraft:lava[level=0]" Clear [],
    water: "minecraft:water[level=0]" Clear [],
    ice: "minecraft:ice" Clear [],
    dirt: "minecraft:dirt" Opaque [],
    coarse_dirt: "minecraft:coarse_dirt" Opaque [],
    grass_block: "minecraft:grass_block[snowy=false]" Opaque [],
    snowy_grass_block: "minecraft:grass_block[snowy=true]" Opaque [],
    snow: "minecraft:snow[layers=1]" Clear [],
    sand: "minecraft:sand" Opaque [],
    sandstone: "minecraft:sandstone" Opaque [],
    gravel: "minecraft:gravel" Opaque [],
    clay: "minecraft:clay" Opaque [],
    short_grass: "minecraft:short_grass" Clear [],
    poppy: "minecraft:poppy" Clear [],
    dandelion: "minecraft:dandelion" Clear [],
    cactus: "minecraft:cactus[age=0]" Clear [],
    oak_log: "minecraft:oak_log[axis=y]" Opaque [],
    oak_leaves: "minecraft:oak_leaves[distance=1,persistent=false,waterlogged=false]" Clear [],
    birch_log: "minecraft:birch_log[axis=y]" Opaque [],
    birch_leaves: "minecraft:birch_leaves[distance=1,persistent=false,waterlogged=false]" Clear [],
    spruce_log: "minecraft:spruce_log[axis=y]" Opaque [],
    spruce_leaves: "minecraft:spruce_leaves[distance=1,persistent=false,waterlogged=false]" Clear [],
    sea_pickle: "minecraft:sea_pickle[pickles=1,waterlogged=false]" Clear [],
    algae: "cherrygrove:algae" Clear [],
    oak_planks: "minecraft:oak_planks" Opaque [],
    oak_slab: "minecraft:oak_slab[type=bottom,waterlogged=false]" Clear [],
    oak_fence: "minecraft:oak_fence[east=false,north=false,south=false,waterlogged=false,west=false]" Clear [],
    cobblestone: "minecraft:cobblestone" Opaque [],
    chest: "minecraft:chest[facing=north,type=single,waterlogged=false]" Clear [ITEMS],
    furnace: "minecraft:furnace[facing=north,lit=false]" Opaque [SMELTING, ITEMS],
    lit_furnace: "minecraft:furnace[facing=north,lit=true]" Opaque [SMELTING, ITEMS],
    sign: "minecraft:oak_sign[rotation=0,waterlogged=false]" Clear [TEXT],
    bookshelf: "minecraft:bookshelf" Opaque [ITEMS],
    lectern: "minecraft:lectern[facing=north,has_book=true,powered=false]" Clear [TEXT, SMELTING],
}

mod component {
    //! The names of components.
    pub(super) const SMELTING: &str = "cherrygrove:smelting";
    pub(super) const ITEMS: &str = "cherrygrove:items";
    pub(super) const TEXT: &str = "cherrygrove:text";
    pub(super) const HEALTH: &str = "cherrygrove:health";
    pub(super) const NAME: &str = "cherrygrove:name";
}

macro_rules! kinds {
    ($(#[$doc:meta])* $type:ident of $id:ty, $lookup:ident: $($field:ident: $name:expr,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub(super) struct $type { $(pub(super) $field: $id,)* }

        impl $type {
            const NAMES: &[&str] = &[$($name,)*];

            fn find(catalog: &Catalog) -> Result<Self, Unregistered> {
                Ok(Self { $($field: found($name, catalog.$lookup($name))?,)* })
            }
        }
    };
}

/// Every component in use: of blocks, then of entities.
#[derive(Debug, Clone)]
pub(super) struct Components {
    pub(super) smelting: ComponentId,
    pub(super) items: ComponentId,
    pub(super) text: ComponentId,
    pub(super) health: ComponentId,
    pub(super) name: ComponentId,
}

impl Components {
    fn find(catalog: &Catalog) -> Result<Self, Unregistered> {
        let id = |name| found(name, catalog.component_id(name));
        Ok(Self {
            smelting: id(component::SMELTING)?,
            items: id(component::ITEMS)?,
            text: id(component::TEXT)?,
            health: id(component::HEALTH)?,
            name: id(component::NAME)?,
        })
    }
}

kinds! {
    /// Every kind of entity in use.
    Animals of EntityTypeId, entity_type:
    sheep: "minecraft:sheep",
    cow: "minecraft:cow",
    chicken: "minecraft:chicken",
    cod: "minecraft:cod",
    bat: "minecraft:bat",
    player: "minecraft:player",
}

kinds! {
    /// Every kind of side data in use.
    Sides of SideKind, side_kind:
    sky_light: "cherrygrove:sky_light",
    biomes: "cherrygrove:biomes",
    stage: "cherrygrove:stage",
}

/// All ids that a generator needs.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    pub(super) dimension: Dimension,
    pub(super) blocks: Blocks,
    pub(super) components: Components,
    pub(super) animals: Animals,
    pub(super) sides: Sides,
}

impl Ids {
    pub(super) fn find(catalog: &Catalog) -> Result<Self, Unregistered> {
        Ok(Self {
            dimension: found(DIMENSION, catalog.dimension(DIMENSION))?,
            blocks: Blocks::find(catalog)?,
            components: Components::find(catalog)?,
            animals: Animals::find(catalog)?,
            sides: Sides::find(catalog)?,
        })
    }
}

/// Everything that the worlds register.
pub(super) fn registration() -> Registration {
    let names = |names: &[&str]| names.iter().map(|text| name(text)).collect();
    Registration {
        components: vec![
            smelting(),
            ComponentOffer::variable(name(component::ITEMS)),
            ComponentOffer::variable(name(component::TEXT)),
            ComponentOffer::fixed(name(component::HEALTH), 4),
            ComponentOffer::variable(name(component::NAME)),
        ],
        blocks: Blocks::offers(),
        entities: names(Animals::NAMES),
        structures: Vec::new(),
        dimensions: names(&[DIMENSION]),
        sides: names(Sides::NAMES),
    }
}

/// The component of one width whose parts have names.
fn smelting() -> ComponentOffer {
    let field = |name: &str, width_bytes| FieldOffer::new(name, width_bytes);
    ComponentOffer {
        fields: vec![
            field("fuel_ticks", 2),
            field("done_ticks", 2),
            FieldOffer { default_bytes: Some(HexBytes(vec![1, 0, 0, 0])), ..field("experience", 4) },
        ],
        ..ComponentOffer::fixed(name(component::SMELTING), 8)
    }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("the names of this file follow the rules for names")
}

fn found<T>(name: &'static str, id: Option<T>) -> Result<T, Unregistered> {
    id.ok_or(Unregistered { name })
}
