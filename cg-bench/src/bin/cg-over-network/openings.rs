//! Copies into the database, and openings of what was copied and of new worlds.

use std::path::Path;
use std::time::Instant;

use cg_anvil::import::{ImportOptions, import};
use cg_bench::fill::fill;
use cg_bench::world::{Generator, Scene};
use cg_engine::conformance::Counter;
use cg_format::{ChunkBox, ChunkPos};
use cg_postgres::{Options, PostgresEngine};
use cg_store::{World, WorldOptions};

use crate::bench::Bench;
use crate::database::Network;
use crate::failure::Failure;
use crate::row::{Bound, Row, ms};
use crate::sample::Sample;

/// The real save that is copied and opened if it is there, of 13,488 chunks.
const SAVE: &str = "1.18.2_querz_terrain_r.0.0.mca";
/// Openings that are measured.
const OPENINGS: usize = 10;

/// Measures copies and openings.
///
/// # Errors
/// Of the database.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let dir = tempfile::tempdir()?;
    let create =
        |name: &str| World::builder().options(&WorldOptions::process()).create(dir.path().join(name));
    let (world, large) = (create("world")?, create("large")?);
    fill_as_a_save(&world)?;
    // A save is two parts of a copy, and what is before and after them counts as much.
    let half = if bench.options.quick { 12 } else { 24 };
    fill_by(
        &large,
        ChunkBox::new(ChunkPos::constant(-half, -12, -half), ChunkPos::constant(half - 1, 11, half - 1)),
    )?;
    world.flush()?;
    large.flush()?;
    let chunks = count(&world)?;
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        let network = bench.database.over(delay)?;
        let copied = format!("copied {}", delay.as_micros());
        rows.push(copy_in(&world, &network, &copied)?);
        let name = format!("large {}", delay.as_micros());
        rows.push(copy_in(&large, &network, &name)?);
        rows.push(copy_out(&network, &name, &dir.path().join(&name))?);

        let (mut opened, mut made) = (Sample::default(), Sample::default());
        for n in 0..bench.times(OPENINGS).max(3) {
            let none = Counter::default();
            let (world, calls) = opened.measure(&network, &none, || {
                let (engine, counter) = network.open(&copied)?;
                let world = World::builder().options(&WorldOptions::safe()).open_over(engine)?;
                Ok::<_, Failure>((world, counter.calls().all()))
            })?;
            opened.add_calls(calls);
            world.close()?;
            let (world, calls) = made.measure(&network, &none, || {
                let (engine, counter) = network.create(&format!("made {} {n}", delay.as_micros()))?;
                let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
                Ok::<_, Failure>((world, counter.calls().all()))
            })?;
            made.add_calls(calls);
            world.close()?;
        }
        let what = format!("open a world of {chunks} chunks");
        rows.push(Row::of(&what, delay, &mut opened, Some(Bound::trips(delay, 12, &[("", ms(60.0))]))));
        rows.push(Row::of(
            "make a world",
            delay,
            &mut made,
            Some(Bound::trips(delay, 15, &[("", ms(80.0))])),
        ));
    }
    rows.sort_by_key(|row| row.what.clone());
    Ok(rows)
}

fn count(world: &World) -> Result<u64, Failure> {
    let census = world.tiers().census()?;
    Ok(cg_format::Tier::ALL.into_iter().map(|tier| census.tier(tier).chunks).sum())
}

/// A copy into the database.
fn copy_in(world: &World, network: &Network<'_>, name: &str) -> Result<Row, Failure> {
    let engine = PostgresEngine::create(&network.address(name)?, &Options::default())?;
    let begun = Instant::now();
    let len_bytes = World::builder().copy_over(world, &engine, |_| {})?.len_bytes;
    let megabytes = len_bytes as f64 / 1e6;
    let rate = megabytes / begun.elapsed().as_secs_f64();
    let what = format!("copy of {} chunks in, {megabytes:.0} MB", count(world)?);
    Ok(Row::rate(&what, network.delay, rate, "MB/s", Some(20.0)))
}

/// A copy into a directory.
fn copy_out(network: &Network<'_>, name: &str, dir: &Path) -> Result<Row, Failure> {
    let engine = PostgresEngine::open_read_only(&network.address(name)?, &Options::default())?;
    let world = World::builder().open_read_only_over(engine)?;
    let begun = Instant::now();
    let len_bytes = World::builder().copy_to(&world, dir, |_| {})?.len_bytes;
    let megabytes = len_bytes as f64 / 1e6;
    let rate = megabytes / begun.elapsed().as_secs_f64();
    let what = format!("copy of {} chunks out, {megabytes:.0} MB", count(&world)?);
    Ok(Row::rate(&what, network.delay, rate, "MB/s", None))
}

/// Fills a world with the real save, or with as many generated chunks.
fn fill_as_a_save(world: &World) -> Result<(), Failure> {
    let saves = cg_bench::saves::regions("a copy of a real save").unwrap_or_default();
    if let Some(save) = saves.iter().find(|save| save.ends_with(SAVE)) {
        import(save, world, &ImportOptions::default(), |_| {})?;
        return Ok(());
    }
    fill_by(world, ChunkBox::new(ChunkPos::constant(-12, -12, -12), ChunkPos::constant(11, 11, 11)))
}

/// Fills a world with generated chunks.
fn fill_by(world: &World, area: ChunkBox) -> Result<(), Failure> {
    let generator = Generator::in_world(Scene::Hills, 7, world)?;
    fill(world, &generator, area, |_| {})?;
    Ok(())
}
