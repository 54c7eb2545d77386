//! `cg import`: a Minecraft Java save into a world.

use std::fmt;
use std::io::ErrorKind;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use cg_anvil::Level;
use cg_anvil::export::UNFINISHED;
use cg_anvil::import::{
    ImportError, ImportOptions, ImportReport, Merge, MergeFiles, Part, Reason, Rekeyed, Stray, TooLarge,
    TwoStates, Unfinished, abandon, import,
};
use cg_anvil::save::{SaveError, Side, is_in_use};
use clap::ValueHint;
use serde::Serialize;

use crate::args::WrittenWorldArg;
use crate::choice;
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};
use crate::shown::shown;

/// Import a Minecraft Java save (1.13 to 26.x), one dimension of it, a folder of region files, or one region file.
///
/// Writes: WORLD is made if it is not there. An import that was stopped or killed continues when it is run again, also if
/// the save changed; `cg import --abandon WORLD` gives it up instead. The save is only read. What cannot be read is listed by its
/// reason and costs nothing else; then the exit code is 1. The slot that it is in is kept as bytes, and an export writes it as it was until its column is changed. Files are left out too: those
/// of 64 MiB or more, names that are not UTF-8, links, and what is too deep. Regions are `r.X.Z.mca` in the folders of
/// dimensions; copies such as `r.0.0 (1).mca` and regions in other folders are kept as files and named. Chunks in `.linear`,
/// packed or other files are not read, and named with exit code 1, or refused where there is nothing else. Columns of before
/// 1.13 are kept as bytes. Players become entities and their files are kept too; a file that gives no player is named, with exit code 1 if it is damaged. A server's folder is refused with the commands that import its `world`, `world_nether` and
/// `world_the_end`. A folder `DIM-1`, `DIM1` or `dimensions/NAMESPACE/NAME` is that dimension. Where a save holds a
/// dimension in both layouts (`region/`, `DIM-1/`, `DIM1/` until 1.21.11, `dimensions/minecraft/NAME/` since 26.1), the
/// side with columns is imported, of two the one in which the game of `level.dat` looks; the other is named and refused,
/// with exit code 1. The first line names a `DataVersion` that is newer than the newest that was tested. JSON: `{"imported_columns":N,"imported_chunks":N,"imported_files":N,"old_slots":N,
/// "kept_slots":N,"kept_slot_bytes":N,"untested":{"data_version","columns","level"},"layout":{DIMENSION:"old"|"dimensions"},"strays":[…],"unreadable":[{"file","slot","reason"}],"reasons":[{"reason","count","first":[{"file","slot"}]}],"not_carried":[NAME],
/// "regions_as_files":[FILE],"players":N,"players_as_files":{FILE:WHY},"two_states":{"uuid","taken":FILE,"other":FILE},"too_large":[{"file","bytes"}],"has_no_column":BOOL,…}`. Of one
/// file each list holds the first thousand and the first of each slot; `"unlisted"` counts what is beyond. `"reasons"` counts all
/// that could not be read or was left out, up to a hundred reasons.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// The save's folder, a dimension's folder in it, a folder of region files, or one region file.
    #[arg(value_name = "SAVE", value_hint = ValueHint::AnyPath, required_unless_present = "abandon")]
    save: Option<PathBuf>,
    #[command(flatten)]
    world: WrittenWorldArg,
    /// Import into a world that holds something: where both have a column or an entity, replace it or keep the world's.
    ///
    /// Of a save with nothing but the nether or the end, as servers keep them in folders of their own, only the dimension
    /// and its files go into the world of another save.
    #[arg(long, value_parser = choice::merge())]
    merge: Option<Merge>,
    /// With `--merge replace`: keep or delete files of the world's save that SAVE does not have. Deletes only if SAVE has a
    /// `level.dat`.
    #[arg(long, value_parser = choice::merge_files(), value_name = "MERGE", default_value = "keep")]
    merge_files: MergeFiles,
    /// Import what the save holds of a dimension where the game does not look, as `stray:overworld`, `stray:the_nether` or
    /// `stray:the_end`.
    #[arg(long)]
    take_strays: bool,
    /// Import the overworld alone, as this dimension; not with `--take-strays`.
    #[arg(long, value_name = "NAME")]
    as_dimension: Option<String>,
    /// Threads that decode, at most 64 [default: one for each of the machine's].
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Give up the unfinished import into WORLD: what came so far stays, nothing else changes, and the next import begins
    /// anew, with `--merge`. JSON: `{"abandoned":{"save","begun","imported_columns"}}`.
    #[arg(long, conflicts_with_all = ["merge", "merge_files", "take_strays", "as_dimension", "threads"])]
    abandon: bool,
}

/// How many region files that are kept as files the text names; JSON has them all.
const SHOWN_FILES: usize = 10;

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(ImportReport);

#[derive(Debug, Serialize)]
struct AbandonReport {
    abandoned: Unfinished,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let Some(save) = args.save.as_deref().filter(|_| !args.abandon) else {
        return run_abandon(&args.world, out);
    };
    let options = ImportOptions {
        merge: args.merge,
        merge_files: args.merge_files,
        take_strays: args.take_strays,
        as_dimension: args.as_dimension.clone(),
        threads: args.threads,
        ..ImportOptions::default()
    };
    // Before a world is made for it.
    options.check().map_err(|error| Failure::usage(advised(&error)))?;
    if save.join(UNFINISHED).symlink_metadata().is_ok() {
        return Err(Failure::refused(format!(
            "{} holds an unfinished export: run that again to its end, or delete {UNFINISHED} to import what is there",
            save.display()
        )));
    }
    options.find(save).map_err(|error| match error {
        SaveError::Server(server) => {
            // The worlds of several saves have names that begin with it.
            let world = args.world.place().directory("").unwrap_or(Path::new("WORLD"));
            Failure::usage(server.message(world))
        }
        error @ SaveError::Schematic(_) => {
            Failure::usage(format!("{error}: `cg schem import FILE WORLD --at X Y Z`"))
        }
        error @ SaveError::StrayName { .. } => Failure::usage(format!("{error} (`--take-strays`)")),
        SaveError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            Failure::absent(format!("{} is not there", save.display()))
        }
        error => Failure::usage(error.to_string()),
    })?;
    if is_in_use(save).unwrap_or(false) {
        out.warn(&format!(
            "another process holds session.lock of {}: a running game or server may change the save meanwhile; stop it, or import a copy",
            save.display()
        ));
    }
    let world = args.world.open_or_create(out)?;
    // How many there are is told with the first.
    let progress = out.progress_of("files imported", 0);
    let imported = import(save, &world, &options, |now| {
        progress.set_length(now.files as u64);
        progress.set_position(now.files_done as u64);
        progress.set_message(format!("{}, files imported", counted(now.columns, "column")));
    });
    progress.finish_and_clear();
    let report = match imported {
        Ok(report) => Report(report),
        Err(
            error @ (ImportError::NotEmpty
            | ImportError::OtherChoices { .. }
            | ImportError::OtherGame { .. }
            | ImportError::OtherImport
            | ImportError::OtherRules),
        ) => return Err(Failure::usage(advised(&error))),
        Err(error @ ImportError::Progress { .. }) => return Err(Failure::advised(&error, ABANDON)),
        Err(error) => return Err(Failure::failed(error)),
    };
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::good_if(report.0.is_whole()))
}

/// How an import is given up.
const ABANDON: &str = "`cg import --abandon`";

/// An error of an import with the options that do something about it.
fn advised(error: &ImportError) -> String {
    let options = match error {
        ImportError::NotEmpty => "`--merge replace` or `--merge keep`",
        ImportError::DeletesOnly => "`--merge-files replace` goes with `--merge replace`",
        ImportError::StraysAsDimension => "`--take-strays` and `--as-dimension`",
        ImportError::OtherImport => "`cg info` names the save, `cg import --abandon` gives its import up",
        ImportError::OtherChoices { .. } | ImportError::OtherRules => ABANDON,
        _ => return error.to_string(),
    };
    format!("{error} ({options})")
}

fn run_abandon(world: &WrittenWorldArg, out: &Output) -> Result<Outcome, Failure> {
    let world = world.open_for_writing(out)?;
    let abandoned = match abandon(&world) {
        Ok(abandoned) => abandoned,
        Err(error @ ImportError::Finished) => return Err(Failure::usage(error.to_string())),
        Err(error) => return Err(Failure::failed(error)),
    };
    world.close()?;
    out.print(&AbandonReport { abandoned })?;
    Ok(Outcome::Good)
}

impl fmt::Display for AbandonReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "abandoned: {}", shown(&self.abandoned.to_string()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        if let Some(untested) = &report.untested {
            writeln!(f, "{untested}")?;
        }
        for reason in &report.reasons {
            show_reason(f, reason)?;
        }
        for stray in &report.strays {
            show_stray(f, stray)?;
        }
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
            "imported: columns {}, chunks {}, entities {} (detached: {})",
            grouped(report.imported_columns),
            grouped(report.imported_chunks),
            grouped(report.entities),
            grouped(report.detached),
        )?;
        let changed = [report.replaced_chunks, report.unchanged_chunks, report.removed_chunks];
        if changed.iter().any(|count| *count > 0) {
            let [replaced, unchanged, removed] = changed.map(grouped);
            let new = grouped(report.new_chunks);
            writeln!(f, "chunks: new {new}, replaced {replaced}, unchanged {unchanged}, removed {removed}")?;
        }
        show_players(f, report)?;
        if report.imported_files > 0 {
            writeln!(f, "imported: files that are no regions {}", grouped(report.imported_files))?;
        }
        if report.old_slots > 0 {
            let count = grouped(report.old_slots);
            writeln!(
                f,
                "kept as bytes: columns of before 1.13 {count}; a game or server that upgrades them (--forceUpgrade) gives them blocks"
            )?;
        }
        if report.kept_slots > 0 {
            writeln!(
                f,
                "kept as bytes: slots of which something could not be read {} ({}); an export writes them as they were until their column is changed",
                grouped(report.kept_slots),
                bytes_text(report.kept_slot_bytes)
            )?;
        }
        show_files(f, report)?;
        let layouts: Vec<_> = report
            .layout
            .iter()
            .map(|(dimension, layout)| format!("{} {layout}", shown(dimension)))
            .collect();
        if !layouts.is_empty() {
            writeln!(f, "layout: {}", layouts.join(", "))?;
        }
        if report.in_use {
            writeln!(f, "another process held session.lock: what it wrote meanwhile may be missing or torn")?;
        }
        if report.kept_chunks + report.kept_entities + report.kept_files > 0 {
            let (chunks, entities) = (grouped(report.kept_chunks), grouped(report.kept_entities));
            let files = grouped(report.kept_files);
            writeln!(f, "kept as the world had them: chunks {chunks}, entities {entities}, files {files}")?;
        }
        if !report.not_carried.is_empty() {
            let names: Vec<_> = report.not_carried.iter().map(|name| shown(name).to_string()).collect();
            writeln!(f, "not carried: {}", names.join(", "))?;
            more(f, report.unlisted.not_carried, "that are not carried")?;
        }
        show_regions(f, report)?;
        show_too_large(f, report)?;
        match report.unreadable_count() {
            0 if !report.too_large.is_empty() => writeln!(f, "everything else could be read"),
            0 => writeln!(f, "everything could be read"),
            count => writeln!(f, "could not be read: {}", grouped(count)),
        }
    }
}

/// Says how many players are entities, and which files of players are not.
fn show_players(f: &mut fmt::Formatter<'_>, report: &ImportReport) -> fmt::Result {
    if report.players > 0 {
        writeln!(f, "imported: players {}", grouped(report.players))?;
    }
    if let Some(TwoStates { uuid, taken, other, .. }) = &report.two_states {
        let (taken, other) = (shown(taken), shown(other));
        writeln!(
            f,
            "player {uuid}: {taken} and {other} say different things; the world has {taken}, and keeps both files"
        )?;
    }
    for (file, why) in report.players_as_files.iter().take(SHOWN_FILES) {
        writeln!(f, "kept as a file: {}: {}", shown(file), shown(why))?;
    }
    let count = report.players_as_files.len() as u64 + report.unlisted.players_as_files;
    more(f, count.saturating_sub(SHOWN_FILES as u64), "files of players")
}

/// Says which region files were imported as files, and whether the save has a column at all.
fn show_regions(f: &mut fmt::Formatter<'_>, report: &ImportReport) -> fmt::Result {
    let count = report.regions_as_files.len() as u64 + report.unlisted.regions_as_files;
    if count > 0 {
        writeln!(f, "kept as files: region files that no game reads where they are {}", grouped(count))?;
        for file in report.regions_as_files.iter().take(SHOWN_FILES) {
            writeln!(f, "  {}", shown(file))?;
        }
        more(f, count.saturating_sub(SHOWN_FILES as u64), "region files")?;
    }
    if report.has_no_column {
        writeln!(f, "the save has no column")?;
    }
    Ok(())
}

/// Says which files were left out because an object cannot hold them, and how large they are.
fn show_too_large(f: &mut fmt::Formatter<'_>, report: &ImportReport) -> fmt::Result {
    for TooLarge { file, bytes } in &report.too_large {
        writeln!(f, "left out, because it is too large: {}, {} bytes", shown(file), grouped(*bytes))?;
    }
    more(f, report.unlisted.too_large, "files that are too large")
}

/// Says why parts could not be read, how many, and which are the first.
fn show_reason(f: &mut fmt::Formatter<'_>, Reason { reason, count, first }: &Reason) -> fmt::Result {
    let place = |part: &Part| match part.slot {
        Some(slot) => format!("{} slot {slot}", shown(&part.file)),
        None => shown(&part.file).to_string(),
    };
    let (is_other, more) = (reason.is_empty(), count.saturating_sub(1));
    let reason = shown(reason);
    match first.split_first() {
        Some((first, _)) if *count == 1 && !is_other => writeln!(f, "{}: {reason}", place(first)),
        Some((first, others)) if !is_other => {
            write!(f, "{}: {reason}; and {} more like it", place(first), grouped(more))?;
            let others: Vec<_> = others.iter().map(place).collect();
            if others.is_empty() { writeln!(f) } else { writeln!(f, ", first in {}", others.join(", ")) }
        }
        _ => writeln!(f, "… and {} more parts for other reasons", grouped(*count)),
    }
}

/// Says what was refused of a dimension that both layouts hold.
fn show_stray(f: &mut fmt::Formatter<'_>, stray: &Stray) -> fmt::Result {
    let Stray { dimension, side, live } = stray;
    let (dimension, side, live) = (shown(dimension), side_text(side), side_text(live));
    writeln!(
        f,
        "{dimension}: refused {side} beside {live}; `--take-strays` imports it as a dimension of its own"
    )
}

fn side_text(side: &Side) -> String {
    let newest = UNIX_EPOCH + Duration::from_secs(side.newest.into());
    let newest = match side.newest {
        0 => "at an unknown time".to_owned(),
        _ => humantime::format_rfc3339_seconds(newest).to_string(),
    };
    let (files, columns) = (counted(side.files, "file"), counted(side.columns, "column"));
    format!("{} ({files}, {columns}, last written {newest})", shown(&side.folder))
}

/// Says what became of the files of the save that the world was.
fn show_files(f: &mut fmt::Formatter<'_>, report: &ImportReport) -> fmt::Result {
    if let Some(replaced) = &report.replaced_level {
        let named = |level: &Option<Level>| match level {
            None => "one that cannot be read".to_owned(),
            Some(Level { name, data_version }) => {
                let version = data_version.map_or_else(|| "none".to_owned(), |version| version.to_string());
                format!("\"{}\" (DataVersion {version})", shown(name))
            }
        };
        writeln!(f, "replaced: level.dat of {} by that of {}", named(&replaced.was), named(&replaced.is))?;
    }
    if report.remaining_files > 0 {
        let count = grouped(report.remaining_files);
        writeln!(
            f,
            "still there: files of the save before {count}; `--merge-files replace` deletes such files"
        )?;
    }
    for (folder, count) in &report.deleted_files {
        writeln!(f, "deleted: files of the save before in {} {}", shown(folder), grouped(*count))?;
    }
    if report.left_files > 0 {
        writeln!(f, "left out: files that are not of the dimension {}", grouped(report.left_files))?;
    }
    Ok(())
}

/// Says what the lists of a file have no room for.
fn more(f: &mut fmt::Formatter<'_>, count: u64, what: &str) -> fmt::Result {
    match count {
        0 => Ok(()),
        count => writeln!(f, "… and {} more {what}, which are not listed", grouped(count)),
    }
}
