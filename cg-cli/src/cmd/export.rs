//! `cg export`: a world as region files that other tools open.

mod into;

use std::fmt;
use std::path::PathBuf;

use cg_anvil::export::{
    Damaged, DamagedColumn, DroppedSlot, ExportError, ExportOptions, ExportReport, LayoutChoice, Placed,
    export,
};
use cg_anvil::import::TwoStates;
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use clap::ValueHint;
use serde::Serialize;

use self::into::IntoArgs;
use super::unfinished_text;
use crate::args::{self, WorldArg};
use crate::choice;
use crate::output::{Failure, Outcome, Output, bytes_text, grouped};
use crate::shown::shown;

/// Write a world as a Minecraft Java save, or put columns of it back into one.
///
/// `--mca DIR` writes a new save: region files and the files beside them.
/// The overworld, the nether and the end go to the folders from which they were imported: `region/`, `DIM-1/`, `DIM1/` until
/// 1.21.11, or `dimensions/minecraft/NAME/` since 26.1; other dimensions to `dimensions/NAMESPACE/NAME/`. Where the game
/// of the exported `level.dat`, or an import, looks elsewhere, a warning says so, and unless `--layout` names the layout the
/// exit code is 1. What a save cannot hold is counted by kind, and then the
/// exit code is 1 too: records, and with all dimensions also snapshots, named properties and the host's own objects. JSON: `{"files":N,"columns":N,"chunks":N,"entities":N,
/// "other_files":N,"players":N,"changed_players":N,"deleted_players":N,"two_states":{"uuid","taken":FILE,"other":FILE,"is_replaced"},"changed_columns":N,"old_slots":N,"left_old_slots":N,"kept_slots":N,
/// "kept_slot_bytes":N,"layout":{DIMENSION:"old"|"dimensions"},"warnings":[TEXT],
/// "not_exported":{WHAT:N}}`; where chunks cannot be read `"damaged_columns":[{"dimension","x","z","sections":[Y],"is_written"}]`
/// too. Slots that an import kept as bytes, because something of them could not be read, go out as they were. Where the world
/// has something else by then, the place is named, what the world has is written, and the exit code is 1:
/// `"dropped_slots":[{"dimension","folder","x","z","reason"}],"dropped_slot_count":N`. While an import is unfinished, `"unfinished_import":{"save","begun","imported_columns"}` too, and the
/// exit code is 1.
///
/// A player goes into the file that they came in, which is as it came unless the player was changed; one that was deleted has
/// none, and one that a host added gets one where the game looks.
///
/// Until it is done, the folder holds the file `cg-export.unfinished`. One that was killed or failed continues when it is run
/// again: regions that are done stay, if neither the world nor the options changed; else it deletes what it wrote and begins
/// anew. A folder that holds another file is refused.
///
/// `--into SAVE --box …` puts the columns that the boxes touch into a save that is there, whole, with their entities and
/// points of interest, and the players who are in them; every other slot of it keeps its bytes, and every other player
/// stays. A column that the world does not have stays as the save has
/// it. The save is locked meanwhile, as games from 1.16 on lock it, and refused while one has it open; a game before 1.16
/// does not lock it, and has to be stopped. Columns of a newer game than that of `level.dat` are left out, and so are
/// entities that the save has elsewhere. So are players whose column is left out, who have such an entity with them, or whose
/// server looks for them in the save of the overworld. Each is named, and then the exit code is 1. What is replaced is kept
/// in a folder beside the save, `SAVE.cg-replaced-1` or of the next number: region files, which `cg import` reads, and below
/// its `files/` those of players and `level.dat`. `cp -a SAVE.cg-replaced-1/files/. SAVE/` puts these back. Each file is
/// the old or the new one at any moment; a command that was killed is run again, and its folder ends with `.part` until
/// then. JSON: `{"dry_run","dimension","layout","files":N,"columns":COUNTS,"entity_slots":COUNTS,"points":COUNTS,"entities":N,"players":COUNTS,"left_players":{"count":N,"first":[{"uuid","why"}]},
/// "removed_entities":N,"kept_columns":N,"changed_columns":N,"newer_columns":{"count":N,"first":[{"x","z","data_version"}]},
/// "elsewhere":{"count":N,"first":[{"uuid","file","column"}]},"taken":…,"unsearched_slots":N,"backups":[PATH],
/// "warnings":[TEXT],"not_exported":{WHAT:N}}`, where COUNTS is `{"new":N,"replaced":N,"equal":N,"removed":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The new folder; it must not exist, or be empty, or hold an unfinished export of the same world.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "into")]
    mca: Option<PathBuf>,
    #[command(flatten)]
    into: IntoArgs,
    /// Only this dimension, and the files in its own folder [default: all; with `--into` minecraft:overworld, or the world's first]; the part of its
    /// name after the colon is enough where it is not ambiguous.
    #[arg(long, visible_alias = "dim", short = 'd', value_name = "NAME")]
    dimension: Option<String>,
    /// The folders of the overworld, the nether and the end.
    #[arg(long, value_parser = choice::layout(), default_value = "as-imported")]
    layout: LayoutChoice,
    /// What becomes of columns of which chunks cannot be read; each is named, and the exit code is 1.
    #[arg(long, value_parser = choice::damaged(), default_value = "leave-out", value_name = "CHOICE")]
    damaged: Damaged,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(ExportReport);

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let dimension =
        args.dimension.as_deref().map(|wanted| dimension(&world.catalog(), wanted)).transpose()?;
    let Some(mca) = &args.mca else {
        return into::run(&args.into, (&args.world, &world), dimension, args.damaged, out);
    };
    // How many there are is told with the first.
    let progress = out.progress_of("regions written", 0);
    let options = ExportOptions { dimension, layout: args.layout, damaged: args.damaged };
    let exported = export(&world, mca, &options, |now| {
        progress.set_length(now.regions as u64);
        progress.set_position(now.regions_done as u64);
    });
    progress.finish_and_clear();
    let report = match exported {
        Ok(report) => Report(report),
        Err(
            error @ (ExportError::NotEmpty(_)
            | ExportError::Foreign { .. }
            | ExportError::OtherWorld(_)
            | ExportError::NoDimension(_)),
        ) => return Err(Failure::usage(error.to_string())),
        Err(error) => return Err(Failure::failed(error)),
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.0.is_whole(&options)))
}

/// Ascending numbers as ranges: `-4 to 0, 3`.
fn ranges(numbers: &[i32]) -> String {
    let runs = numbers.chunk_by(|a, b| *b == a + 1).map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        run => run.iter().map(i32::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The name that a dimension has in the save, from that or from the world's own.
fn dimension(catalog: &Catalog, wanted: &str) -> Result<String, Failure> {
    if name::of(wanted).is_ok_and(|name| catalog.dimension(name.as_str()).is_some()) {
        return Ok(wanted.to_owned());
    }
    let found = args::find_dimension(catalog, wanted)?;
    let found = catalog.list(ListKind::Dimensions).name(found.get());
    Ok(found.map_or_else(|| wanted.to_owned(), |found| name::text(found.as_str())))
}

/// Names a slot with a part that is not written.
fn show_dropped(f: &mut fmt::Formatter<'_>, dropped: &DroppedSlot) -> fmt::Result {
    let DroppedSlot { dimension, folder, x, z, reason } = dropped;
    let why = match reason.as_str() {
        "" => "a part of it could not be read when it was imported, and is missing".to_owned(),
        reason => format!(
            "its slot of {folder}/ could not be read when it was imported ({}) and is dropped, because it was changed since",
            shown(reason)
        ),
    };
    writeln!(f, "{} column ({x}, {z}): {why}", shown(dimension))
}

/// Says what became of the state of a player that is not the one of the world.
fn show_two_states(f: &mut fmt::Formatter<'_>, two: &TwoStates) -> fmt::Result {
    let TwoStates { uuid, taken, other, is_replaced } = two;
    let (taken, other) = (shown(taken), shown(other));
    if *is_replaced {
        let kept = "which keeps what came as the object minecraft/file/";
        return writeln!(
            f,
            "player {uuid}: {other} came with another state than {taken}; both are as in the world now, {kept}{other}"
        );
    }
    writeln!(f, "player {uuid}: {other} has another state than {taken}; both are as they came")
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
        for DamagedColumn { dimension, x, z, sections, is_written } in &report.damaged_columns {
            let (dimension, lost) = (shown(dimension), ranges(sections));
            let done = if *is_written { "written to be generated again" } else { "left out" };
            writeln!(f, "{dimension} column ({x}, {z}): sections {lost} cannot be read; {done}")?;
        }
        for dropped in &report.dropped_slots {
            show_dropped(f, dropped)?;
        }
        let unlisted = report.dropped_slot_count.saturating_sub(report.dropped_slots.len() as u64);
        if unlisted > 0 {
            writeln!(f, "… and {} more slots that could not be read and are dropped", grouped(unlisted))?;
        }
        for (what, count) in &report.not_exported {
            writeln!(f, "not exported: {} ({count})", shown(what))?;
        }
        writeln!(
            f,
            "exported: files {}, columns {}, chunks {}, entities {}",
            grouped(report.files),
            grouped(report.columns),
            grouped(report.chunks),
            grouped(report.entities),
        )?;
        if report.other_files > 0 {
            writeln!(f, "exported: files that are no regions {}", grouped(report.other_files))?;
        }
        if report.players + report.deleted_players > 0 {
            let [players, changed, deleted] =
                [report.players, report.changed_players, report.deleted_players].map(grouped);
            writeln!(f, "exported: players {players}, changed {changed}; deleted {deleted}")?;
        }
        if let Some(two) = &report.two_states {
            show_two_states(f, two)?;
        }
        if report.old_slots > 0 {
            writeln!(f, "exported: columns of before 1.13, as they came {}", grouped(report.old_slots))?;
        }
        if report.left_old_slots > 0 {
            let count = grouped(report.left_old_slots);
            writeln!(f, "columns of before 1.13 left out, because the world has blocks there: {count}")?;
        }
        if report.kept_slots > 0 {
            let (count, size) = (grouped(report.kept_slots), bytes_text(report.kept_slot_bytes));
            writeln!(
                f,
                "exported: slots that could not be read when they came, as they were {count} ({size})"
            )?;
        }
        let layouts: Vec<_> = report
            .layout
            .iter()
            .map(|(dimension, Placed { layout, .. })| format!("{} {layout}", shown(dimension)))
            .collect();
        if !layouts.is_empty() {
            writeln!(f, "layout: {}", layouts.join(", "))?;
        }
        if report.changed_columns > 0 {
            let count = grouped(report.changed_columns);
            writeln!(f, "without height maps and ticks, for their blocks were changed: columns {count}")?;
        }
        Ok(())
    }
}
