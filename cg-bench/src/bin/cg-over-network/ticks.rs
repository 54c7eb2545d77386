//! Calls that the thread of a game's tick makes: none of them may wait for the network.

use std::thread;
use std::time::Duration;

use cg_bench::fill::fill;
use cg_bench::world::{Generator, Scene};
use cg_format::{ChunkAt, ChunkBox, ChunkPos};
use cg_store::{World, WorldOptions, WriteBatch};
use cg_tiering::{GameTick, TierPolicy};

use crate::bench::Bench;
use crate::database::Network;
use crate::failure::Failure;
use crate::row::{Bound, Figure, Row, ms};
use crate::sample::Sample;

/// Ticks that are measured, and the game time of each: in all of them chunks fall due for each tier.
const TICKS: usize = 400;
const STEP: u64 = 10 * 60 * GameTick::PER_SECOND;
/// The budget of a tick, and the pause after it.
const BUDGET: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Measures `tick`, `peek` and `submit` while chunks are moved.
///
/// # Errors
/// Of the database, or nothing was moved.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        rows.extend(at(bench, &bench.database.over(delay)?)?);
    }
    rows.sort_by_key(|row| row.what.clone());
    Ok(rows)
}

fn at(bench: &Bench, network: &Network<'_>) -> Result<[Row; 3], Failure> {
    let (engine, counter) = network.create(&format!("ticks {}", network.delay.as_micros()))?;
    let options = WorldOptions { tiers: TierPolicy::network(), ..WorldOptions::balanced() };
    let world = World::builder().options(&options).create_over(engine)?;
    let generator = Generator::in_world(Scene::Hills, 7, &world)?;
    let area = ChunkBox::new(ChunkPos::constant(-4, -4, -4), ChunkPos::constant(7, 7, 7));
    fill(&world, &generator, area, |_| {})?;
    world.flush()?;
    let (mut ticks, mut peeks, mut submits) = (Sample::default(), Sample::default(), Sample::default());
    let mut moved = 0;
    for n in 0..bench.times(TICKS).max(100) {
        let now = GameTick::new((n as u64 + 1) * STEP);
        let (report, calls) = counter.during(|| ticks.measure_alone(|| world.tick(now, &[], BUDGET)));
        moved += report?.moves.moved();
        ticks.add_calls(calls.all());
        let at = ChunkAt::new(generator.dimension(), ChunkPos::new(n as i64 % 12 - 4, 0, 0)?);
        let (_, calls) = counter.during(|| peeks.measure_alone(|| world.peek(at)));
        peeks.add_calls(calls.all());
        let pos = ChunkPos::new(100 + n as i64, 0, 0)?;
        let mut batch = WriteBatch::new();
        batch.save(ChunkAt::new(generator.dimension(), pos), generator.chunk(pos).chunk_without_entities());
        let (submitted, calls) = counter.during(|| submits.measure_alone(|| world.submit(batch)));
        drop(submitted.map_err(|refused| refused.error)?);
        submits.add_calls(calls.all());
        thread::sleep(PAUSE);
    }
    world.close()?;
    if moved == 0 {
        return Err("the ticks moved no chunk, so they are not measured".into());
    }
    let delay = network.delay;
    let bound = Bound::trips(delay, 0, &[("", ms(1.0))]);
    let tick = Figure::Time(ticks.time(99.0));
    let row = |what: &str, mut sample: Sample| {
        let calls = sample.most_calls();
        Row { calls, ..Row::of(what, delay, &mut sample, None) }
    };
    Ok([
        Row { figure: tick, bound: Some(bound), ..row("a tick while chunks move: p99", ticks) },
        row("`peek` meanwhile", peeks),
        row("`submit` meanwhile", submits),
    ])
}
