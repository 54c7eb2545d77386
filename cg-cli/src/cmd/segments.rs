//! `cg segments`: the parts of a segmented world.

use std::fmt;
use std::path::Path;

use cg_format::Dimension;
use cg_layers::{AcceptedSegments, OnDisk, SegmentOptions, SegmentPos, SegmentedWorld};
use cg_registry::ListKind;
use cg_store::error::ConflictKey;
use clap::ValueHint;
use serde::Serialize;

use super::compact::write_skipped;
use super::name_of;
use crate::args::{DimensionArg, WaitArg, YesArg, options};
use crate::output::{Failure, Outcome, Output, counted};
use crate::place::{Place, PlaceParser};

/// List, compact, delete and accept the segments of a segmented world.
///
/// A segment alone is a world: `cg verify WORLD/segments/D.X.Y.Z` and the other commands work on it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Compact(Compact),
    Delete(Delete),
    Accept(Accept),
}

/// List the segments. What a crash interrupted is finished first. JSON:
/// `{"side_chunks":N,"segments":[{"dimension","x","y","z"}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    world: SegmentedArg,
}

/// Rewrite one segment's files without what was overwritten or deleted. Writes. Exit code 1 if files were left as they are because
/// one of their kind is damaged. `cg compact` compacts all segments, where there is something to gain.
#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    #[command(flatten)]
    world: SegmentedArg,
    #[command(flatten)]
    segment: SegmentArg,
}

/// Delete one segment with its chunks and entities. Writes.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: SegmentedArg,
    #[command(flatten)]
    segment: SegmentArg,
    #[command(flatten)]
    yes: YesArg,
}

/// Accept segments, or a root, that were put back from copies. Writes.
///
/// A segmented world refuses a segment that lacks a transfer of entities which the root knows, and the other way round. Put
/// root and segments back from one backup, if there is one. Accepted, each world stays as it was put back. An entity, a
/// property, an object or a record that is in more than one segment is deleted but in the one that the root names. JSON:
/// `{"doubled":[KEY],"moved":[KEY],"gone":[KEY]}`, with keys as `entity UUID`.
#[derive(Debug, clap::Args)]
pub(crate) struct Accept {
    #[command(flatten)]
    world: SegmentedArg,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Accepted {
    /// What was in more than one segment.
    doubled: Vec<String>,
    /// What was in a segment that the root did not name.
    moved: Vec<String>,
    /// What is in no segment.
    gone: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct SegmentedArg {
    /// The directory of the segmented world, which holds `root` and `segments`.
    #[arg(id = "path", value_name = "WORLD", value_hint = ValueHint::DirPath, value_parser = PlaceParser)]
    place: Place,
    #[command(flatten)]
    wait: WaitArg,
}

#[derive(Debug, clap::Args)]
struct SegmentArg {
    #[command(flatten)]
    dimension: DimensionArg,
    /// The place of the segment, in segments.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true, required = true)]
    segment: Vec<i64>,
}

#[derive(Debug, Serialize)]
struct Report {
    side_chunks: u32,
    segments: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    dimension: String,
    x: i64,
    y: i64,
    z: i64,
}

#[derive(Debug, Serialize)]
struct Handled {
    done: &'static str,
    segment: Line,
    /// Kinds of rows whose files stayed as they are, because something in them is damaged.
    skipped_damaged: usize,
}

impl SegmentedArg {
    fn open(&self, out: &Output) -> Result<SegmentedWorld<OnDisk>, Failure> {
        let options = SegmentOptions { world: options(), ..SegmentOptions::default() };
        let path = self.path()?;
        Ok(self.wait.when_free(out, || SegmentedWorld::open(path, &[], &options))?)
    }

    fn path(&self) -> Result<&Path, Failure> {
        self.place.directory("a world in a database has no segments")
    }
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, out),
        Command::Compact(args) => {
            let world = args.world.open(out)?;
            let segment = args.segment.find(&world)?;
            world.segments().compact(segment)?;
            let usage = world.segments().with(segment, cg_store::World::usage)?;
            // What is damaged was left as it is.
            let skipped_damaged = usage.families.iter().filter(|held| held.is_held).count();
            done(&world, "compacted", segment, skipped_damaged, out)
        }
        Command::Delete(args) => {
            let world = args.world.open(out)?;
            let segment = args.segment.find(&world)?;
            args.yes.confirm(&format!("{segment} would be deleted with everything in it"))?;
            world.segments().delete(segment)?;
            done(&world, "deleted", segment, 0, out)
        }
        Command::Accept(args) => {
            let world = args.world.open(out)?;
            args.yes.confirm(&format!(
                "the segments of {} would be taken as they are",
                args.world.path()?.display()
            ))?;
            let accepted = world.segments().accept()?;
            world.close()?;
            let words = |keys: &[ConflictKey]| keys.iter().map(ToString::to_string).collect();
            let AcceptedSegments { doubled, moved, gone } = &accepted;
            out.print(&Accepted { doubled: words(doubled), moved: words(moved), gone: words(gone) })?;
            Ok(Outcome::Good)
        }
    }
}

fn list(args: &List, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let segments = world.segments().list().into_iter().map(|segment| line(&world, segment)).collect();
    let report = Report { side_chunks: world.side_chunks(), segments };
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::Good)
}

fn done(
    world: &SegmentedWorld<OnDisk>,
    done: &'static str,
    segment: SegmentPos,
    skipped_damaged: usize,
    out: &Output,
) -> Result<Outcome, Failure> {
    let segment = line(world, segment);
    world.close()?;
    out.print(&Handled { done, segment, skipped_damaged })?;
    Ok(Outcome::good_if(skipped_damaged == 0))
}

fn line(world: &SegmentedWorld<OnDisk>, segment: SegmentPos) -> Line {
    let SegmentPos { dimension, x, y, z } = segment;
    Line { dimension: name_of(&world.catalog(), ListKind::Dimensions, dimension.get()), x, y, z }
}

impl SegmentArg {
    fn find(&self, world: &SegmentedWorld<OnDisk>) -> Result<SegmentPos, Failure> {
        let dimension: Dimension = self.dimension.find(&world.catalog())?;
        let &[x, y, z] = self.segment.as_slice() else {
            return Err(Failure::usage("a segment has three coordinates"));
        };
        Ok(SegmentPos { dimension, x, y, z })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            writeln!(f, "{segment}")?;
        }
        writeln!(
            f,
            "{} of {} chunks per side",
            counted(self.segments.len() as u64, "segment"),
            self.side_chunks
        )
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { doubled, moved, gone } = self;
        for (keys, what) in [
            (doubled, "was in more than one segment, and is in one now"),
            (moved, "was in another segment than the root said"),
            (gone, "is in no segment"),
        ] {
            for key in keys {
                writeln!(f, "{key} {what}")?;
            }
        }
        writeln!(f, "root and segments are of one history now; run `cg verify`")
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} {} {} of {}", self.x, self.y, self.z, self.dimension)
    }
}

impl fmt::Display for Handled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.segment, self.done)?;
        write_skipped(self.skipped_damaged, f)
    }
}
