//! `cg schem import`: a schematic into a world.

use std::fmt;

use cg_anvil::schem::{ImportReport, check_place, import};
use cg_format::{BlockPos, Dimension};
use cg_registry::{ListKind, Name};
use cg_store::World;
use clap::ValueHint;
use serde::Serialize;

use super::FileArg;
use crate::args::{self, WrittenWorldArg};
use crate::failure::Code;
use crate::output::{Failure, Outcome, Output, grouped};
use crate::shown::shown;

/// Put a schematic into a world, its lowest corner at a block.
///
/// Writes: WORLD is made if it is not there. The schematic is read and checked before anything is written. Its Offset is
/// not applied. Every block of its box replaces what was there, air too; entities that are there stay; a new chunk is
/// air outside of the box. States that the world does not know are registered. What fits one transaction (some
/// thousand chunks) arrives all or nothing; a larger one arrives in several, and if it was stopped, the same import
/// again makes it whole: at the same place its entities replace themselves. JSON: `{"blocks":N,"chunks":N,"new_states":N,"block_entities":N,"beside_their_block":N,
/// "entities":N,"rekeyed":N,"biomes":N,"transactions":N,"not_carried":{WHAT:N}}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    file: FileArg,
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The block where the schematic's lowest corner goes.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true, required = true)]
    at: Vec<i64>,
    /// The dimension; one that the world does not have is made [default: minecraft:overworld, or the world's first].
    #[arg(long, visible_alias = "dim", short = 'd', value_name = "NAME", value_hint = ValueHint::Other)]
    dimension: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(ImportReport);

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let &[x, y, z] = args.at.as_slice() else {
        return Err(Failure::usage("--at takes three coordinates"));
    };
    // Before a world is made for it.
    let file = args.file.read()?;
    let at = BlockPos::new(x, y, z);
    check_place(&file, at).map_err(|error| Failure::usage(error.to_string()))?;
    let new_name = args.dimension.as_deref().map(new_name).transpose();
    let world = match &new_name {
        Ok(_) => args.world.open_or_create(out)?,
        // It may be the name of a dimension all the same, if there is a world.
        Err(failure) => args.world.open_for_writing(out).map_err(|error| match error.code() {
            Code::Held => error,
            _ => Failure::usage(failure.to_string()),
        })?,
    };
    let dimension = dimension(&world, args.dimension.as_deref())?;
    let progress = out.progress_of("blocks imported", file.schematic.size().map(u64::from).iter().product());
    let imported = import(&file, &world, dimension, at, |blocks| progress.set_position(blocks));
    progress.finish_and_clear();
    let report = match imported {
        Ok(report) => Report(report),
        Err(error) => return Err(Failure::failed(error)),
    };
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::Good)
}

/// Finds the dimension by its name, or by the part after the colon if that is not ambiguous; makes one that is new.
fn dimension(world: &World, wanted: Option<&str>) -> Result<Dimension, Failure> {
    let catalog = world.catalog();
    let names = catalog.list(ListKind::Dimensions).names();
    let Some(wanted) = wanted else {
        let is_new = names.is_empty();
        return if is_new {
            Ok(world.registry().register_dimension("minecraft:overworld")?)
        } else {
            args::dimension_or_default(&catalog, None)
        };
    };
    if let Some(found) = catalog.dimension(wanted) {
        return Ok(found);
    }
    let mut short = (0..).zip(names).filter(|(_, name)| name.identifier() == wanted);
    if let (Some((id, _)), None) = (short.next(), short.next()) {
        return Ok(Dimension::new(id));
    }
    Ok(world.registry().register_dimension(new_name(wanted)?.as_str())?)
}

/// The name of a dimension that is to be made.
fn new_name(wanted: &str) -> Result<Name, Failure> {
    let full = if wanted.contains(':') { wanted.to_owned() } else { format!("minecraft:{wanted}") };
    let wrong = |error| Failure::usage(format!("`{wanted}` cannot be the name of a dimension: {error}"));
    Name::new(full).map_err(wrong)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        writeln!(
            f,
            "imported: blocks {}, chunks {}, block entities {}, entities {}, biomes {}",
            grouped(report.blocks),
            grouped(report.chunks),
            grouped(report.block_entities),
            grouped(report.entities),
            grouped(report.biomes),
        )?;
        if report.new_states > 0 {
            writeln!(f, "states that were new to the world: {}", grouped(report.new_states))?;
        }
        if report.rekeyed > 0 {
            writeln!(f, "entities with another UUID than the file's: {}", grouped(report.rekeyed))?;
        }
        for (what, count) in &report.not_carried {
            writeln!(f, "not carried: {} ({})", shown(what), grouped(*count))?;
        }
        match report.transactions {
            0 | 1 => writeln!(f, "in one transaction"),
            count => writeln!(f, "in {} transactions", grouped(count)),
        }
    }
}
