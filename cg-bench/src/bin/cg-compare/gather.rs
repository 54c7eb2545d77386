//! Gathers the columns that are stored: of a real save where there is one, else of hills from a seed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use cg_anvil::import::{ImportOptions, import};
use cg_bench::saves::regions;
use cg_bench::world::{Generator, Scene};
use cg_format::{Chunk, ChunkPos, Dimension};
use cg_store::view::Area;
use cg_store::{World, WorldOptions};

use crate::columns::{Column, Columns};
use crate::failure::Failure;
use crate::place::{BOTTOM, HEIGHT, square};

/// The save whose terrain is stored: a region of 1,024 generated columns that were never built in.
const SAVE: &str = "1.19.4_prismarine_r.0.0.mca";
const SEED: u64 = 7;

/// Gathers at most `count` columns. Also returns where they come from.
///
/// # Errors
/// The save cannot be read, or has no whole column.
pub(crate) fn gather(count: usize) -> Result<(Columns, String), Failure> {
    let saves = regions("columns of real saves; hills from a seed instead").unwrap_or_default();
    match saves.iter().find(|file| file.ends_with(SAVE)) {
        Some(file) => Ok((from_save(file, count)?, format!("terrain of {SAVE}"))),
        None => Ok((from_seed(count)?, format!("hills from seed {SEED}"))),
    }
}

/// Hills from a seed: the same bytes on every machine.
///
/// # Errors
/// A name cannot be registered.
pub(crate) fn from_seed(count: usize) -> Result<Columns, Failure> {
    let world = in_memory()?;
    let generator = Generator::in_world(Scene::Hills, SEED, &world)?;
    let mut terrain = Vec::new();
    for place in square(count) {
        let mut chunks = Vec::new();
        for index in 0..HEIGHT {
            let pos = ChunkPos::new(place.x, BOTTOM + index as i64, place.z)?;
            chunks.push(Arc::new(generator.chunk(pos).chunk_without_entities()));
        }
        terrain.push(Column::new(chunks));
    }
    Columns::new(world.catalog().as_ref().clone(), generator.dimension(), terrain)
}

fn from_save(file: &Path, count: usize) -> Result<Columns, Failure> {
    let world = in_memory()?;
    import(file, &world, &ImportOptions::default(), |_| {})?;
    let mut columns = BTreeMap::<(Dimension, i64, i64), BTreeMap<i64, Arc<Chunk>>>::new();
    let ended = world.read_view(|view| {
        view.for_each_decoded(Area::World, |chunk| match chunk {
            Ok((at, chunk)) => {
                let column = columns.entry((at.dimension, at.pos.x(), at.pos.z())).or_default();
                column.insert(at.pos.y(), Arc::new(without_entities(chunk)));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    if let Some(error) = ended {
        return Err(error.into());
    }
    let heights = BOTTOM..BOTTOM + HEIGHT as i64;
    let whole = columns.into_iter().filter(|(_, chunks)| chunks.keys().copied().eq(heights.clone()));
    let whole: Vec<_> = whole.take(count).collect();
    let dimension = whole.first().ok_or_else(|| format!("{} has no whole column", file.display()))?.0.0;
    let terrain = whole.into_iter().map(|(_, chunks)| Column::new(chunks.into_values().collect()));
    Columns::new(world.catalog().as_ref().clone(), dimension, terrain.collect())
}

fn without_entities(mut chunk: Chunk) -> Chunk {
    for id in chunk.entities().to_vec() {
        chunk.remove_entity(id);
    }
    chunk
}

fn in_memory() -> Result<World, Failure> {
    let options = WorldOptions { cache_bytes: 0, ..WorldOptions::fast() };
    Ok(World::builder().options(&options).in_memory()?)
}
