//! The regions of real saves, as they are: none is repeated to make them more.

use std::ops::ControlFlow;
use std::path::Path;

use cg_anvil::import::{ImportOptions, import};
use cg_bench::saves::regions;
use cg_format::{ChunkAt, ChunkBox, ChunkPos};
use cg_registry::Catalog;
use cg_snapshot::Region;
use cg_snapshot::memory::Memory;
use cg_store::prelude::*;
use cg_store::view::Area;

use super::arena::{Arena, is_short};

/// Columns of chunks along each side that are taken when everything is small.
const SHORT_SIDE: i64 = 4;

/// Whether there are any; says so loudly when there are none.
pub(super) fn are_there() -> bool {
    regions("snapshots of real saves").is_some()
}

/// The region files whose slots hold columns, imported.
pub(super) fn arenas() -> Vec<Arena> {
    let files = regions("snapshots of real saves").expect("looked for before");
    files.iter().take(if is_short() { 1 } else { usize::MAX }).map(|file| arena(file)).collect()
}

/// All that a file holds, or a corner of it, in the smallest box of chunks around it.
fn arena(file: &Path) -> Arena {
    let world = World::builder().in_memory().expect("memory is left");
    import(file, &world, &ImportOptions::default(), |_| {}).expect("a sound save");
    let catalog = Catalog::clone(&world.catalog());
    let mut places = Vec::new();
    let shown = world.read_view(|view| {
        view.for_each_place(Area::World, |stored| {
            places.push(stored.expect("sound").at);
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(shown.expect("memory never fails"), None);
    let dimension = places.first().expect("it has columns").dimension;
    places.retain(|at| at.dimension == dimension);
    if is_short() {
        let least = |axis: fn(&ChunkAt) -> i64| places.iter().map(axis).min().expect("not empty");
        let (x, z) = (least(|at| at.pos.x()), least(|at| at.pos.z()));
        places.retain(|at| at.pos.x() < x + SHORT_SIDE && at.pos.z() < z + SHORT_SIDE);
    }
    let mut host = Memory::new(&catalog);
    for some in places.chunks(1024) {
        for (at, chunk) in some.iter().zip(world.load_many(some)) {
            host.insert(*at, chunk.expect("sound").expect("it was shown"));
        }
    }
    let corner = |of: fn(i64, i64) -> i64| {
        let along = |axis: fn(&ChunkAt) -> i64| places.iter().map(axis).reduce(of).expect("not empty");
        ChunkPos::constant(along(|at| at.pos.x()), along(|at| at.pos.y()), along(|at| at.pos.z()))
    };
    let chunks = ChunkBox::new(corner(i64::min), corner(i64::max));
    Arena::of(catalog, host, Region::new(dimension, chunks.blocks()))
}
