//! Mapping of a Java save to a world, the same for import and export.
//!
//! `docs/format/anvil-mapping.md` describes the whole mapping for people. In short:
//!
//! | in the save | in the world |
//! |---|---|
//! | dimension | dimension of the same name |
//! | block state | block of that name, see [`name`](cg_minecraft::name) |
//! | `waterlogged=true` | the dry state in layer 0, `minecraft:water[level=0]` in layer 1 |
//! | block entity | component [`BLOCK_ENTITY`](cg_minecraft::content::BLOCK_ENTITY) of its block, its NBT byte for byte |
//! | block entity that no block can own | side data [`BLOCK_ENTITIES`](cg_minecraft::content::BLOCK_ENTITIES) of its chunk |
//! | biomes, light, generation status | side data of the chunk |
//! | light of no section of blocks, times of a column | side data [`COLUMN`](cg_minecraft::content::COLUMN) of the column's lowest chunk |
//! | every other field of a column, and files that are no regions | objects, see [`key`] and [`leftovers`] |
//! | slot with an unreadable part | object, see [`kept`] |
//! | column without a chunk of ours | property, see [`column_property`](cg_minecraft::name::column_property) |
//! | player | entity of kind `minecraft:player`, beside the object of its file |
//! | entity, rider | entity with components [`ENTITY_NBT`](cg_minecraft::content::ENTITY_NBT) and [`ENTITY_ORIGIN`](cg_minecraft::content::ENTITY_ORIGIN) |
//!
//! Schematics use the same, see `docs/format/schematic.md`.

pub(crate) mod block_entities;
pub(crate) mod defaults;
pub(crate) mod entity_id;
pub mod ids;
pub mod imported;
pub mod kept;
pub mod key;
pub mod layout;
pub mod leftovers;
mod level;
pub mod origin;
pub mod place;
pub(crate) mod player;
pub mod slots;
mod two_states;
pub mod visits;

use cg_store::{Error, ErrorKind};

pub use ids::Ids;
pub use imported::{ImportedObjects, ObjectCount};
pub use kept::KeptSlot;
pub use layout::MetLayout;
pub use leftovers::Leftovers;
pub(crate) use level::StoredLevel;
pub use origin::{InSchematic, Origin};
pub use slots::{EntitySlot, Points};
pub use two_states::TwoStates;
pub use visits::Visits;

/// Why an imported entity is detached.
pub const NO_CHUNK: &str = "no chunk here";

/// Value that was read, or nothing where it is damaged.
pub(crate) fn unless_damaged<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
        read => read.map(Some),
    }
}
