//! Commits: one at a time, submitted, in runs, and of many worlds.

use std::thread;
use std::time::{Duration, Instant};

use cg_bench::world::{Generator, Scene};
use cg_format::{ChunkAt, ChunkPos};
use cg_registry::Name;
use cg_store::{Error, Property, World, WorldOptions, WriteBatch};

use crate::bench::Bench;
use crate::database::Network;
use crate::disk::fdatasync;
use crate::failure::Failure;
use crate::row::{Bound, Row, ms};
use crate::sample::Sample;

/// Commits and calls of `fdatasync` that are measured.
const COMMITS: usize = 300;
/// Chunks that are submitted.
const SUBMITTED: usize = 4000;
/// Commits that are queued and written in runs.
const QUEUED: usize = 20_000;
/// Different keys of commits, so that a run does not end in one row.
const KEYS: usize = 1000;
/// Worlds that commit at the same time, and how long.
const WORLDS: usize = 16;
const TOGETHER: Duration = Duration::from_secs(5);

/// Measures commits.
///
/// # Errors
/// Of the database.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        let network = bench.database.over(delay)?;
        rows.push(one_by_one(bench, &network)?);
        rows.push(submitted(bench, &network)?);
        rows.push(in_runs(bench, &network)?);
        rows.push(of_many_worlds(bench, &network)?);
    }
    // Together by what is measured.
    rows.sort_by_key(|row| row.what.clone());
    Ok(rows)
}

fn named(what: &str, network: &Network<'_>) -> String {
    format!("{what} {}", network.delay.as_micros())
}

/// A property that no other one of this many shares its row with.
fn property(n: usize) -> Result<Property, Failure> {
    Ok(Property::Named(format!("bench:{}", n % KEYS).parse::<Name>()?))
}

/// Bytes that no compression makes shorter.
fn noise(len: usize, seed: usize) -> Vec<u8> {
    let mut bits = seed as u64 | 1;
    let mut next = || {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (bits >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn put(world: &World, property: &Property, bytes: Vec<u8>) -> Result<(), Error> {
    let put = world.transaction(|tx| {
        tx.set_property(property.clone(), Some(bytes));
        Ok::<_, Error>(())
    });
    put.map(drop)
}

fn one_by_one(bench: &Bench, network: &Network<'_>) -> Result<Row, Failure> {
    let (engine, counter) = network.create(&named("commits", network))?;
    let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
    let disk = fdatasync(&bench.options.disk, bench.times(COMMITS))?;
    let mut sample = Sample::default();
    for n in 0..bench.times(COMMITS) {
        let (property, bytes) = (property(n)?, noise(4096, n));
        sample.measure(network, &counter, || put(&world, &property, bytes))?;
    }
    world.close()?;
    let bound = Bound::trips(network.delay, 1, &[("", ms(4.0)), ("fdatasync", disk)]);
    Ok(Row::of("commit of 4 kB, `Safe`", network.delay, &mut sample, Some(bound)))
}

fn submitted(bench: &Bench, network: &Network<'_>) -> Result<Row, Failure> {
    let (engine, counter) = network.create(&named("submitted", network))?;
    let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
    let generator = Generator::in_world(Scene::Hills, 7, &world)?;
    let count = bench.times(SUBMITTED);
    let places = (0..count as i64).map(|n| ChunkPos::new(n % 64, n / 64 % 8 - 4, n / 512));
    let batches = places.map(|pos| {
        let pos = pos?;
        let mut batch = WriteBatch::new();
        batch.save(ChunkAt::new(generator.dimension(), pos), generator.chunk(pos).chunk_without_entities());
        Ok(batch)
    });
    let batches = batches.collect::<Result<Vec<_>, Failure>>()?;
    let (calls, begun) = (counter.calls(), Instant::now());
    for mut batch in batches {
        while let Err(refused) = world.submit(batch) {
            if !matches!(refused.error, Error::Busy { .. }) {
                return Err(refused.error.into());
            }
            world.wait_for_room()?;
            batch = refused.batch;
        }
    }
    world.flush()?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    let calls = (counter.calls() - calls).all();
    world.close()?;
    let least = (network.delay >= ms(1.0)).then_some(2000.0);
    let what = format!("`submit` of {count} single new chunks");
    Ok(Row { calls: Some(calls), ..Row::rate(&what, network.delay, rate, "/s", least) })
}

fn in_runs(bench: &Bench, network: &Network<'_>) -> Result<Row, Failure> {
    let (engine, counter) = network.create(&named("runs", network))?;
    let world = World::builder().options(&WorldOptions::balanced()).create_over(engine)?;
    let count = bench.times(QUEUED);
    let properties = (0..KEYS).map(property).collect::<Result<Vec<_>, _>>()?;
    let (calls, begun) = (counter.calls(), Instant::now());
    for n in 0..count {
        put(&world, &properties[n % KEYS], noise(100, n))?;
    }
    world.flush()?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    let calls = (counter.calls() - calls).all();
    world.close()?;
    let what = format!("{count} commits of 100 bytes in runs, one world");
    Ok(Row { calls: Some(calls), ..Row::rate(&what, network.delay, rate, "commits/s", Some(5000.0)) })
}

fn of_many_worlds(bench: &Bench, network: &Network<'_>) -> Result<Row, Failure> {
    let mut worlds = Vec::new();
    for n in 0..WORLDS {
        let (engine, _) = network.create(&named(&format!("many {n}"), network))?;
        worlds.push(World::builder().options(&WorldOptions::safe()).create_over(engine)?);
    }
    let time = if bench.options.quick { TOGETHER / 5 } else { TOGETHER };
    let begun = Instant::now();
    let counts: Vec<Result<u64, String>> = thread::scope(|scope| {
        let committing = worlds.iter().map(|world| {
            scope.spawn(move || {
                let mut count = 0;
                while begun.elapsed() < time {
                    let property = property(count).map_err(|error| error.to_string())?;
                    put(world, &property, noise(100, count)).map_err(|error| error.to_string())?;
                    count += 1;
                }
                Ok(count as u64)
            })
        });
        let committing: Vec<_> = committing.collect();
        committing
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("panicked".into())))
            .collect()
    });
    let spent = begun.elapsed().as_secs_f64();
    let count = counts.into_iter().sum::<Result<u64, _>>()?;
    worlds.iter().try_for_each(World::close)?;
    let what = format!("one commit a call, {WORLDS} worlds");
    Ok(Row::rate(&what, network.delay, count as f64 / spent, "commits/s", Some(2000.0)))
}
