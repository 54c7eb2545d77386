//! `cg schem export`: a box of a world as a schematic.

use std::fmt;
use std::path::PathBuf;

use cg_anvil::schem::{ExportOptions, ExportReport, export};
use clap::ValueHint;
use serde::Serialize;

use crate::args::{BoxArg, DimensionArg, WorldArg};
use crate::output::{Failure, Outcome, Output, grouped};
use crate::shown::shown;

/// Write a box of a world as a Sponge schematic of version 3, with block entities, entities and biomes.
///
/// Chunks that are not stored are written as air. The file's Offset is 0 0 0: a paste puts its lowest corner at
/// the player. What a schematic cannot hold is listed; then the exit code is 1. JSON:
/// `{"width":N,"height":N,"length":N,"data_version":N,"blocks":N,"states":N,"block_entities":N,"entities":N,"biomes":N,
/// "absent_chunks":N,"not_exported":{WHAT:N}}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The file to write; it must not exist.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    area: BoxArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// The number of the game's version to say [default: what the box's contents came with, or 3955, which is 1.21.1].
    #[arg(long, value_name = "N")]
    data_version: Option<i32>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(ExportReport);

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let area = args.area.get("run `cg schem export` once for each box, with a file of its own")?;
    let Some(area) = area else {
        return Err(Failure::usage("say which box: --box X0 Y0 Z0 X1 Y1 Z1, both corners included"));
    };
    let world = args.world.open(out)?;
    let dimension = args.dimension.find(&world.catalog())?;
    let progress = out.progress_of("layers read and written", area.size()[1] as u64);
    let options = ExportOptions { data_version: args.data_version };
    let exported =
        export(&world, dimension, area, &args.file, &options, |layers| progress.set_position(layers));
    progress.finish_and_clear();
    let report = match exported {
        Ok(report) => Report(report),
        Err(error) if error.is_usage() => return Err(Failure::usage(error.to_string())),
        Err(error) => return Err(Failure::failed(error)),
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.0.not_exported.is_empty()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        for (what, count) in &report.not_exported {
            writeln!(f, "not exported: {} ({})", shown(what), grouped(*count))?;
        }
        if report.absent_chunks > 0 {
            writeln!(f, "chunks that are not stored, written as air: {}", grouped(report.absent_chunks))?;
        }
        writeln!(
            f,
            "exported: {} × {} × {} blocks, states {}, block entities {}, entities {}, biomes {}, data version {}",
            report.width,
            report.height,
            report.length,
            grouped(report.states),
            grouped(report.block_entities),
            grouped(report.entities),
            grouped(report.biomes),
            report.data_version,
        )
    }
}
