//! Mapping of a Java save to a world, the same for import and export.
//!
//! `docs/format/anvil-mapping.md` describes the whole mapping for people. In short:
//!
//! | in the save | in the world |
//! |---|---|
//! | dimension | dimension of the same name |
//! | block state | block of that name, see [`name`] |
//! | `waterlogged=true` | the dry state in layer 0, `minecraft:water[level=0]` in layer 1 |
//! | block entity | component [`BLOCK_ENTITY`] of its block, its NBT byte for byte |
//! | block entity that no block can own | side data [`BLOCK_ENTITIES`] of its chunk |
//! | biomes, light, generation status | side data of the chunk |
//! | light of no section of blocks, times of a column | side data [`COLUMN`] of the column's lowest chunk |
//! | every other field of a column, and files that are no regions | objects, see [`key`] and [`leftovers`] |
//! | slot with an unreadable part | object, see [`kept`] |
//! | column without a chunk of ours | property, see [`name::column_property`] |
//! | entity, rider | entity with components [`ENTITY_NBT`] and [`ENTITY_ORIGIN`] |
//!
//! Schematics use the same, see `docs/format/schematic.md`.

pub mod ids;
pub mod imported;
pub mod kept;
pub mod key;
pub mod kind;
pub mod layout;
pub mod leftovers;
pub mod name;
pub mod origin;
pub mod place;
pub mod slots;
pub mod visits;

use cg_store::{Error, ErrorKind};

pub use ids::Ids;
pub use imported::{ImportedObjects, ObjectCount};
pub use kept::KeptSlot;
pub use layout::MetLayout;
pub use leftovers::Leftovers;
pub use origin::{InSchematic, Origin};
pub use slots::{EntitySlot, Points};
pub use visits::Visits;

/// The component of blocks that can have a block entity: its NBT compound, or nothing.
pub const BLOCK_ENTITY: &str = "minecraft:block_entity";
/// The component of every entity: its NBT compound without its riders.
pub const ENTITY_NBT: &str = "minecraft:entity_nbt";
/// The component of every entity that says where in a save it stood, and its riders: an [`Origin`].
pub const ENTITY_ORIGIN: &str = "minecraft:entity_origin";
/// Side data: the `biomes` compound of the section.
pub const BIOMES: &str = "minecraft:biomes";
/// Side data: 2,048 bytes of light from blocks in the game's order.
pub const BLOCK_LIGHT: &str = "minecraft:block_light";
/// Side data: 2,048 bytes of light from the sky in the game's order.
pub const SKY_LIGHT: &str = "minecraft:sky_light";
/// Side data: how far generation came, as text.
pub const STATUS: &str = "minecraft:status";
/// Side data: a compound with the list `block_entities` of those that are no component.
pub const BLOCK_ENTITIES: &str = "minecraft:block_entities";
/// Side data of a column's lowest chunk: the column's NBT with only what no chunk holds.
pub const COLUMN: &str = "minecraft:column";
/// Side data: the number of the game's version that a schematic's part of the chunk is of, as text.
pub const DATA_VERSION: &str = "minecraft:data_version";
/// Side data: the biome of each block, where the `biomes` of the section, four blocks wide, cannot say it.
pub const BLOCK_BIOMES: &str = "minecraft:block_biomes";
/// Why an imported entity is detached.
pub const NO_CHUNK: &str = "no chunk here";

/// Value that was read, or nothing where it is damaged.
pub(crate) fn unless_damaged<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
        read => read.map(Some),
    }
}
