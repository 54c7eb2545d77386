//! The names under which a world has the content of a save: components, and side data of chunks.

/// The component of blocks that can have a block entity: its NBT compound, or nothing.
pub const BLOCK_ENTITY: &str = "minecraft:block_entity";
/// The component of every entity: its NBT compound without its riders.
pub const ENTITY_NBT: &str = "minecraft:entity_nbt";
/// The component of every entity that says where in a save it stood, and its riders: an `Origin` of `cg-anvil`.
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
/// The property that names the game of a world, as text.
pub const GAME: &str = "cherrygrove:game";
/// The value of [`GAME`] in a world of Java Edition.
pub const JAVA: &str = "java";
