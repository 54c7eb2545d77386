//! Worlds from a seed: the same bytes on every machine, and every section of the format in use.
//!
//! | scene | what it is for |
//! |---|---|
//! | [`Hills`](Scene::Hills) | hills, caves, lakes, trees, huts and animals: palettes of many widths, upper layers, components of both kinds, entities, side data |
//! | [`Library`](Scene::Library) | shelves in every direction: many component instances in every chunk |
//! | [`Flat`](Scene::Flat) | a lawn: uniform chunks and very small ones |

use cg_format::entity::Entity;
use cg_format::{BlockPos, Chunk, ChunkPos, Dimension, EntityId};
use cg_registry::{Catalog, Registration, Schema};
use cg_store::{Error, World};

mod built;
mod canvas;
mod ground;
mod library;
mod life;
mod names;
mod noise;
mod sides;
#[cfg(test)]
mod tests;
mod trees;

pub use names::Unregistered;

use canvas::Canvas;
use ground::{Biome, Column};
use names::Ids;
use noise::Noise;

/// The landscape of a generated world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scene {
    /// Hills, caves, lakes, trees, huts and animals, between the heights -64 and 127.
    Hills,
    /// Shelves in every direction.
    Library,
    /// A lawn at the height of 63.
    Flat,
}

/// A chunk as it is generated, with the entities that it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// Blocks, components, references to the entities, and side data.
    pub chunk: Chunk,
    /// The entities that the chunk refers to, ascending.
    pub entities: Vec<(EntityId, Entity)>,
}

/// Makes the chunks of one world, in any order and as often as one likes.
#[derive(Debug, Clone)]
pub struct Generator {
    scene: Scene,
    seed: u64,
    ids: Ids,
    schema: Schema,
}

impl Scene {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hills, Self::Library, Self::Flat];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hills => "hills",
            Self::Library => "library",
            Self::Flat => "flat",
        }
    }
}

impl Generated {
    /// The chunk without its references: what can be stored at any place, as often as one likes.
    #[must_use]
    pub fn chunk_without_entities(mut self) -> Chunk {
        for (id, _) in self.entities {
            self.chunk.remove_entity(id);
        }
        self.chunk
    }
}

impl Generator {
    /// The lowest layer of chunks in which [`Scene::Hills`] has anything but rock.
    pub const BOTTOM_CHUNK_Y: i64 = -4;
    /// The highest layer of chunks in which [`Scene::Hills`] has anything but air.
    pub const TOP_CHUNK_Y: i64 = 7;

    /// All names that a generator uses, whatever its scene.
    pub fn registration() -> Registration {
        names::registration()
    }

    /// A generator for the ids of a catalog and its current schema.
    ///
    /// # Errors
    /// [`Unregistered`] names what [`registration`](Self::registration) holds and the catalog does not.
    pub fn new(scene: Scene, seed: u64, catalog: &Catalog) -> Result<Self, Unregistered> {
        Ok(Self { scene, seed, ids: Ids::find(catalog)?, schema: catalog.current_schema() })
    }

    /// A generator for a world, in which the names are registered first.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    pub fn in_world(scene: Scene, seed: u64, world: &World) -> Result<Self, Error> {
        let catalog = world.registry().register(&Self::registration())?;
        Ok(Self::new(scene, seed, &catalog).expect("all names were just registered"))
    }

    /// The dimension of all chunks.
    pub const fn dimension(&self) -> Dimension {
        self.ids.dimension
    }

    /// The schema with which the chunks are made.
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Makes a chunk.
    pub fn chunk(&self, pos: ChunkPos) -> Generated {
        let noise = Noise::new(self.seed);
        let mut canvas = Canvas::new(pos, self.ids.blocks.air);
        let columns = match self.scene {
            Scene::Hills => self.hills(&mut canvas, noise),
            Scene::Library => {
                library::draw(&mut canvas, noise, &self.ids);
                Box::new([Column { height: i64::MAX, biome: Biome::Caves }; 256])
            }
            Scene::Flat => self.lawn(&mut canvas),
        };
        let entities = match self.scene {
            Scene::Hills => life::animals(&canvas, noise, &self.ids),
            Scene::Library | Scene::Flat => Vec::new(),
        };
        let mut chunk = canvas.finish(&self.schema);
        for (id, _) in &entities {
            chunk.add_entity(*id);
        }
        sides::attach(&mut chunk, &self.ids.sides, pos.min_block(), &columns);
        Generated { chunk, entities }
    }

    /// The entities that no chunk holds.
    pub fn away(&self) -> Vec<(EntityId, Entity)> {
        life::away(Noise::new(self.seed), &self.ids)
    }

    fn hills(&self, canvas: &mut Canvas, noise: Noise) -> Box<sides::Columns> {
        let columns = columns(canvas.pos(), |x, z| Column::at(noise, x, z));
        each_column(canvas.pos(), |index, x, z| {
            ground::draw(canvas, noise, &self.ids.blocks, columns[index], x, z);
        });
        trees::draw(canvas, noise, &self.ids.blocks);
        built::draw(canvas, noise, &self.ids);
        columns
    }

    fn lawn(&self, canvas: &mut Canvas) -> Box<sides::Columns> {
        const SURFACE_Y: i64 = 63;
        let blocks = &self.ids.blocks;
        let bottom = canvas.corner().y;
        each_column(canvas.pos(), |_, x, z| {
            for y in bottom..bottom + 16 {
                let block = match SURFACE_Y - y {
                    ..0 => blocks.air,
                    0 => blocks.grass_block,
                    1..4 => blocks.dirt,
                    4..120 => blocks.stone,
                    _ => blocks.bedrock,
                };
                canvas.set(BlockPos::new(x, y, z), block);
            }
        });
        columns(canvas.pos(), |_, _| Column { height: SURFACE_Y, biome: Biome::Plains })
    }
}

/// The columns of a chunk, x slowest.
fn columns(pos: ChunkPos, column: impl Fn(i64, i64) -> Column) -> Box<sides::Columns> {
    let mut columns = Box::new([Column { height: 0, biome: Biome::Plains }; 256]);
    each_column(pos, |index, x, z| columns[index] = column(x, z));
    columns
}

fn each_column(pos: ChunkPos, mut visit: impl FnMut(usize, i64, i64)) {
    let corner = pos.min_block();
    for index in 0..256_usize {
        visit(index, corner.x + (index >> 4) as i64, corner.z + (index & 15) as i64);
    }
}
