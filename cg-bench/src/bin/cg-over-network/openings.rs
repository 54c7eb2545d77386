//! Copies into the database, and openings of what was copied and of new worlds.

use std::time::Instant;

use cg_bench::fill::fill;
use cg_bench::world::{Generator, Scene};
use cg_cli::import::{ImportOptions, import};
use cg_engine::conformance::Counter;
use cg_format::{ChunkBox, ChunkPos};
use cg_postgres::{Options, PostgresEngine};
use cg_store::{World, WorldOptions};

use crate::bench::Bench;
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
    let world = World::builder().options(&WorldOptions::process()).create(dir.path().join("world"))?;
    fill_as_a_save(&world)?;
    world.flush()?;
    let chunks: u64 = {
        let census = world.tiers().census()?;
        cg_format::Tier::ALL.into_iter().map(|tier| census.tier(tier).chunks).sum()
    };
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        let network = bench.database.over(delay)?;
        let copied = format!("copied {}", delay.as_micros());
        let engine = PostgresEngine::create(&network.address(&copied)?, &Options::default())?;
        let begun = Instant::now();
        let len_bytes = World::builder().copy_over(&world, &engine, |_| {})?.len_bytes;
        let rate = len_bytes as f64 / 1e6 / begun.elapsed().as_secs_f64();
        drop(engine);
        let what = format!("copy of {chunks} chunks in, {:.0} MB", len_bytes as f64 / 1e6);
        rows.push(Row::rate(&what, delay, rate, "MB/s", Some(20.0)));

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

/// Fills a world with the real save, or with as many generated chunks.
fn fill_as_a_save(world: &World) -> Result<(), Failure> {
    let saves = cg_bench::saves::regions("a copy of a real save").unwrap_or_default();
    if let Some(save) = saves.iter().find(|save| save.ends_with(SAVE)) {
        import(save, world, &ImportOptions::default(), |_| {})?;
        return Ok(());
    }
    let generator = Generator::in_world(Scene::Hills, 7, world)?;
    let area = ChunkBox::new(ChunkPos::constant(-12, -12, -12), ChunkPos::constant(11, 11, 11));
    fill(world, &generator, area, |_| {})?;
    Ok(())
}
