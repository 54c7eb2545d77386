//! `cg snapshot`: boxes of blocks as they were, kept in the world or in files.

mod create;
mod diff;
pub(super) mod kinds;
mod list;
mod picture;
mod restore;
mod show;
pub(super) mod steps;
mod transfer;
pub(super) mod watched;

use std::fmt;
use std::io::{BufReader, Read, Seek};

use cg_format::Limits;
use cg_snapshot::file::SnapshotFile;
use cg_snapshot::{Snapshot, SnapshotInfo, Unverifiable};
use cg_store::World;
use clap::Subcommand;
use serde::Serialize;

use crate::args::{WrittenWorldArg, YesArg};
use crate::output::{Failure, Outcome, Output};
use crate::shown::shown;

/// Keep boxes of blocks as they were, and put them back.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Create(create::Args),
    List(list::Args),
    Show(show::Args),
    Restore(restore::Args),
    Diff(diff::Args),
    Delete(Delete),
    Export(transfer::Export),
    Import(transfer::Import),
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::Create(args) => create::run(args, out),
        Command::List(args) => list::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Restore(args) => restore::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Delete(args) => delete(args, out),
        Command::Export(args) => transfer::export(args, out),
        Command::Import(args) => transfer::import(args, out),
    }
}

/// Delete a snapshot of the world. Writes.
///
/// JSON: `{"name","deleted":true}`. Exit code 4 if there is none of that name.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The snapshot's name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Deleted {
    name: String,
    deleted: bool,
}

fn delete(args: &Delete, out: &Output) -> Result<Outcome, Failure> {
    args.yes.confirm(&format!("snapshot `{}` would be deleted", args.name))?;
    let world = args.world.open_for_writing(out)?;
    let deleted = world.snapshots().delete(&args.name)?;
    world.flush()?;
    world.close()?;
    if !deleted {
        return Err(not_there(&args.name));
    }
    out.print(&Deleted { name: args.name.clone(), deleted })?;
    Ok(Outcome::Good)
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "snapshot `{}` deleted", shown(&self.name))
    }
}

/// Description of a snapshot, in every report that shows one.
#[derive(Debug, Serialize)]
pub(super) struct About {
    name: String,
    created_ms: u64,
    dimension: String,
    min: [i64; 3],
    max: [i64; 3],
    sections: u64,
    present: u64,
    unique: u64,
    /// Bytes of the sections that are kept, before compression.
    bytes: u64,
    entities: u64,
    /// Bytes in the world or in the file.
    stored_bytes: u64,
    /// The picture that was drawn of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<String>,
}

impl About {
    fn new(info: &SnapshotInfo, name: &str, stored_bytes: u64) -> Self {
        let area = info.region.area();
        let corner = |pos: cg_format::BlockPos| [pos.x, pos.y, pos.z];
        Self {
            name: name.into(),
            created_ms: info.created_ms,
            dimension: info.dimension.to_string(),
            min: corner(area.min()),
            max: corner(area.max()),
            sections: info.section_count,
            present: info.present_count,
            unique: info.unique_count,
            bytes: info.unique_bytes,
            entities: info.entity_count,
            stored_bytes,
            map: None,
        }
    }
}

fn not_there(name: &str) -> Failure {
    Failure::absent(format!("the world keeps no snapshot `{name}`; `cg snapshot list` shows those it keeps"))
}

/// The memory that reading a snapshot of this many stored bytes may take: the largest region's index fits, and as many
/// sections as LZ4 can make of the bytes. `cg` writes nothing that needs more.
pub(super) fn limits(stored_bytes: u64) -> Limits {
    Limits::new(limit_bytes(stored_bytes))
}

fn limit_bytes(stored_bytes: u64) -> u64 {
    stored_bytes.saturating_mul(256).max(1 << 30)
}

/// Reads a whole snapshot that the world keeps, and says how many bytes it has there.
pub(super) fn read_kept(
    world: &World,
    name: &str,
    unverifiable: Unverifiable,
) -> Result<(Snapshot, u64), Failure> {
    let reader = world.snapshots().open(name)?.ok_or_else(|| not_there(name))?;
    let stored_bytes = reader.len_bytes();
    Ok((read(reader, stored_bytes, unverifiable)?, stored_bytes))
}

fn read(
    reader: impl Read + Seek,
    stored_bytes: u64,
    unverifiable: Unverifiable,
) -> Result<Snapshot, Failure> {
    let mut file =
        SnapshotFile::open(BufReader::new(reader), limits(stored_bytes)).map_err(Failure::failed)?;
    file.load(unverifiable).map_err(Failure::failed)
}
