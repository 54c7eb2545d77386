//! `cg export --into`: columns of a world put back into a save.

use std::fmt;
use std::path::PathBuf;

use cg_anvil::export::into::{
    Elsewhere, IntoError, IntoOptions, IntoProgress, IntoReport, LeftPlayer, Listed, NewerColumn, SlotCounts,
    export_into,
};
use cg_anvil::export::{Damaged, DamagedColumn, ExportError};
use cg_minecraft::name;
use cg_registry::ListKind;
use cg_store::World;
use clap::ValueHint;
use serde::Serialize;

use super::ranges;
use crate::args::{self, WorldArg};
use crate::cmd::{name_of, unfinished_text};
use crate::output::{Failure, Outcome, Output, grouped};
use crate::shown::shown;

/// Entries of a list that are shown as text.
const SHOWN: usize = 10;

/// What is put into which save.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct IntoArgs {
    /// The folder of a save that is there: the columns of the boxes are put into it, with their entities and points of
    /// interest. `--wait` also waits for a game that has the save.
    #[arg(
        long,
        value_name = "SAVE",
        value_hint = ValueHint::DirPath,
        requires = "box",
        conflicts_with_all = ["mca", "layout"]
    )]
    pub(super) into: Option<PathBuf>,
    /// With `--into`: two opposite corners of a box of blocks, both included. Every column that it touches is put whole,
    /// whatever its height; may be given several times, and then means the columns of all of them.
    #[arg(
        id = "box",
        long = "box",
        num_args = 6,
        value_names = ["X0", "Y0", "Z0", "X1", "Y1", "Z1"],
        allow_negative_numbers = true,
        requires = "into",
        conflicts_with = "mca"
    )]
    corners: Vec<i64>,
    /// With `--into`: count what would change, and write nothing.
    #[arg(long, requires = "into", conflicts_with = "mca")]
    dry_run: bool,
    /// With `--into`: leave players as the save has them, also those who are in the boxes.
    #[arg(long, requires = "into", conflicts_with = "mca")]
    keep_players: bool,
    /// With `--into`: keep nothing of what is replaced.
    #[arg(long, requires = "into", conflicts_with = "mca")]
    no_backup: bool,
    /// With `--into`: take entities that are put out of the other places in which the save has them, rather than leave them
    /// out.
    #[arg(long, requires = "into", conflicts_with = "mca")]
    replace_entities: bool,
    /// With `--into`: put columns also if their `DataVersion` is higher than that of the save's `level.dat`, whose game may not
    /// read them.
    #[arg(long, requires = "into", conflicts_with = "mca")]
    allow_newer: bool,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(IntoReport);

pub(super) fn run(
    args: &IntoArgs,
    (wait, world): (&WorldArg, &World),
    dimension: Option<String>,
    damaged: Damaged,
    out: &Output,
) -> Result<Outcome, Failure> {
    let Some(save) = &args.into else { return Err(Failure::usage("a save is wanted")) };
    if save.symlink_metadata().is_err() {
        return Err(Failure::absent(format!("{} is not there", save.display())));
    }
    let dimension = dimension.map_or_else(|| default_dimension(world), Ok)?;
    let options = IntoOptions {
        dimension,
        boxes: args::boxes(&args.corners)?,
        damaged,
        allow_newer: args.allow_newer,
        replace_entities: args.replace_entities,
        keep_players: args.keep_players,
        no_backup: args.no_backup,
        dry_run: args.dry_run,
    };
    let progress = out.progress_of("regions read", 0);
    let watch = |now: IntoProgress<'_>| {
        let (done, count, what) = match now {
            IntoProgress::Read { regions_done, regions } => (regions_done, regions, "regions read"),
            IntoProgress::Searched { files_done, files } => {
                (files_done, files, "files searched for entities")
            }
            IntoProgress::Wrote { regions_done, regions } => (regions_done, regions, "regions put"),
            IntoProgress::Changes(_) => return,
        };
        progress.set_message(what);
        progress.set_length(count as u64);
        progress.set_position(done as u64);
    };
    // A save that a game has is told before anything is read.
    let done = wait.when_free(out, || export_into(world, save, &options, watch));
    progress.finish_and_clear();
    let report = match done {
        Ok(report) => Report(report),
        Err(
            error @ (IntoError::NoSave { .. }
            | IntoError::NoFolder(_)
            | IntoError::Export(ExportError::NoDimension(_))),
        ) => return Err(Failure::usage(error.to_string())),
        Err(error @ IntoError::Backup { .. }) => {
            return Err(Failure::advised(&error, "--no-backup does without"));
        }
        Err(error) => return Err(Failure::failed(error)),
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.0.is_whole()))
}

/// The name that the dimension has in a save which commands take where none is named.
fn default_dimension(world: &World) -> Result<String, Failure> {
    let catalog = world.catalog();
    let dimension = args::dimension_or_default(&catalog, None)?;
    Ok(name::text(&name_of(&catalog, ListKind::Dimensions, dimension.get())))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        for warning in &report.warnings {
            writeln!(f, "warning: {}", shown(warning))?;
        }
        if let Some(import) = &report.unfinished_import {
            writeln!(f, "{}", unfinished_text(import))?;
        }
        for DamagedColumn { x, z, sections, is_written, .. } in &report.damaged_columns {
            let done = if *is_written { "put to be generated again" } else { "left out" };
            writeln!(f, "column ({x}, {z}): sections {} cannot be read; {done}", ranges(sections))?;
        }
        for (what, count) in &report.not_exported {
            writeln!(f, "left out: {} ({})", shown(what), grouped(*count))?;
        }
        show_newer(f, &report.newer_columns)?;
        show_elsewhere(f, "left out, as the save has it elsewhere", &report.elsewhere)?;
        show_elsewhere(f, "taken out of its other place", &report.taken)?;
        if report.unsearched_slots > 0 {
            let count = grouped(report.unsearched_slots);
            writeln!(f, "slots of the save that could not be searched for entities: {count}")?;
        }
        let done = if report.dry_run { "would be put" } else { "put" };
        writeln!(f, "dimension: {}", shown(&report.dimension))?;
        for (what, counts) in [
            ("columns", report.columns),
            ("slots of entities", report.entity_slots),
            ("slots of points of interest", report.points),
        ] {
            let SlotCounts { new, replaced, equal, removed } = counts;
            let [new, replaced, equal, removed] = [new, replaced, equal, removed].map(grouped);
            write!(f, "{what}: new {new}, replaced {replaced}, equal {equal}")?;
            writeln!(f, "{}", if removed == "0" { String::new() } else { format!(", emptied {removed}") })?;
        }
        let (entities, removed) = (grouped(report.entities), grouped(report.removed_entities));
        writeln!(f, "entities: {done} {entities}, gone with what is replaced {removed}")?;
        show_players(f, report)?;
        if report.kept_columns > 0 {
            let count = grouped(report.kept_columns);
            writeln!(f, "columns of the save that the world does not have, which stay as they are: {count}")?;
        }
        if report.changed_columns > 0 {
            let count = grouped(report.changed_columns);
            writeln!(
                f,
                "without height maps and points of interest, for their blocks were changed: columns {count}"
            )?;
        }
        for backup in &report.backups {
            writeln!(f, "what was replaced is in {}", shown(backup))?;
        }
        let files = grouped(report.files);
        if report.dry_run {
            writeln!(f, "nothing was written; region files that would be: {files}")
        } else {
            writeln!(f, "region files written: {files}")
        }
    }
}

fn show_players(f: &mut fmt::Formatter<'_>, report: &IntoReport) -> fmt::Result {
    let SlotCounts { new, replaced, equal, .. } = report.players;
    if new + replaced + equal > 0 {
        let [new, replaced, equal] = [new, replaced, equal].map(grouped);
        writeln!(f, "players: new {new}, replaced {replaced}, equal {equal}")?;
    }
    let left = &report.left_players;
    for LeftPlayer { uuid, why } in left.first.iter().take(SHOWN) {
        writeln!(f, "player {uuid}: left out, as {}", shown(why))?;
    }
    let more = left.count.saturating_sub(SHOWN as u64);
    if more > 0 { writeln!(f, "… and {} more players, left out", grouped(more)) } else { Ok(()) }
}

fn show_newer(f: &mut fmt::Formatter<'_>, newer: &Listed<NewerColumn>) -> fmt::Result {
    if newer.count == 0 {
        return Ok(());
    }
    let first = newer.first.iter().take(SHOWN);
    let first: Vec<_> = first
        .map(|NewerColumn { x, z, data_version }| format!("({x}, {z}) of DataVersion {data_version}"))
        .collect();
    let count = grouped(newer.count);
    writeln!(
        f,
        "left out, as their game is newer than the save's: columns {count}, the first {}; --allow-newer puts them",
        first.join(", ")
    )
}

fn show_elsewhere(f: &mut fmt::Formatter<'_>, what: &str, found: &Listed<Elsewhere>) -> fmt::Result {
    for Elsewhere { uuid, file, column } in found.first.iter().take(SHOWN) {
        let column = column.map_or_else(String::new, |column| format!(" column {column}"));
        writeln!(f, "entity {uuid}: {what}: {}{column}", shown(file))?;
    }
    let more = found.count.saturating_sub(SHOWN as u64);
    if more > 0 { writeln!(f, "… and {} more, {what}", grouped(more)) } else { Ok(()) }
}
