//! An hour of a server, played on a world whose chunks move and on RocksDB with one key per chunk.
//!
//! The trace is a synthetic town: twenty players live within 150 blocks of each other in a world that was there before,
//! and build. Everything that they ever see is stored first, and both sides are compacted; the world is settled. Then a
//! second of the trace is spread over twenty ticks. Game time passes as fast as the machine can: compactions have less
//! time beside a tick than they would have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::order::percentile;
use cg_bench::raw::{self, family};
use cg_format::{Chunk, ChunkAt, EntityId, Space, Tier};
use cg_store::{World, WorldOptions};
use cg_tiering::synthetic::{Scenario, Synthetic};
use cg_tiering::trace::Event;
use cg_tiering::{GameTick, PlayerAt};

use crate::contents::Contents;
use crate::failure::Failure;
use crate::side::{Flat, Side, Tiered};
use crate::table::{Row, Unit, print};
use cg_bench::process::{Transfer, disk_bytes};

/// The time of a tick that maintenance may take: a tenth of a server's.
const BUDGET: Duration = Duration::from_millis(5);
const DAY: u64 = 24 * 3600 * GameTick::PER_SECOND;
/// The memory that the world may use beside RocksDB's: its decoded chunks. The reference gets as much for its blocks.
const CACHE_BYTES: u64 = 128 << 20;
const ENGINE_BYTES: u64 = 256 << 20;

/// What is played.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Minutes of game time.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// How many players.
    #[arg(long, default_value_t = 20)]
    players: u32,
    /// Where the random numbers of the trace start.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// What the players do.
    #[arg(long, default_value = "town", value_parser = scenario)]
    scenario: Scenario,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    Scenario::from_name(name)
        .ok_or_else(|| "not one of explorers, town, mine, admin, spread, fliers".to_owned())
}

/// Results of a side.
struct Played {
    ticks: Vec<Duration>,
    transfer: Transfer,
    disk_before_bytes: u64,
    disk_bytes: u64,
    loaded: u64,
    saved_bytes: u64,
}

/// Plays both sides and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let trace = Synthetic {
        players: options.players,
        minutes: options.minutes,
        ..Synthetic::new(options.scenario, options.seed)
    };
    let known: BTreeSet<ChunkAt> = trace
        .events()
        .filter_map(|event| match event {
            Event::Load { chunk, len_bytes } if len_bytes > 0 => Some(chunk),
            _ => None,
        })
        .collect();
    let home = tempfile::Builder::new().prefix("cg-hour-").tempdir()?;
    let [tiered, flat] = ["tiered", "flat"].map(|name| home.path().join(name));
    let world_options =
        WorldOptions { cache_bytes: CACHE_BYTES, engine_bytes: ENGINE_BYTES, ..WorldOptions::process() };

    let world = World::builder().options(&world_options).create(&flat)?;
    let contents = Contents::in_world(&world)?;
    drop(world);
    // Opened again, as the options that RocksDB records while it makes files are for making them.
    World::builder().options(&world_options).open(&flat)?.close()?;
    let schema = contents.schema();
    let mut side = Flat { raw: raw::open(&flat, (CACHE_BYTES + ENGINE_BYTES / 4 * 3) as usize)?, schema };
    fill(&mut side, &contents, &known)?;
    side.raw.compact_range_cf(family(&side.raw, Space::ChunkL0), None::<&[u8]>, None::<&[u8]>);
    side.close()?;
    let raw = raw::open(&flat, (CACHE_BYTES + ENGINE_BYTES / 4 * 3) as usize)?;
    let (reference, last) = play(Flat { raw, schema }, trace, &contents, &flat, &mut |_| Ok(()))?;
    eprintln!("one key per chunk: {:.1?} of work", reference.ticks.iter().sum::<Duration>());

    let world = World::builder().options(&world_options).create(&tiered)?;
    let contents = Contents::in_world(&world)?;
    let mut side = Tiered::new(world, BUDGET);
    fill(&mut side, &contents, &known)?;
    side.world.tiers().demote_all(DAY, |_| {})?;
    side.close()?;
    side = Tiered::new(World::builder().options(&world_options).open(&tiered)?, BUDGET);
    let (ours, _) = play(side, trace, &contents, &tiered, &mut |side| {
        let census = side.world.tiers().census()?;
        let tiers = Tier::ALL.map(|tier| census.tier(tier).chunks);
        eprintln!("hot, warm and cold chunks at the end: {tiers:?}; moves: {:?}", side.moves);
        let over = side.world.metrics().tick_excess;
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| over.quantile(part));
        println!("\nTicks over their budget of {BUDGET:?}: p50 {p50:?}, p99 {p99:?}, max {max:?}.");
        same(&side.world, &last)
    })?;
    eprintln!("a world: {:.1?} of work", ours.ticks.iter().sum::<Duration>());
    println!(
        "\n{} of {} players, {} minutes; {} chunks there before, {} loaded, {:.1} MB of chunks saved:\n",
        trace.scenario.name(),
        trace.players,
        trace.minutes,
        known.len(),
        ours.loaded,
        ours.saved_bytes as f64 / 1e6
    );
    print("one key per chunk", "a world that moves its chunks", &rows(reference, ours));
    Ok(())
}

fn rows(mut reference: Played, mut ours: Played) -> Vec<Row> {
    let amplification = |side: &Played| side.transfer.written_bytes as f64 / side.saved_bytes as f64;
    let row = |what: &str, unit, reference: f64, ours: f64| Row {
        what: what.to_owned(),
        unit,
        reference,
        ours,
        aim: None,
    };
    let mut rows = vec![
        row("on disk before", Unit::Bytes, reference.disk_before_bytes as f64, ours.disk_before_bytes as f64),
        row("on disk after", Unit::Bytes, reference.disk_bytes as f64, ours.disk_bytes as f64),
        row(
            "written to files",
            Unit::Bytes,
            reference.transfer.written_bytes as f64,
            ours.transfer.written_bytes as f64,
        ),
        row(
            "read from files",
            Unit::Bytes,
            reference.transfer.read_bytes as f64,
            ours.transfer.read_bytes as f64,
        ),
        row("write amplification", Unit::Plain, amplification(&reference), amplification(&ours)),
    ];
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)] {
        let of = |ticks: &mut Vec<Duration>| percentile(ticks, percent).as_nanos() as f64;
        rows.push(row(
            &format!("tick, {name}"),
            Unit::Nanoseconds,
            of(&mut reference.ticks),
            of(&mut ours.ticks),
        ));
    }
    rows
}

/// Stores every chunk as it was before the hour.
fn fill(side: &mut impl Side, contents: &Contents, known: &BTreeSet<ChunkAt>) -> Result<(), Failure> {
    let all: Vec<_> = known.iter().copied().collect();
    for together in all.chunks(512) {
        let chunks: Vec<_> = together.iter().map(|at| (*at, contents.chunk(at.pos, 0))).collect();
        side.save(&chunks)?;
    }
    Ok(())
}

/// The stored content of each chunk that was saved.
type Saved = HashMap<ChunkAt, Arc<Chunk>>;

/// Plays the trace: a second of it is spread over the ticks of a second.
fn play<S: Side>(
    mut side: S,
    trace: Synthetic,
    contents: &Contents,
    dir: &Path,
    at_the_end: &mut impl FnMut(&S) -> Result<(), Failure>,
) -> Result<(Played, Saved), Failure> {
    let (disk_before_bytes, before) = (disk_bytes(dir)?, Transfer::so_far()?);
    let (mut loaded, mut saved_bytes, mut ticks) = (0, 0, Vec::new());
    let (mut saved, mut changes) = (Saved::new(), HashMap::<ChunkAt, u64>::new());
    let mut players = BTreeMap::<EntityId, PlayerAt>::new();
    let mut events = trace.events().peekable();
    let mut second = GameTick::default();
    while events.peek().is_some() {
        // Players first, then the second's loads and saves, in their order.
        let mut asked = Vec::new();
        while let Some(event) = events.next() {
            match event {
                Event::Tick(now) => second = now,
                Event::Player(player) => drop(players.insert(player.id, player)),
                Event::Leave(id) => drop(players.remove(&id)),
                event @ (Event::Load { .. } | Event::Save { .. }) => asked.push(event),
                _ => {}
            }
            if let Some(Event::Tick(_)) = events.peek() {
                break;
            }
        }
        let players: Vec<_> = players.values().copied().collect();
        let per_tick = asked.len().div_ceil(GameTick::PER_SECOND as usize).max(1);
        let mut slices = asked.chunks(per_tick);
        for tick in 0..GameTick::PER_SECOND {
            let (mut loads, mut built) = (Vec::new(), Vec::new());
            for event in slices.next().unwrap_or_default() {
                match *event {
                    Event::Load { chunk, len_bytes } if len_bytes > 0 => loads.push(chunk),
                    Event::Save { chunk, .. } => {
                        let count = changes.entry(chunk).or_default();
                        *count += 1;
                        let content = contents.chunk(chunk.pos, *count);
                        saved_bytes += content.to_bytes().len() as u64;
                        saved.insert(chunk, Arc::clone(&content));
                        built.push((chunk, content));
                    }
                    _ => {}
                }
            }
            let start = Instant::now();
            let found = side.load(&loads)?;
            side.save(&built)?;
            side.tick(GameTick::new(second.get() + tick), &players)?;
            ticks.push(start.elapsed());
            if found < loads.len() {
                return Err(format!("{} of {} chunks are missing", loads.len() - found, loads.len()).into());
            }
            loaded += found as u64;
        }
    }
    at_the_end(&side)?;
    side.close()?;
    let transfer = Transfer::so_far()?.since(before);
    Ok((
        Played { ticks, transfer, disk_before_bytes, disk_bytes: disk_bytes(dir)?, loaded, saved_bytes },
        saved,
    ))
}

/// Makes sure that the world holds what the reference was given last.
fn same(world: &World, saved: &Saved) -> Result<(), Failure> {
    for (at, chunk) in saved {
        if world.load(*at)?.as_ref() != Some(chunk) {
            return Err(format!("{at} is not what was saved last").into());
        }
    }
    Ok(())
}
