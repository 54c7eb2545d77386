//! `cg checkpoint`: a copy of a world, by hard links where the disk allows.

use std::fmt;
use std::path::{Path, PathBuf};

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::engine::CommitSeq;
use cg_store::verify::{VerifyDepth, VerifyReport};
use cg_store::{CheckpointFiles, Error, World};
use clap::ValueHint;
use serde::Serialize;

use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, counted};
use crate::place::DirectoryParser;

/// Copy the world as it is now into a new directory, by hard links where the disk allows.
///
/// Of a segmented world the root and all segments are copied, and the commit is the root's; pools of arenas are not. Writes: the world is opened for writing, so no other process may have it open. Its content stays as it is. The copy is
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
    let files = if args.copy { CheckpointFiles::Copied } else { CheckpointFiles::Linked };
    let (last_commit, problems) = match args.world.place().segmented() {
        Some(dir) => of_segmented(args, dir, files, out)?,
        None => of_world(args, files, out)?,
    };
    let checkpoint = args.to.display().to_string();
    out.print(&Report { checkpoint, last_commit: last_commit.get(), apart: args.copy, problems })?;
    Ok(Outcome::good_if(problems.unwrap_or(0) == 0))
}

/// Copies a world. Returns its last commit, and how many problems the copy has, if it is verified.
fn of_world(args: &Args, files: CheckpointFiles, out: &Output) -> Result<(CommitSeq, Option<u64>), Failure> {
    let world = args.world.open_for_writing(out)?;
    world.checkpoint(&args.to, files)?;
    let last_commit = world.last_commit();
    world.close()?;
    drop(world);
    if args.no_verify {
        return Ok((last_commit, None));
    }
    let copy = World::builder().options(&args.world.options()).open_read_only(&args.to)?;
    let found = watched(out, |progress| copy.verify(VerifyDepth::Full, progress))?;
    Ok((last_commit, Some(found.findings.len() as u64)))
}

/// The same of a segmented world, with the root's last commit. A segment that cannot be read is one problem.
fn of_segmented(
    args: &Args,
    dir: &Path,
    files: CheckpointFiles,
    out: &Output,
) -> Result<(CommitSeq, Option<u64>), Failure> {
    let options = SegmentOptions { world: args.world.options(), ..SegmentOptions::default() };
    let world = args.world.when_free(out, || SegmentedWorld::open(dir, &[], &options))?;
    world.checkpoint(&args.to, files)?;
    let last_commit = world.root().last_commit();
    world.close()?;
    drop(world);
    if args.no_verify {
        return Ok((last_commit, None));
    }
    let verify = |progress: &mut dyn FnMut(u64)| {
        SegmentedWorld::verify(&args.to, VerifyDepth::Full, &options.world, &[], progress)
    };
    let found = watched(out, verify)?;
    let of_segment = |verified: &Result<VerifyReport, Error>| {
        verified.as_ref().map_or(1, |verified| verified.findings.len())
    };
    let of_segments: usize = found.segments.values().map(of_segment).sum();
    Ok((last_commit, Some((found.findings.len() + found.root.findings.len() + of_segments) as u64)))
}

/// Verifies, and shows how far that is.
fn watched<T>(
    out: &Output,
    verify: impl FnOnce(&mut dyn FnMut(u64)) -> Result<T, Error>,
) -> Result<T, Error> {
    let progress = out.progress("rows checked");
    let found = verify(&mut |rows| progress.set_position(rows));
    progress.finish_and_clear();
    found
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
