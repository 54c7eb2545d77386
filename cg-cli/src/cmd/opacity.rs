//! `cg opacity`: the map of what hides what, drawn again from the chunks, or deleted.

use std::collections::BTreeMap;
use std::fmt;

use cg_format::{BlockId, SchemaView};
use cg_minecraft::kind;
use cg_registry::{Catalog, ListKind};
use cg_store::opacity::Keep;
use cg_store::{World, WorldOptions};
use serde::Serialize;

use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, counted};

/// Draw the opacity map again, or delete it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Rebuild(Rebuild),
    Delete(Delete),
}

/// Draw the opacity map again from the chunks. Writes, but no chunk is changed.
///
/// The map is a cache; this is the remedy where `cg verify` says that it is wrong. A world that keeps no map keeps it
/// from then on, which costs commits time. Chunks that are damaged are taken to hide nothing. Stopped in the middle, it
/// may be run again. JSON: `{"replaced_tiles":N}`, and with --game-table
/// `"changed_blocks":N`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rebuild {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// First say anew which blocks of Minecraft hide what is behind them, by this tool's table of the game's blocks.
    ///
    /// That is fixed when a block is first registered, so worlds that an older `cg` imported follow its rules. Blocks
    /// that the table does not have stay as they are. If a block changes, the world gets a new schema generation;
    /// refused if a pack has the namespace `minecraft`, because then its manifest says it.
    #[arg(long)]
    game_table: bool,
}

/// Delete the opacity map. The world keeps none from then on, until it is rebuilt. Writes, but no chunk is changed.
///
/// JSON: `{"kept":false}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: WrittenWorldArg,
}

#[derive(Debug, Serialize)]
struct Deletion {
    kept: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_blocks: Option<u64>,
    replaced_tiles: u64,
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::Rebuild(args) => rebuild(args, out),
        Command::Delete(args) => delete(args, out),
    }
}

fn delete(args: &Delete, out: &Output) -> Result<Outcome, Failure> {
    let options = WorldOptions { opacity: Keep::Off, ..args.world.options() };
    let world = args.world.open_by(out, World::builder().options(&options))?;
    let kept = world.opacity().is_kept();
    world.close()?;
    out.print(&Deletion { kept })?;
    Ok(Outcome::Good)
}

fn rebuild(args: &Rebuild, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open_for_writing(out)?;
    let changed_blocks = if args.game_table { Some(apply_game_table(&world)?) } else { None };
    let replaced_tiles = out.watch_chunks("chunks drawn", &world, || world.opacity().rebuild())??;
    world.close()?;
    out.print(&Report { changed_blocks, replaced_tiles })?;
    Ok(Outcome::Good)
}

/// Brings the opacity of the game's blocks to what the table says; returns how many kinds of blocks changed.
fn apply_game_table(world: &World) -> Result<u64, Failure> {
    let catalog = world.catalog();
    let packs = catalog.packs();
    let owner = packs.iter().find(|row| row.present && row.namespaces.iter().any(|own| own == "minecraft"));
    if let Some(row) = owner {
        return Err(Failure::refused(format!(
            "the manifest of pack `{}` says which blocks of `minecraft` hide what is behind them; nothing was changed",
            row.pack
        )));
    }
    let wrong = wrong_by_game_table(&catalog);
    world.registry().set_opacity(&wrong)?;
    Ok(wrong.len() as u64)
}

/// The game's blocks whose opacity in the world is not the table's, with that of the table.
fn wrong_by_game_table(catalog: &Catalog) -> BTreeMap<BlockId, bool> {
    let schema = catalog.current_schema();
    let blocks = (0..).map(BlockId::new).zip(catalog.list(ListKind::Blocks).names());
    let by_table = blocks.filter_map(|(block, name)| Some((block, kind::is_opaque_in_game(name.as_str())?)));
    by_table.filter(|(block, opaque)| schema.is_opaque(*block) != *opaque).collect()
}

impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the world keeps {} opacity map", if self.kept { "its" } else { "no" })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(changed_blocks) = self.changed_blocks {
            writeln!(f, "{} changed", counted(changed_blocks, "block"))?;
        }
        writeln!(f, "{} replaced", counted(self.replaced_tiles, "tile"))
    }
}
