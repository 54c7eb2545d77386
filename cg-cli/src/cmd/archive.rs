//! `cg archive`: a whole world as one file.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use cg_anvil::new_file::NewFile;
use cg_layers::SegmentedWorld;
use cg_store::World;
use cg_store::error::ArchiveError;
use cg_store::view::{Archived, DamagedRows};
use clap::ValueHint;
use serde::Serialize;

use crate::args::{WorldArg, options};
use crate::output::{Failure, Outcome, Output, bytes_text, counted};

/// Write a whole world into one file, from which `cg restore` makes it again.
///
/// The file has all rows of one state: chunks of all dimensions, entities, properties, objects, records, snapshots,
/// names, settings and the quarantine. It is written from front to back, to standard output where FILE is `-`; then the
/// result goes to standard error. FILE must not exist, and has its name when it is whole and on the disk. Every checksum of
/// the world is compared: of damage nothing is left out in silence. A damaged row ends the command with exit code 1 and no
/// file; with `--keep-damage` it is archived as it is, restored as damaged as before, counted, and the exit code is 1 too. What
/// the engine cannot read at all is never archived: `cg quarantine` clears it. Of a segmented world the file has the root and
/// all segments, but no pools of arenas; the commit is the root's. JSON:
/// `{"commit":N,"rows":N,"row_bytes":N,"damaged":N,"bytes":N}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The file to write; `-` is standard output.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Archive damaged rows as they are.
    #[arg(long)]
    keep_damage: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    commit: u64,
    rows: u64,
    row_bytes: u64,
    damaged: u64,
    bytes: u64,
}

/// The name of the standard stream.
pub(super) const STANDARD: &str = "-";

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = Original::open(args, out)?;
    let damaged = if args.keep_damage { DamagedRows::Keep } else { DamagedRows::Refuse };
    let failed = |error| Failure::io("write", &args.file, &error);
    if args.file == Path::new(STANDARD) {
        let to = io::stdout();
        if to.is_terminal() {
            return Err(Failure::usage("standard output is a terminal: name a file, or send it elsewhere"));
        }
        let report = write(args, &world, to.lock(), damaged, out)?;
        out.print_beside(&report)?;
        return Ok(Outcome::good_if(report.damaged == 0));
    }
    let mut file = NewFile::create(&args.file).map_err(failed)?;
    let report = write(args, &world, &mut file, damaged, out)?;
    file.finish().map_err(failed)?;
    out.print(&report)?;
    Ok(Outcome::good_if(report.damaged == 0))
}

/// The world that is archived.
enum Original<'a> {
    One(World),
    /// A segmented world, whose root is open: no process opens it for writing.
    Segmented {
        dir: &'a Path,
        _root: World,
    },
}

impl<'a> Original<'a> {
    fn open(args: &'a Args, out: &Output) -> Result<Self, Failure> {
        let Some(dir) = args.world.place().segmented() else { return Ok(Self::One(args.world.open(out)?)) };
        let options = options();
        let open = || World::builder().options(&options).open_read_only(dir.join("root"));
        Ok(Self::Segmented { dir, _root: args.world.when_free(out, open)? })
    }

    fn archive(
        &self,
        to: impl Write,
        damaged: DamagedRows,
        progress: impl FnMut(&Archived),
    ) -> Result<Archived, ArchiveError> {
        match self {
            Self::One(world) => World::builder().archive(world, to, damaged, progress),
            Self::Segmented { dir, .. } => SegmentedWorld::archive(dir, to, damaged, &options(), progress),
        }
    }
}

fn write(
    args: &Args,
    world: &Original<'_>,
    to: impl Write,
    damaged: DamagedRows,
    out: &Output,
) -> Result<Report, Failure> {
    let progress = match world {
        Original::One(world) => {
            let rows = world.usage()?.families.iter().map(|family| family.row_count).sum();
            out.progress_of("rows archived", rows)
        }
        Original::Segmented { .. } => out.progress("rows archived"),
    };
    let archived = world.archive(to, damaged, |now| {
        progress.set_position(now.row_count);
        progress.set_message(format!("{}, rows archived", bytes_text(now.written_bytes)));
    });
    progress.finish_and_clear();
    let Archived { commit, row_count, len_bytes, damaged_count, written_bytes, .. } =
        archived.map_err(|error| match error {
            ArchiveError::Io(error) => Failure::io("write", &args.file, &error),
            ArchiveError::Store(error @ cg_store::Error::Corrupt(_)) => {
                Failure::advised(&error, "nothing was archived; --keep-damage archives it as it is")
            }
            error => error.into(),
        })?;
    Ok(Report {
        commit: commit.get(),
        rows: row_count,
        row_bytes: len_bytes,
        damaged: damaged_count,
        bytes: written_bytes,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commit, rows, row_bytes, damaged, bytes } = *self;
        writeln!(
            f,
            "archived {} ({}) as of commit {commit} in {}",
            counted(rows, "row"),
            bytes_text(row_bytes),
            bytes_text(bytes)
        )?;
        if damaged > 0 {
            writeln!(f, "DAMAGED {} as they are; `cg verify` names all damage", counted(damaged, "row"))?;
        }
        Ok(())
    }
}
