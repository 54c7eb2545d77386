//! `cg map`: the world from above, as a PNG.

use std::fmt;
use std::path::PathBuf;

use cg_format::BlockArea;
use cg_map::{Colours, MapError, MapOptions, render};
use clap::ValueHint;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::args::{AreaArg, DimensionArg, WorldArg};
use crate::output::{Failure, Outcome, Output, grouped};
use crate::picture::{refuse_existing, save_png};
use crate::shown::shown;

/// Draw the world from above in real colours or by tiers, hill-shaded, with a legend. With --box, only what is in the boxes is drawn, and seen.
///
/// JSON: `{"file","width_px","height_px","min":[X,Z],"max":[X,Z],"scale_blocks","zoom_px","surface":[{"name","columns"}],
/// "unreadable":[…],"unreadable_columns":N}`, and with --tiers `"tiers":{"l0","l1","l2"}` in columns of blocks. Exit code 1
/// if chunks or clusters could not be read: each is listed, and columns of blocks whose ground may be in one are magenta.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// The file to write; it must not exist.
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    #[command(flatten)]
    dimension: DimensionArg,
    #[command(flatten)]
    area: AreaArg,
    /// Blocks per pixel, a power of two [default: as few as keep the map within 4096 pixels].
    #[arg(long, value_name = "BLOCKS")]
    scale: Option<u32>,
    /// Leave title, scale bar and the meaning of the colours out.
    #[arg(long)]
    no_legend: bool,
    /// Colour each column by the tier in which the chunk lies that is seen: red is hot (L0), amber warm (L1), blue cold (L2).
    #[arg(long)]
    tiers: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    file: String,
    width_px: u32,
    height_px: u32,
    min: [i64; 2],
    max: [i64; 2],
    scale_blocks: u32,
    zoom_px: u32,
    surface: Vec<SurfaceReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<TiersReport>,
    unreadable: Vec<String>,
    unreadable_columns: u64,
}

/// Columns of blocks by the tier of what is seen.
#[derive(Debug, Serialize)]
struct TiersReport {
    l0: u64,
    l1: u64,
    l2: u64,
}

#[derive(Debug, Serialize)]
struct SurfaceReport {
    name: String,
    columns: u64,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    refuse_existing(&args.out)?;
    let world = args.world.open(out)?;
    let options = MapOptions {
        dimension: args.dimension.find(&world.catalog())?,
        area: args.area.get()?.unwrap_or_else(BlockArea::everywhere),
        scale_blocks: args.scale,
        legend: !args.no_legend,
        colours: if args.tiers { Colours::Tiers } else { Colours::Blocks },
    };
    let progress: ProgressBar = out.progress_of("percent drawn", 100);
    let map = render(&world, &options, |share| progress.set_position((share * 100.0) as u64));
    progress.finish_and_clear();
    let map = map.map_err(|error| match error {
        MapError::Scale { .. } | MapError::TooLarge { .. } => Failure::usage(error.to_string()),
        other => Failure::failed(other),
    })?;
    save_png(&map.image, &args.out).map_err(|error| Failure::io("write", &args.out, &error))?;
    let surface = map.surface.into_iter();
    let report = Report {
        file: args.out.display().to_string(),
        width_px: map.image.width_px(),
        height_px: map.image.height_px(),
        min: map.min,
        max: map.max,
        scale_blocks: map.scale_blocks,
        zoom_px: map.zoom_px,
        surface: surface.map(|block| SurfaceReport { name: block.name, columns: block.columns }).collect(),
        tiers: match map.tiers[..] {
            [l0, l1, l2] => Some(TiersReport { l0: l0.columns, l1: l1.columns, l2: l2.columns }),
            _ => None,
        },
        unreadable: map.unreadable,
        unreadable_columns: map.unreadable_columns,
    };
    out.print(&report)?;
    Ok(Outcome::good_if(report.unreadable.is_empty()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([west, north], [east, south]) = (self.min, self.max);
        writeln!(f, "{}: {}×{} pixels", self.file, self.width_px, self.height_px)?;
        let scale = match (self.scale_blocks, self.zoom_px) {
            (1, 1) => "one block per pixel".into(),
            (1, zoom) => format!("{zoom} pixels per block"),
            (scale, _) => format!("{} blocks per pixel", grouped(scale.into())),
        };
        writeln!(f, "x {west} to {east}, z {north} to {south}, {scale}")?;
        if let Some(TiersReport { l0, l1, l2 }) = self.tiers {
            let [l0, l1, l2] = [l0, l1, l2].map(grouped);
            writeln!(f, "columns seen: {l0} hot (L0), {l1} warm (L1), {l2} cold (L2)")?;
        }
        for problem in &self.unreadable {
            writeln!(f, "not drawn: {}", shown(problem))?;
        }
        if self.unreadable_columns > 0 {
            let count = grouped(self.unreadable_columns);
            writeln!(f, "columns of blocks marked as unreadable: {count}")?;
        }
        Ok(())
    }
}
