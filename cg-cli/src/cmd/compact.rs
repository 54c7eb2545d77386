//! `cg compact`: gives bytes of a world's files back.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::tiers::CompactReport;
use cg_store::view::Area;
use serde::Serialize;

use crate::args::{AreaArg, DimensionArg, WrittenWorldArg};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped};

/// How often the progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// Give back the bytes of what was overwritten, deleted and moved. Writes, but no content is changed.
///
/// First chunks move that are due by the world's own clock; `cg tiers demote` lets time pass. Then the files are rewritten, slice
/// by slice, where there is something to gain. With --box only those files are rewritten that have chunks of the boxes. It may be
/// killed at any moment: the world is sound, and another run goes on. JSON: `{"before_bytes","after_bytes","freed_bytes","slices",
/// "warmed","cooled","shadows_dropped","tombstones_purged","deltas_folded","refused","skipped_low_disk","skipped_damaged"}`.
/// Exit code 1 if a move was refused, the disk had too little room to move or to rewrite something, or files were left as they are
/// because one of their kind is damaged: `cg verify` names the damage.
///
/// Of a segmented world, which holds `root` and `segments`, all worlds are compacted, one after the other. JSON then has
/// `"segments":N,"failed":[TEXT]` too: what could not be compacted, with exit code 1. --box is refused there:
/// `WORLD/segments/D.X.Y.Z` is a world of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: AreaArg,
}

#[derive(Debug, Serialize)]
struct Report {
    before_bytes: u64,
    after_bytes: u64,
    freed_bytes: u64,
    slices: u64,
    warmed: u64,
    cooled: u64,
    shadows_dropped: u64,
    tombstones_purged: u64,
    deltas_folded: usize,
    refused: u64,
    skipped_low_disk: usize,
    skipped_damaged: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    segmented: Option<Segmented>,
}

/// What else there is to say of a segmented world.
#[derive(Debug, Serialize)]
struct Segmented {
    segments: usize,
    failed: Vec<String>,
}

impl From<CompactReport> for Report {
    fn from(done: CompactReport) -> Self {
        Self {
            before_bytes: done.before_bytes,
            after_bytes: done.after_bytes,
            freed_bytes: done.freed_bytes(),
            slices: done.slices,
            warmed: done.moves.warmed,
            cooled: done.moves.cooled,
            shadows_dropped: done.moves.shadows_dropped,
            tombstones_purged: done.moves.tombstones_purged,
            deltas_folded: done.deltas_folded,
            refused: done.moves.refused,
            skipped_low_disk: done.skipped_low_disk,
            skipped_damaged: done.skipped_damaged,
            segmented: None,
        }
    }
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    args.world.place().directory("a database compacts itself; `cg tiers demote` makes its rows small")?;
    let boxes = args.area.get()?;
    if args.dimension.is_given() && boxes.is_none() {
        return Err(Failure::usage("--dimension needs --box: without it the whole world is compacted"));
    }
    if let Some(path) = args.world.place().segmented() {
        if boxes.is_some() {
            return Err(Failure::usage(
                "--box is of a world that is not segmented; a segment of WORLD/segments is one",
            ));
        }
        return run_segmented(args, path, out);
    }
    let world = args.world.open_for_writing(out)?;
    let area = match &boxes {
        Some(boxes) => Area::Blocks(args.dimension.find(&world.catalog())?, boxes),
        None => Area::World,
    };
    let progress = out.progress("slices rewritten");
    let mut compaction = world.tiers().compaction(area)?;
    let compacted = loop {
        match compaction.run(SHOW_EVERY) {
            Ok(true) => progress.set_position(compaction.report().slices),
            done => break done,
        }
    };
    progress.finish_and_clear();
    compacted?;
    let report = Report::from(compaction.report());
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::good_if(report.is_whole()))
}

fn run_segmented(args: &Args, path: &Path, out: &Output) -> Result<Outcome, Failure> {
    let options = SegmentOptions { world: args.world.options(), ..SegmentOptions::default() };
    let world = args.world.when_free(out, || SegmentedWorld::open(path, &[], &options))?;
    let segments = world.segments().list();
    let progress = out.progress("slices rewritten");
    let mut compaction = world.segments().compaction(segments.iter().copied());
    let mut failed = Vec::new();
    loop {
        let name = compaction.segment().map_or_else(|| "the root".to_owned(), |segment| segment.to_string());
        // One step, of the world that has the name.
        match compaction.run(Duration::ZERO) {
            Ok(true) => progress.set_position(compaction.report().slices),
            Ok(false) => break,
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    progress.finish_and_clear();
    let mut report = Report::from(compaction.report());
    report.segmented = Some(Segmented { segments: segments.len(), failed });
    world.close()?;
    out.print(&report)?;
    Ok(Outcome::good_if(report.is_whole()))
}

impl Report {
    /// Whether nothing was left out.
    fn is_whole(&self) -> bool {
        let failed = self.segmented.as_ref().map_or(0, |segmented| segmented.failed.len());
        self.refused == 0 && self.skipped_low_disk == 0 && self.skipped_damaged == 0 && failed == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} given back: {} before, {} after",
            bytes_text(self.freed_bytes),
            bytes_text(self.before_bytes),
            bytes_text(self.after_bytes)
        )?;
        let [cooled, warmed] = [self.cooled, self.warmed].map(grouped);
        writeln!(
            f,
            "{} of files rewritten; {cooled} chunks moved into cold clusters, {warmed} into warm ones",
            counted(self.slices, "slice")
        )?;
        if self.refused > 0 {
            writeln!(
                f,
                "{} refused: a row is damaged, or a cluster would be too large; `cg verify` tells which",
                counted(self.refused, "move")
            )?;
        }
        if self.skipped_low_disk > 0 {
            writeln!(f, "the disk has too little room to rewrite all files")?;
        }
        write_skipped(self.skipped_damaged, f)?;
        if let Some(Segmented { segments, failed }) = &self.segmented {
            writeln!(f, "of the root and {}", counted(*segments as u64, "segment"))?;
            for failed in failed {
                writeln!(f, "not compacted: {failed}")?;
            }
        }
        Ok(())
    }
}

/// Writes how many kinds of row a compaction left as they are, if it left any.
pub(super) fn write_skipped(skipped_damaged: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let kinds = match skipped_damaged {
        0 => return Ok(()),
        1 => "kind",
        _ => "kinds",
    };
    writeln!(
        f,
        "the files of {skipped_damaged} {kinds} of row were left as they are, because one of them is damaged; `cg verify` tells which"
    )
}
