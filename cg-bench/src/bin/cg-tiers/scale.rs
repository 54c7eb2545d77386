//! A large world beside a small one: opening it, holding it in memory, ticking it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cg_bench::order::percentile;
use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};
use cg_store::tiers::MoveCounts;
use cg_store::{Error, World, WorldOptions};
use cg_tiering::{GameTick, PlayerAt};

use crate::contents::Contents;
use crate::failure::Failure;
use crate::table::{Row, Unit, print};
use cg_bench::process::{disk_bytes, resident_bytes};

/// Chunks from bottom to top, as in worlds that people play in.
const HEIGHT: i64 = 24;
const DAY: u64 = 24 * 3600 * GameTick::PER_SECOND;
/// Less than it takes until anything is due.
const TICKS: u64 = 2000;
const AIM: f64 = 1.2;

/// How large.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Chunks of the large world.
    #[arg(long, default_value_t = 1_000_000)]
    large: u64,
    /// Chunks of the small world.
    #[arg(long, default_value_t = 10_000)]
    small: u64,
}

/// What the measuring process is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Measure {
    world: PathBuf,
}

/// Measured figures, in this order, with their units and aims.
const FIGURES: [(&str, Unit, Option<f64>); 8] = [
    ("time to open", Unit::Nanoseconds, Some(AIM)),
    ("resident after opening", Unit::Bytes, Some(AIM)),
    ("idle tick, mean", Unit::Nanoseconds, Some(AIM)),
    ("idle tick, p99", Unit::Nanoseconds, None),
    ("tick with 20 players, mean", Unit::Nanoseconds, Some(AIM)),
    ("tick with 20 players, p99", Unit::Nanoseconds, None),
    ("resident after the ticks", Unit::Bytes, Some(AIM)),
    ("keys that a tick visits, mean", Unit::Plain, None),
];

/// Makes both worlds hot, measures each in a process of its own, settles them and measures again.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("cg-scale-").tempdir()?;
    let mut worlds = Vec::new();
    for chunks in [options.small, options.large] {
        let path = dir.path().join(chunks.to_string());
        let start = Instant::now();
        let chunks = make(&path, chunks)?;
        eprintln!("made {chunks} chunks in {:.0?}", start.elapsed());
        worlds.push((path, chunks));
    }
    let [small, large] = &worlds[..] else { return Err("two worlds were made".into()) };
    for state in ["hot", "cold"] {
        if state == "cold" {
            for (path, chunks) in &worlds {
                let start = Instant::now();
                settle(path)?;
                eprintln!("settled {chunks} chunks in {:.0?}", start.elapsed());
            }
        }
        let [before, after] = [measured(&small.0)?, measured(&large.0)?];
        let figure = |name: &str, of: &BTreeMap<String, f64>| of.get(name).copied().unwrap_or(f64::NAN);
        let mut rows: Vec<_> = FIGURES
            .into_iter()
            .map(|(name, unit, aim)| Row {
                what: name.to_owned(),
                unit,
                reference: figure(name, &before),
                ours: figure(name, &after),
                aim,
            })
            .collect();
        rows.push(Row {
            what: "on disk".to_owned(),
            unit: Unit::Bytes,
            reference: disk_bytes(&small.0)? as f64,
            ours: disk_bytes(&large.0)? as f64,
            aim: None,
        });
        println!("\nAll chunks {state}:\n");
        print(&format!("{} chunks", small.1), &format!("{} chunks", large.1), &rows);
    }
    Ok(())
}

/// A closed world of about this many chunks, all hot.
fn make(path: &Path, chunks: u64) -> Result<u64, Failure> {
    let world = World::builder().options(&WorldOptions::process()).create(path)?;
    let contents = Contents::in_world(&world)?;
    // Whole cubes, so that both worlds have as many rows in each.
    let side = ((chunks as f64 / HEIGHT as f64).sqrt() / 4.0).round().max(1.0) as i64 * 4;
    for x in 0..side {
        let plane: Vec<_> =
            (0..HEIGHT).flat_map(|y| (0..side).map(move |z| ChunkPos::constant(x, y, z))).collect();
        for together in plane.chunks(512) {
            world.transaction(|tx| {
                for pos in together {
                    tx.save(ChunkAt::new(contents.dimension, *pos), contents.chunk(*pos, 0));
                }
                Ok::<_, Error>(())
            })?;
        }
    }
    world.close()?;
    Ok((side * side * HEIGHT) as u64)
}

fn settle(path: &Path) -> Result<(), Failure> {
    let world = World::builder().options(&WorldOptions::process()).open(path)?;
    world.tiers().demote_all(DAY, |_| {})?;
    Ok(world.close()?)
}

/// The figures of a world, measured in a process that has done nothing else.
fn measured(world: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).arg("measure").arg(world).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("measuring {} failed", world.display()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let figure = |line: &str| -> Option<(String, f64)> {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(figure).collect())
}

/// Measures a world and prints `name=value` lines.
pub(crate) fn measure(options: &Measure) -> Result<(), Failure> {
    let open = || World::builder().options(&WorldOptions::process()).open(&options.world);
    // The first reads the files into the system's cache.
    drop(open()?);
    let start = Instant::now();
    let world = open()?;
    let mut opened = vec![start.elapsed()];
    let resident = resident_bytes()?;
    drop(world);
    for _ in 0..6 {
        let start = Instant::now();
        let world = open()?;
        opened.push(start.elapsed());
        drop(world);
    }
    let world = open()?;
    let dimension = world.catalog().dimension("minecraft:overworld").ok_or("the world has no dimension")?;
    let begin = world.tiers().clock().now().get();
    // What is left of making the world is done first.
    ticks(&world, begin, |_| Vec::new())?;
    let before = world.metrics().stats;
    let idle = ticks(&world, begin + 1, |_| Vec::new())?;
    let played = ticks(&world, begin + 1 + TICKS, |tick| players(dimension, tick))?;
    let keys = (world.metrics().stats - before).keys_scanned as f64 / (2 * TICKS) as f64;
    let values = [
        percentile(&mut opened, 50.0).as_nanos() as f64,
        resident as f64,
        idle.0,
        idle.1,
        played.0,
        played.1,
        resident_bytes()? as f64,
        keys,
    ];
    for ((name, ..), value) in FIGURES.iter().zip(values) {
        println!("{name}={value}");
    }
    Ok(world.close()?)
}

/// Ticks in which nothing is due: mean and p99, in nanoseconds.
fn ticks(world: &World, from: u64, players: impl Fn(u64) -> Vec<PlayerAt>) -> Result<(f64, f64), Failure> {
    let mut times = Vec::new();
    for tick in 0..TICKS {
        let players = players(tick);
        let start = Instant::now();
        let report = world.tick(GameTick::new(from + tick), &players, Duration::from_secs(1))?;
        times.push(start.elapsed());
        if report.moves != MoveCounts::default() {
            return Err(format!("nothing is due, yet {:?}", report.moves).into());
        }
    }
    let mean = times.iter().sum::<Duration>().as_nanos() as f64 / TICKS as f64;
    Ok((mean, percentile(&mut times, 99.0).as_nanos() as f64))
}

/// Twenty players that walk about in the corner that both worlds have.
fn players(dimension: Dimension, tick: u64) -> Vec<PlayerAt> {
    let player = |n: i64| {
        let walked = tick as i64 * 4 / GameTick::PER_SECOND as i64;
        let block = BlockPos::new(n * 37 % 200 + walked % 100, 60 + n % 40, n * 53 % 300);
        PlayerAt { id: EntityId::from_bytes([n as u8; 16]), dimension, block }
    };
    (0..20).map(player).collect()
}
