//! The commands, one file each: its arguments, what it does, and what it prints.

mod accept_loss;
mod archive;
mod checkpoint;
mod compact;
mod completions;
mod content;
mod copy;
mod dump;
mod export;
mod get;
mod hash;
mod import;
mod info;
mod map;
mod names;
mod object;
mod opacity;
mod overlay;
mod pack;
mod prune;
mod quarantine;
mod records;
mod registry;
mod restore;
mod schem;
mod segments;
mod settings;
mod snapshot;
#[cfg(test)]
mod tests;
mod tiers;
mod unpack;
mod verify;

use cg_anvil::import::Unfinished;
use cg_layers::SegmentPos;
use cg_registry::{Catalog, ListKind, Name};
use clap::{Parser, Subcommand};

use crate::output::{Failure, Format, Outcome, Output};
use crate::shown::shown;

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  something is damaged, lost or refused, or a check has findings
  2  wrong usage
  3  another process has the world open: --wait SECONDS waits for it
  4  the named thing is not there
With --json, an error is one line of JSON on standard error: {\"error\":{\"code\",\"message\"}};
its code is damaged, lost, refused or failed (exit code 1), usage or unknown_dimension (2), held (3) or absent (4).
A warning is {\"warning\"}, and the command goes on.
Worlds are opened for reading only, unless the command's help says that it writes.
Coordinates count blocks (or 16-block chunks where it says chunk); a box includes both corners.";

/// Import, export, inspect, verify and draw CherryGrove worlds.
#[derive(Debug, Parser)]
#[command(name = "cg", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Print the result as one line of JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    pub(crate) const fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }
}

/// What `cg` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Import(import::Args),
    Export(export::Args),
    Info(info::Args),
    Settings(settings::Args),
    Get(get::Args),
    Dump(dump::Args),
    #[command(subcommand)]
    Registry(registry::Command),
    Verify(verify::Args),
    Hash(hash::Args),
    Checkpoint(checkpoint::Args),
    Compact(compact::Args),
    Copy(copy::Args),
    Archive(archive::Args),
    Restore(restore::Args),
    AcceptLoss(accept_loss::Args),
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    #[command(subcommand)]
    Schem(schem::Command),
    Map(map::Args),
    #[command(subcommand)]
    Object(object::Command),
    #[command(subcommand)]
    Records(records::Command),
    #[command(subcommand)]
    Opacity(opacity::Command),
    Tiers(tiers::Args),
    Prune(prune::Args),
    #[command(subcommand)]
    Snapshot(snapshot::Command),
    #[command(subcommand)]
    Overlay(overlay::Command),
    #[command(subcommand)]
    Segments(segments::Command),
    Pack(pack::Args),
    Unpack(unpack::Args),
    Completions(completions::Args),
}

impl Command {
    pub(crate) fn run(&self, out: &Output) -> Result<Outcome, Failure> {
        match self {
            Self::Import(args) => import::run(args, out),
            Self::Export(args) => export::run(args, out),
            Self::Info(args) => info::run(args, out),
            Self::Settings(args) => settings::run(args, out),
            Self::Get(args) => get::run(args, out),
            Self::Dump(args) => dump::run(args, out),
            Self::Registry(command) => registry::run(command, out),
            Self::Verify(args) => verify::run(args, out),
            Self::Hash(args) => hash::run(args, out),
            Self::Checkpoint(args) => checkpoint::run(args, out),
            Self::Compact(args) => compact::run(args, out),
            Self::Copy(args) => copy::run(args, out),
            Self::Archive(args) => archive::run(args, out),
            Self::Restore(args) => restore::run(args, out),
            Self::AcceptLoss(args) => accept_loss::run(args, out),
            Self::Quarantine(command) => quarantine::run(command, out),
            Self::Schem(command) => schem::run(command, out),
            Self::Map(args) => map::run(args, out),
            Self::Object(command) => object::run(command, out),
            Self::Records(command) => records::run(command, out),
            Self::Opacity(command) => opacity::run(command, out),
            Self::Tiers(args) => tiers::run(args, out),
            Self::Prune(args) => prune::run(args, out),
            Self::Snapshot(command) => snapshot::run(command, out),
            Self::Overlay(command) => overlay::run(command, out),
            Self::Segments(command) => segments::run(command, out),
            Self::Pack(args) => pack::run(args, out),
            Self::Unpack(args) => unpack::run(args, out),
            Self::Completions(args) => completions::run(args),
        }
    }
}

/// The name after an id of a list; an id that was never issued is shown as a number.
fn name_of(catalog: &Catalog, list: ListKind, id: u64) -> String {
    catalog.list(list).name(id).map_or_else(|| format!("#{id}"), Name::to_string)
}

/// The directory of a world in a segmented world: its root, or a segment.
fn directory_of(segment: Option<SegmentPos>) -> String {
    segment.map_or_else(
        || "root".to_owned(),
        |SegmentPos { dimension, x, y, z }| format!("segments/{}.{x}.{y}.{z}", dimension.get()),
    )
}

/// Message of a command on a world with an unfinished import.
fn unfinished_text(import: &Unfinished) -> String {
    let import = import.to_string();
    format!("UNFINISHED {}; run it again, or give it up with `cg import --abandon`", shown(&import))
}
