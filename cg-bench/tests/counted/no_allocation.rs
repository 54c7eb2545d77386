//! Counts what reading in a view allocates: nothing.

use std::hint::black_box;

use cg_bench::world::{Generator, Scene};
use cg_format::chunk::{CellLayer, Chunk, ChunkView};
use cg_format::{ChunkPos, ComponentId, LocalPos};
use cg_registry::Catalog;

/// How often a piece of code asks for memory.
fn allocations<T>(code: impl FnOnce() -> T) -> (u64, T) {
    let mut value = None;
    let counted = allocation_counter::measure(|| value = Some(code()));
    (counted.count_total, value.expect("measuring runs the code"))
}

fn samples() -> Vec<(Generator, Chunk)> {
    let mut catalog = Catalog::new();
    catalog.register(&Generator::registration()).unwrap();
    let chunk = |scene, pos| {
        let generator = Generator::new(scene, 7, &catalog).unwrap();
        let chunk = generator.chunk(pos).chunk;
        (generator, chunk)
    };
    let hills = (-4..4).map(|x| chunk(Scene::Hills, ChunkPos::constant(x, 3, 0)));
    hills.chain([chunk(Scene::Library, ChunkPos::constant(0, 0, 0))]).collect()
}

#[test]
fn the_counter_counts() {
    let (generator, chunk) = samples().pop().unwrap();
    let bytes = chunk.to_bytes();
    let (count, _) = allocations(|| Chunk::decode(&bytes, generator.schema()).unwrap());
    assert!(count > 0, "an owned chunk keeps its own bytes");
}

#[test]
fn access_in_a_view_asks_for_no_memory() {
    let (mut upper, mut components, mut entities) = (0, 0, 0);
    for (generator, chunk) in samples() {
        let bytes = chunk.to_bytes();
        let instances: Vec<(ComponentId, CellLayer)> =
            chunk.components().map(|(component, at, _)| (component, at)).collect();
        let view = ChunkView::new(&bytes, generator.schema()).unwrap();
        let (count, ()) = allocations(|| {
            for cell in LocalPos::all() {
                black_box(view.block(cell));
                black_box(view.layer_count(cell));
                upper += usize::from(view.layer(cell, 1).is_some());
            }
            for (component, at) in &instances {
                components += usize::from(view.component(*at, *component).is_some());
            }
            entities += view.entities().map(black_box).count();
            for (kind, data) in view.sides() {
                assert_eq!(view.side(kind), Some(data));
            }
        });
        assert_eq!(count, 0);
    }
    assert!(upper > 0 && components > 1000 && entities > 0, "{upper}, {components}, {entities}");
}

#[test]
fn making_a_view_asks_for_memory_by_component_not_by_cell() {
    for (generator, chunk) in samples() {
        let bytes = chunk.to_bytes();
        let mut columns: Vec<ComponentId> = chunk.components().map(|(component, ..)| component).collect();
        columns.dedup();
        let (count, view) = allocations(|| ChunkView::new(&bytes, generator.schema()).unwrap());
        drop(view);
        // A few vectors that grow by doubling, and a few for each column.
        let most = 40 * columns.len() as u64;
        assert!(count <= most, "{count} allocations for {} columns", columns.len());
    }
}
