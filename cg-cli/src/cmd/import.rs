//! `cg import`: a Minecraft Java save into a world.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;

use cg_cli::import::{ImportError, ImportOptions, ImportReport, Merge, Rekeyed, import, open_or_create};
use clap::ValueHint;
use serde::Serialize;

use crate::args::{WorldArg, options};
use crate::output::{Failure, Outcome, Output, grouped};
use crate::shown::shown;

/// Import a Minecraft Java save (1.13 to the newest), a folder of region files, or one region file.
///
/// Writes: WORLD is made if it is not there. An import that was stopped or killed continues when it is run again. The
/// save is only read. What cannot be read is listed and costs nothing else; then the exit code is 1. JSON:
/// `{"imported_columns":N,"imported_chunks":N,"imported_files":N,"unreadable":[{"file","slot","reason"}],"not_carried":[NAME],…}`. Of one
/// file each list holds the first thousand and the first of each slot; `"unlisted"` counts what is beyond.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The save's folder, a folder of region files, or one region file.
    #[arg(value_name = "SAVE", value_hint = ValueHint::AnyPath)]
    save: PathBuf,
    #[command(flatten)]
    world: WorldArg,
    /// Import into a world that holds something: where both have a chunk or an entity, replace it or keep the world's.
    #[arg(long, value_enum)]
    merge: Option<Merge>,
    /// Threads that decode [default: one for each of the machine's].
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(ImportReport);

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    // Before a world is made for it.
    cg_cli::anvil::save::find(&args.save).map_err(|error| Failure::usage(error.to_string()))?;
    let world = open_or_create(args.world.path(), &options())?;
    let progress = out.progress("columns imported");
    let choices = ImportOptions { merge: args.merge, threads: args.threads, ..ImportOptions::default() };
    let imported = import(&args.save, &world, &choices, |now| progress.set_position(now.columns));
    progress.finish_and_clear();
    let report = match imported {
        Ok(report) => Report(report),
        Err(error @ (ImportError::NotEmpty | ImportError::OtherMerge { .. } | ImportError::OtherImport)) => {
            return Err(Failure::usage(error.to_string()));
        }
        Err(error) => return Err(Failure::failed(error)),
    };
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::good_if(report.0.is_whole()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        for lost in &report.unreadable {
            let (file, reason) = (shown(&lost.file), shown(&lost.reason));
            match lost.slot {
                Some(slot) => writeln!(f, "{file} slot {slot}: {reason}")?,
                None => writeln!(f, "{file}: {reason}")?,
            }
        }
        more(f, report.unlisted.unreadable, "parts that could not be read")?;
        for Rekeyed { file, slot, was, is } in &report.rekeyed {
            let file = shown(file);
            match was {
                Some(was) => writeln!(f, "{file} slot {slot}: entity {was} was met before, now {is}")?,
                None => writeln!(f, "{file} slot {slot}: an entity without UUID, now {is}")?,
            }
        }
        more(f, report.unlisted.rekeyed, "entities with another UUID")?;
        writeln!(
            f,
            "imported: columns {}, chunks {}, entities {} (in no stored chunk: {})",
            grouped(report.imported_columns),
            grouped(report.imported_chunks),
            grouped(report.entities),
            grouped(report.detached),
        )?;
        if report.imported_files > 0 {
            writeln!(f, "imported: files that are no regions {}", grouped(report.imported_files))?;
        }
        if report.kept_chunks + report.kept_entities + report.kept_files > 0 {
            let (chunks, entities) = (grouped(report.kept_chunks), grouped(report.kept_entities));
            let files = grouped(report.kept_files);
            writeln!(f, "kept as the world had them: chunks {chunks}, entities {entities}, files {files}")?;
        }
        if !report.not_carried.is_empty() {
            let names: Vec<_> = report.not_carried.iter().map(|name| shown(name).to_string()).collect();
            writeln!(f, "not carried: {}", names.join(", "))?;
            more(f, report.unlisted.not_carried, "mentions of fields that are not carried")?;
        }
        match report.unreadable_count() {
            0 => writeln!(f, "everything could be read"),
            count => writeln!(f, "could not be read: {}", grouped(count)),
        }
    }
}

/// Says what the lists of a file have no room for.
fn more(f: &mut fmt::Formatter<'_>, count: u64, what: &str) -> fmt::Result {
    match count {
        0 => Ok(()),
        count => writeln!(f, "… and {} more {what}, which are not listed", grouped(count)),
    }
}
