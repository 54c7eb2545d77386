//! `cg checkpoint`: a copy of a world, by hard links where the disk allows.

use std::fmt;
use std::path::PathBuf;

use cg_store::World;
use cg_store::verify::VerifyDepth;

use clap::ValueHint;
use serde::Serialize;

use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, counted};
use crate::place::DirectoryParser;

/// Copy the world as it is now into a new directory, by hard links where the disk allows.
///
/// Writes: the world is opened for writing, so no other process may have it open. Its content stays as it is. The copy is
/// verified then, while the world may be used again; exit code 1 if it is damaged, as the world is then. Files that are hard
/// links are shared: damage that such a file takes later is damage of both. JSON:
/// `{"checkpoint":DIR,"last_commit":N,"apart":BOOL,"problems":N}`, without problems where nothing was verified.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// The new directory; it must not exist or be empty.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = DirectoryParser)]
    to: PathBuf,
    /// Copy every file instead: the copy takes as much room as the world, and shares no later damage with it.
    #[arg(long)]
    copy: bool,
    /// Do not verify the copy.
    #[arg(long)]
    no_verify: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    checkpoint: String,
    last_commit: u64,
    apart: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problems: Option<u64>,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    args.world.place().directory("use `cg copy`")?;
    let world = args.world.open_for_writing(out)?;
    if args.copy {
        world.checkpoint(&args.to, cg_store::CheckpointFiles::Copied)?;
    } else {
        world.checkpoint(&args.to, cg_store::CheckpointFiles::Linked)?;
    }
    let last_commit = world.last_commit().get();
    world.close()?;
    drop(world);
    let problems = if args.no_verify { None } else { Some(problems(args, out)?) };
    let checkpoint = args.to.display().to_string();
    out.print(&Report { checkpoint, last_commit, apart: args.copy, problems })?;
    Ok(Outcome::good_if(problems.unwrap_or(0) == 0))
}

/// How many problems the copy has.
fn problems(args: &Args, out: &Output) -> Result<u64, Failure> {
    let copy = World::builder().options(&args.world.options()).open_read_only(&args.to)?;
    let progress = out.progress("rows checked");
    let found = copy.verify(VerifyDepth::Full, |rows| progress.set_position(rows));
    progress.finish_and_clear();
    Ok(found?.findings.len() as u64)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} holds the world as of commit {}", self.checkpoint, self.last_commit)?;
        if !self.apart {
            writeln!(
                f,
                "its files may be hard links to the world's: later damage of one is damage of both; --copy makes others"
            )?;
        }
        match self.problems {
            None => writeln!(f, "it was not verified"),
            Some(0) => writeln!(f, "no problem found"),
            Some(count) => writeln!(
                f,
                "DAMAGED, and so is the world: {} found; `cg verify` says which",
                counted(count, "problem")
            ),
        }
    }
}
