//! `cg hash`: one number for what a world holds.

mod all;

use std::fmt;
use std::path::Path;

use cg_format::{BlockArea, ChunkBox};
use cg_layers::SegmentedWorld;
use cg_registry::Catalog;
use cg_store::verify::ContentHash;
use cg_store::view::Area;
use serde::Serialize;

use self::all::Apart;
use crate::args::{AreaArg, WorldArg, dimension_or_default, options};
use crate::output::{Failure, Outcome, Output};

/// Print the hash of the world's content: equal for equal content, whatever its tier, ids or order of writing.
///
/// The content is chunks, entities, properties, objects and spatial records. What an import keeps as bytes is objects, and in
/// it. Snapshots and quarantined rows are not: `--all` has them too, and is another number, also where there are none. With
/// `--box`, the hash covers the chunks that the boxes touch, each once. A damaged row, or with `--all` a damaged snapshot, ends it with exit
/// code 1: a hash of a part would mean nothing. A segmented world has the hash of a world that holds the same and is not
/// segmented. JSON: `{"hash":HEX}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// Only this dimension [default: everything that the world holds; with `--box` minecraft:overworld, or the world's first]; the part of its name
    /// after the colon is enough where it is not ambiguous.
    #[arg(long, visible_alias = "dim", short = 'd', value_name = "NAME")]
    dimension: Option<String>,
    #[command(flatten)]
    area: AreaArg,
    /// Hash snapshots and quarantined rows too. Of a snapshot the time of its capture is left out; a quarantined row is hashed as
    /// the bytes that it has, with the ids in them.
    #[arg(long, conflicts_with_all = ["corners", "dimension"])]
    all: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    hash: String,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let boxes = args.area.get()?;
    let hash = match args.world.place().segmented() {
        Some(dir) => of_segmented(args, dir, boxes.as_ref(), out)?,
        None => of_world(args, boxes.as_ref(), out)?,
    };
    out.print(&Report { hash: hash.to_string() })?;
    Ok(Outcome::Good)
}

fn of_world(args: &Args, boxes: Option<&BlockArea>, out: &Output) -> Result<ContentHash, Failure> {
    let world = args.world.open(out)?;
    let hash = match args.chosen(boxes, &world.catalog())? {
        Area::World => out.watch_chunks("chunks hashed", &world, || world.content_hash(Area::World))??,
        area => world.content_hash(area)?,
    };
    if !args.all {
        return Ok(hash);
    }
    let mut apart = Apart::default();
    apart.add(&world, out)?;
    Ok(apart.hash(hash))
}

fn of_segmented(
    args: &Args,
    dir: &Path,
    boxes: Option<&BlockArea>,
    out: &Output,
) -> Result<ContentHash, Failure> {
    let options = options();
    // It stays open, so no process opens the world for writing meanwhile.
    let root = args.world.open_root(dir, out)?;
    let area = args.chosen(boxes, &root.catalog())?;
    let progress = out.progress("worlds hashed");
    let mut apart = Apart::default();
    let hash = SegmentedWorld::content_hash(dir, area, &options, |world| {
        if args.all {
            apart.add(world, out)?;
        }
        progress.inc(1);
        Ok::<_, Failure>(())
    });
    progress.finish_and_clear();
    let hash = hash?;
    Ok(if args.all { apart.hash(hash) } else { hash })
}

impl Args {
    /// What is to be hashed.
    fn chosen<'a>(&self, boxes: Option<&'a BlockArea>, catalog: &Catalog) -> Result<Area<'a>, Failure> {
        if boxes.is_none() && self.dimension.is_none() {
            return Ok(Area::World);
        }
        let dimension = dimension_or_default(catalog, self.dimension.as_deref())?;
        Ok(boxes.map_or(Area::Box(dimension, ChunkBox::EVERYTHING), |boxes| Area::Blocks(dimension, boxes)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.hash)
    }
}
