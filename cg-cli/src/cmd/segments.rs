//! `cg segments`: the parts of a segmented world.

use std::fmt;
use std::path::PathBuf;

use cg_format::Dimension;
use cg_registry::ListKind;
use cg_store::{OnDisk, PromotionInPart, SegmentOptions, SegmentPos, SegmentedWorld};
use clap::ValueHint;
use serde::Serialize;

use super::name_of;
use crate::args::{DimensionArg, YesArg, options};
use crate::output::{Failure, Outcome, Output, counted};

/// List, compact and delete the segments of a segmented world, and give up what is damaged of a promotion into them.
///
/// A segment alone is a world: `cg verify WORLD/segments/D.X.Y.Z` and the other commands work on it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Compact(Compact),
    Delete(Delete),
    SetAside(SetAside),
}

/// List the segments. What a crash interrupted is finished first. JSON:
/// `{"side_chunks":N,"segments":[{"dimension","x","y","z"}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    world: SegmentedArg,
}

/// Rewrite one segment's files without what was overwritten or deleted. Writes.
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

/// Give up what is damaged of a promotion that keeps segments closed. Writes.
///
/// The segments whose part of it can be read get it, the others stay as they were before it, and all are open again. What was
/// damaged lies in the quarantine of `WORLD/root`. Restore a backup instead if there is one. If nothing is damaged nothing
/// is given up (exit code 1). JSON: `{"carried_out":[{"dimension","x","y","z"}],"lost":[{"segment","what"}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct SetAside {
    #[command(flatten)]
    world: SegmentedArg,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, clap::Args)]
struct SegmentedArg {
    /// The directory of the segmented world, which holds `root` and `segments`.
    #[arg(value_name = "WORLD", value_hint = ValueHint::DirPath)]
    path: PathBuf,
}

#[derive(Debug, clap::Args)]
struct SegmentArg {
    #[command(flatten)]
    dimension: DimensionArg,
    /// The place of the segment, in segments.
    #[arg(long, num_args = 3, value_names = ["X", "Y", "Z"], allow_negative_numbers = true, required = true)]
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

/// What became of a promotion.
#[derive(Debug, Serialize)]
struct Aside {
    carried_out: Vec<Line>,
    lost: Vec<Lost>,
}

#[derive(Debug, Serialize)]
struct Lost {
    /// `None` if that is not known.
    segment: Option<Line>,
    what: String,
}

#[derive(Debug, Serialize)]
struct Done {
    done: &'static str,
    segment: Line,
}

impl SegmentedArg {
    fn open(&self) -> Result<SegmentedWorld<OnDisk>, Failure> {
        let options = SegmentOptions { world: options(), ..SegmentOptions::default() };
        Ok(SegmentedWorld::open(&self.path, &[], &options)?)
    }
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, out),
        Command::Compact(args) => {
            let world = args.world.open()?;
            let segment = args.segment.find(&world)?;
            world.compact_segment(segment)?;
            done(&world, "compacted", segment, out)
        }
        Command::Delete(args) => {
            let world = args.world.open()?;
            let segment = args.segment.find(&world)?;
            args.yes.confirm(&format!("{segment} would be deleted with everything in it"))?;
            world.delete_segment(segment)?;
            done(&world, "deleted", segment, out)
        }
        Command::SetAside(args) => set_aside(args, out),
    }
}

fn set_aside(args: &SetAside, out: &Output) -> Result<Outcome, Failure> {
    args.yes.confirm("what is damaged of a promotion would never come into its segments")?;
    let world = args.world.open()?;
    let found = world.set_aside_promotion()?;
    let is_done = found.is_some();
    let PromotionInPart { carried_out, lost } =
        found.unwrap_or(PromotionInPart { carried_out: Vec::new(), lost: Vec::new() });
    let aside = Aside {
        carried_out: carried_out.into_iter().map(|segment| line(&world, segment)).collect(),
        lost: lost
            .into_iter()
            .map(|(segment, what)| Lost { segment: segment.map(|segment| line(&world, segment)), what })
            .collect(),
    };
    world.close()?;
    out.print(&aside)?;
    Ok(Outcome::good_if(is_done))
}

fn list(args: &List, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open()?;
    let segments = world.segments().into_iter().map(|segment| line(&world, segment)).collect();
    let report = Report { side_chunks: world.side_chunks(), segments };
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::Good)
}

fn done(
    world: &SegmentedWorld<OnDisk>,
    done: &'static str,
    segment: SegmentPos,
    out: &Output,
) -> Result<Outcome, Failure> {
    let segment = line(world, segment);
    world.close()?;
    out.print(&Done { done, segment })?;
    Ok(Outcome::Good)
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

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lost.is_empty() {
            return writeln!(f, "nothing of a promotion is damaged, and nothing was given up");
        }
        for segment in &self.carried_out {
            writeln!(f, "{segment} has its part")?;
        }
        for Lost { segment, what } in &self.lost {
            match segment {
                Some(segment) => writeln!(f, "{segment} is as it was before: {what}")?,
                None => writeln!(f, "a segment is as it was before: {what}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} {} {} of {}", self.x, self.y, self.z, self.dimension)
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.segment, self.done)
    }
}
