//! Loads from each tier: an area that a player sees, and single chunks.

use cg_bench::order::shuffle;
use cg_bench::stored::{Contents, Stored, world_options};
use cg_engine::conformance::Counter;
use cg_format::{ChunkAt, Tier};
use cg_postgres::{Options, PostgresEngine};
use cg_store::World;

use crate::bench::Bench;
use crate::database::Network;
use crate::failure::Failure;
use crate::row::{Bound, Row, ms};
use crate::sample::Sample;

/// Loads of the area, and of single chunks, that are measured.
const AREAS: usize = 21;
const CHUNKS: usize = 400;

/// A tier, and the round trips that an area of it may take.
const TIERS: [(Tier, &str, u32); 3] = [(Tier::L0, "hot", 1), (Tier::L1, "warm", 2), (Tier::L2, "cold", 3)];

/// Measures areas of 11×11 columns of 24 chunks, and single chunks. Nothing is kept in memory between two loads.
///
/// # Errors
/// Of the database.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (tier, name, trips) in TIERS {
        let stored = Stored::new(&Contents::Hills, tier);
        let world = stored.open();
        copy(&world, &bench.database.over(std::time::Duration::ZERO)?, name)?;
        let mut rocks = Sample::default();
        for _ in 0..bench.times(AREAS) {
            load_area(&stored, |area| rocks.measure_alone(|| world.load_many(area)))?;
        }
        drop(world);
        for delay in Bench::delays() {
            let network = bench.database.over(delay)?;
            let (engine, counter) = network.open(name)?;
            let world = World::builder().options(&world_options(tier)).open_over(engine)?;
            let mut areas = Sample::default();
            for _ in 0..bench.times(AREAS) {
                load_area(&stored, |area| areas.measure(&network, &counter, || world.load_many(area)))?;
            }
            let (what, own) =
                (format!("area 11×11×24, {name}"), ("", ms(if tier == Tier::L0 { 25.0 } else { 3.0 })));
            let reference = ("RocksDB", rocks.time(50.0));
            let parts = if tier == Tier::L0 { vec![own] } else { vec![reference, own] };
            rows.push(Row::of(&what, delay, &mut areas, Some(Bound::trips(delay, trips, &parts))));
            let bound = match tier {
                Tier::L0 => Some(Bound::trips(delay, 1, &[("", ms(0.2))])),
                Tier::L1 => None,
                Tier::L2 => Some(Bound::trips(delay, 2, &[("", ms(0.5))])),
            };
            let mut chunks = load_chunks(bench, &stored, &world, &network, &counter)?;
            rows.push(Row::of(&format!("one chunk, {name}"), delay, &mut chunks, bound));
            world.close()?;
        }
    }
    Ok(rows)
}

/// Copies a world into a new one of the database.
fn copy(world: &World, network: &Network<'_>, name: &str) -> Result<(), Failure> {
    let engine = PostgresEngine::create(&network.address(name)?, &Options::default())?;
    World::builder().copy_over(world, &engine, |_| {})?;
    Ok(())
}

/// Loads the area, and sees that all of it is there.
fn load_area(
    stored: &Stored,
    load: impl FnOnce(&[ChunkAt]) -> Vec<Result<Option<std::sync::Arc<cg_format::Chunk>>, cg_store::Error>>,
) -> Result<(), Failure> {
    let area: Vec<_> = stored.view.iter().map(|pos| stored.at(pos)).collect();
    for (at, found) in area.iter().zip(load(&area)) {
        found?.ok_or_else(|| format!("{at} is absent"))?;
    }
    Ok(())
}

fn load_chunks(
    bench: &Bench,
    stored: &Stored,
    world: &World,
    network: &Network<'_>,
    counter: &Counter,
) -> Result<Sample, Failure> {
    let mut area: Vec<_> = stored.view.iter().map(|pos| stored.at(pos)).collect();
    shuffle(&mut area, 7);
    let mut sample = Sample::default();
    for at in area.into_iter().take(bench.times(CHUNKS)) {
        sample.measure(network, counter, || world.load(at))?.ok_or_else(|| format!("{at} is absent"))?;
    }
    Ok(sample)
}
