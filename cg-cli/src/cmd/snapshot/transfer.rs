//! `cg snapshot export` and `cg snapshot import`: between a world and a file, byte for byte.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use cg_anvil::new_file::NewFile;
use cg_snapshot::Unverifiable;
use cg_snapshot::file::read_info;
use clap::ValueHint;

use super::{About, not_there, read};
use crate::args::{WorldArg, WrittenWorldArg};
use crate::output::{Failure, Outcome, Output};

/// Write a snapshot of the world as a file. The names of all ids go with it.
///
/// JSON: as `cg snapshot create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    world: WorldArg,
    /// The snapshot's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The file to write; it must not exist.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// Keep the snapshot of a file in the world, after checking all of it. Writes.
///
/// Nothing is registered and nothing restored: that is `cg snapshot restore`. JSON: as `cg snapshot create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The name under which it is kept [default: the one in the file].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn export(args: &Export, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let mut reader = world.snapshots().open(&args.name)?.ok_or_else(|| not_there(&args.name))?;
    let info = read_info(&mut reader).map_err(Failure::failed)?;
    let mut reader = world.snapshots().open(&args.name)?.ok_or_else(|| not_there(&args.name))?;
    let failed = |error: io::Error| Failure::io("write", &args.file, &error);
    let mut file = NewFile::create(&args.file).map_err(failed)?;
    let progress = out.progress("bytes written");
    let copied = io::copy(&mut reader, &mut progress.wrap_write(&mut file));
    progress.finish_and_clear();
    let len_bytes = copied.map_err(failed)?;
    file.finish().map_err(failed)?;
    out.print(&About::new(&info, &args.name, len_bytes))?;
    Ok(Outcome::Good)
}

pub(super) fn import(args: &Import, out: &Output) -> Result<Outcome, Failure> {
    let failed = |error: io::Error| Failure::io("read", &args.file, &error);
    let file = File::open(&args.file).map_err(failed)?;
    let progress = out.progress_of("bytes read", file.metadata().map_err(failed)?.len());
    let mut bytes = Vec::new();
    let copied = progress.wrap_read(file).read_to_end(&mut bytes);
    progress.finish_and_clear();
    copied.map_err(failed)?;
    let snapshot = read(io::Cursor::new(&bytes), bytes.len() as u64, Unverifiable::Fail)?;
    snapshot.check().map_err(Failure::failed)?;
    let name = args.name.as_ref().unwrap_or(&snapshot.info().name);
    let world = args.world.open_for_writing(out)?;
    world.snapshots().save(name, &bytes)?;
    world.flush()?;
    world.close()?;
    out.print(&About::new(snapshot.info(), name, bytes.len() as u64))?;
    Ok(Outcome::Good)
}
