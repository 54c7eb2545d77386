//! `cg-demo [SAVE]`: a world that one can look at, made from a seed or imported from a save.
//!
//! A generated world is stored, closed, opened again, compared block by block with a second generation, verified and
//! summed up. What was made stays there, so that `cg` can be tried on it.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the demonstration speaks to a person")]

use std::cmp::Reverse;
use std::error::Error;
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cg_anvil::import::{ImportOptions, import};
use cg_anvil::new_file::NewFile;
use cg_bench::compare::compare;
use cg_bench::fill::fill;
use cg_bench::survey::Survey;
use cg_bench::world::{Generator, Scene};
use cg_format::{ChunkBox, ChunkPos};
use cg_map::{MapOptions, render};
use cg_registry::ListKind;
use cg_store::verify::VerifyDepth;
use cg_store::{World, WorldOptions};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Makes a world, stores it, reads it back, and shows what came of it.
#[derive(Debug, Parser)]
#[command(name = "cg-demo", version)]
struct Options {
    /// A save to import, instead of a world from the seed: a folder, a folder of region files, or one such file.
    save: Option<PathBuf>,
    /// Where the world and the maps go: an empty or missing directory. A new temporary one if left out.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The seed of the generated world.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Columns of chunks along each side of the generated world.
    #[arg(long, default_value_t = if cfg!(debug_assertions) { 8 } else { 32 }, value_parser = clap::value_parser!(u32).range(1..=4096))]
    side: u32,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cg-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let out = match &options.out {
        Some(out) => out.clone(),
        None => tempfile::Builder::new().prefix("cherrygrove-demo-").tempdir()?.keep(),
    };
    let dir = out.join("world");
    let world = match &options.save {
        Some(save) => import_save(save, &dir)?,
        None => generate(options, &dir)?,
    };
    println!("\n{}", Survey::of(&world)?);
    draw_maps(&world, &out)?;
    println!("The world lies in {}.", dir.display());
    Ok(world.close()?)
}

/// Imports a save into a new world, and opens that again.
fn import_save(save: &Path, dir: &Path) -> Result<World, Box<dyn Error>> {
    let world = World::builder().options(&WorldOptions::process()).create(dir)?;
    let (report, time) = timed("importing", 0, |bar| {
        import(save, &world, &ImportOptions::default(), |progress| bar.set_position(progress.columns))
    });
    let report = report?;
    world.close()?;
    drop(world);
    println!(
        "imported {} columns, {} chunks and {} entities in {time:.1?}",
        report.imported_columns, report.imported_chunks, report.entities
    );
    for unreadable in &report.unreadable {
        let slot = unreadable.slot.map_or(String::new(), |slot| format!(", slot {slot}"));
        println!("not readable: {}{slot}: {}", unreadable.file, unreadable.reason);
    }
    if report.unlisted.unreadable > 0 {
        println!("not readable: {} more", report.unlisted.unreadable);
    }
    let world = World::builder().options(&WorldOptions::process()).open(dir)?;
    verify(&world, report.imported_chunks)?;
    Ok(world)
}

/// Draws every dimension that has chunks as the tool `cg` does: the one with the most as `map.png`, the others as
/// `map-2.png` and so on.
fn draw_maps(world: &World, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut dimensions: Vec<_> =
        world.tiers().census()?.dimensions.into_iter().filter(|(_, chunks)| *chunks > 0).collect();
    dimensions.sort_by_key(|(dimension, chunks)| (Reverse(*chunks), *dimension));
    let catalog = world.catalog();
    for (index, (dimension, _)) in dimensions.into_iter().enumerate() {
        let (map, _) = timed("drawing", 100, |bar| {
            render(world, &MapOptions::of(dimension), |share| bar.set_position((share * 100.0) as u64))
        });
        let map = map?;
        let png = out.join(if index == 0 { "map.png".into() } else { format!("map-{}.png", index + 1) });
        let mut file = BufWriter::new(NewFile::create(&png)?);
        map.image.write_png(&mut file)?;
        file.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
        let name = catalog.list(ListKind::Dimensions).name(dimension.get());
        println!("map of {}: {}", name.map_or("?", |name| name.as_str()), png.display());
    }
    Ok(())
}

/// Stores a generated world, and proves that it came back.
fn generate(options: &Options, dir: &Path) -> Result<World, Box<dyn Error>> {
    let side = i64::from(options.side);
    let corner = |from, y| ChunkPos::new(from, y, from);
    let area = ChunkBox::new(
        corner(-side / 2, Generator::BOTTOM_CHUNK_Y)?,
        corner(side - side / 2 - 1, Generator::TOP_CHUNK_Y)?,
    );
    let count = area.count() as u64;
    let world_options = WorldOptions::process();

    let world = World::builder().options(&world_options).create(dir)?;
    let generator = Generator::in_world(Scene::Hills, options.seed, &world)?;
    let (stored, time) =
        timed("storing", count, |bar| fill(&world, &generator, area, |at| bar.set_position(at)));
    stored?;
    world.close()?;
    drop(world);
    println!("stored   {count} chunks in {}", rate(count, time));

    let world = World::builder().options(&world_options).open(dir)?;
    let generator = Generator::in_world(Scene::Hills, options.seed, &world)?;
    let (compared, time) =
        timed("comparing", count, |bar| compare(&world, &generator, area, |at| bar.set_position(at)));
    let equal = compared?.map_err(|difference| format!("the world did not come back: {difference}"))?;
    println!(
        "compared {} blocks, {} above them, {} components, {} entities, {} sides: all equal, in {}",
        equal.blocks,
        equal.upper_blocks,
        equal.components,
        equal.entities,
        equal.sides,
        rate(count, time)
    );
    verify(&world, count)?;
    Ok(world)
}

/// Looks at every row of the store.
fn verify(world: &World, chunks: u64) -> Result<(), Box<dyn Error>> {
    let (report, time) =
        timed("verifying", chunks, |bar| world.verify(VerifyDepth::Full, |rows| bar.set_position(rows)));
    let report = report?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{} things are wrong, the first: {}", report.findings.len(), finding.what).into());
    }
    let found = report.checked.get("chunks").copied().unwrap_or(0);
    if found != chunks {
        return Err(format!("{found} chunks are stored, {chunks} were put there").into());
    }
    println!("verified {} rows in {time:.1?}: nothing is wrong", report.checked.values().sum::<u64>());
    Ok(())
}

/// Runs a step under a progress bar.
fn timed<T>(what: &'static str, count: u64, step: impl FnOnce(&ProgressBar) -> T) -> (T, Duration) {
    let style = ProgressStyle::with_template("{msg:>10} {wide_bar} {pos}/{len} {eta}");
    let bar = ProgressBar::new(count).with_message(what);
    bar.set_style(style.expect("the template is sound"));
    let start = Instant::now();
    let value = step(&bar);
    bar.finish_and_clear();
    (value, start.elapsed())
}

fn rate(count: u64, time: Duration) -> String {
    format!("{time:.1?} ({:.0} chunks per second, generation included)", count as f64 / time.as_secs_f64())
}
