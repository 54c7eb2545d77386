//! The regions of real saves, as they are: none is repeated to make them more.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_cli::anvil::region::ReadLimits;
use cg_cli::anvil::{Decoder, Payload, Region as Save};
use cg_cli::import::{ImportOptions, import};
use cg_format::{ChunkAt, ChunkBox, ChunkPos};
use cg_registry::Catalog;
use cg_snapshot::Region;
use cg_snapshot::memory::Memory;
use cg_store::Area;
use cg_store::prelude::*;

use super::arena::{Arena, is_short};

/// Columns of chunks along each side that are taken when everything is small.
const SHORT_SIDE: i64 = 4;

/// The folder `mca` in `CG_WORLDS`; `None`, loudly, when there is none.
pub(super) fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/worlds");
    let folder = std::env::var_os("CG_WORLDS").map_or_else(beside, PathBuf::from).join("mca");
    if folder.is_dir() {
        return Some(folder);
    }
    let message = format!("no saves in {}: set CG_WORLDS to the folder of `mca`", folder.display());
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("\n*** NOT MEASURED, snapshots of real saves: {message} ***\n");
    None
}

/// The region files whose slots hold columns, imported.
pub(super) fn arenas() -> Vec<Arena> {
    let folder = folder().expect("looked for before");
    let entries = fs::read_dir(&folder).expect("a readable folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "mca") && holds_columns(file));
    files.sort();
    assert!(!files.is_empty(), "{} holds no region with columns", folder.display());
    files.iter().take(if is_short() { 1 } else { usize::MAX }).map(|file| arena(file)).collect()
}

fn holds_columns(file: &Path) -> bool {
    let mut region = Save::open(file).expect("a readable file");
    let Some(slot) = region.slots().next() else { return false };
    let mut bytes = Vec::new();
    region.read(slot, &ReadLimits::default(), &mut bytes).expect("a sound slot");
    matches!(Decoder::default().decode(&bytes), Ok(Payload::Column(_)))
}

/// All that a file holds, or a corner of it, in the smallest box of chunks around it.
fn arena(file: &Path) -> Arena {
    let world = World::temporary(&[], &WorldOptions::default()).expect("memory is left");
    import(file, &world, &ImportOptions::default(), |_| {}).expect("a sound save");
    let catalog = Catalog::clone(&world.catalog());
    let mut places = Vec::new();
    let shown = world.for_each_place(Area::World, |stored| {
        places.push(stored.expect("sound").at);
        ControlFlow::<()>::Continue(())
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
