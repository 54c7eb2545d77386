//! `cg hash`: one number for what a world holds.

mod all;

use std::fmt;

use serde::Serialize;

use crate::args::{AreaArg, WorldArg, dimension_or_default};
use crate::output::{Failure, Outcome, Output};

/// Print the hash of the world's content: equal for equal content, whatever its tier, ids or order of writing.
///
/// The content is chunks, entities, properties, objects and spatial records. What an import keeps as bytes is objects, and in
/// it. Snapshots and quarantined rows are not: `--all` has them too, and is another number, also where there are none. With
/// `--box`, the hash covers the chunks that the boxes touch, each once. A damaged row, or with `--all` a damaged snapshot, ends it with exit
/// code 1: a hash of a part would mean nothing. JSON: `{"hash":HEX}`.
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
    let world = args.world.open(out)?;
    let hash = match args.area.get()? {
        Some(area) => {
            let dimension = dimension_or_default(&world.catalog(), args.dimension.as_deref())?;
            world.content_hash(cg_store::view::Area::Blocks(dimension, &area))?
        }
        None if args.dimension.is_some() => {
            let dimension = dimension_or_default(&world.catalog(), args.dimension.as_deref())?;
            world.content_hash(cg_store::view::Area::Box(dimension, cg_format::ChunkBox::EVERYTHING))?
        }
        None => {
            out.watch_chunks("chunks hashed", &world, || world.content_hash(cg_store::view::Area::World))??
        }
    };
    let hash = if args.all { all::hash(&world, hash, out)? } else { hash };
    out.print(&Report { hash: hash.to_string() })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.hash)
    }
}
