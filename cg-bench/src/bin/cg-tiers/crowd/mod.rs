//! Ten minutes of a crowd, by the clock: fifty players that walk into new land, on a world, on RocksDB and, with the
//! feature `peers`, on LevelDB.
//!
//! What a host does itself, making chunks and changing blocks, is done between the ticks and not measured. A tick is
//! what the store makes its thread wait for: loads, saves, and the world's own work.

#[cfg(feature = "peers")]
mod level;
mod pace;
mod players;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::order::percentile;
use cg_bench::raw;
use cg_format::{Chunk, ChunkAt};
use cg_store::metrics::Metrics;
use cg_store::{PrefetchOptions, World, WorldOptions};
use cg_tiering::GameTick;
use indicatif::ProgressBar;

use crate::contents::Contents;
use crate::failure::Failure;
use crate::side::{Flat, Side, Tiered};
use cg_bench::process::{Transfer, disk_bytes};
#[cfg(feature = "peers")]
use level::Level;
use pace::{Control, Pace, TICK};
use players::{Crowd, HEIGHT_CHUNKS, VIEW_COLUMNS};

const CACHE_BYTES: u64 = 128 << 20;
const ENGINE_BYTES: u64 = 256 << 20;
/// The time of a tick that maintenance may take.
const BUDGET: Duration = Duration::from_millis(1);
/// The time that a tick may take.
const AIM: Duration = Duration::from_millis(5);
/// Of the chunks that were saved, one in this many is compared at the end.
const COMPARED: usize = 7;

/// What is played.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Minutes by the clock, for each store.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// How many players walk into new land.
    #[arg(long, default_value_t = 50)]
    players: u32,
    /// How many more follow some of them two minutes later.
    #[arg(long, default_value_t = 10)]
    followers: u32,
    /// Only the world, and neither RocksDB nor LevelDB.
    #[arg(long)]
    alone: bool,
}

/// Results of one store.
struct Played {
    name: &'static str,
    ticks: Vec<Duration>,
    control: Vec<Duration>,
    made: usize,
    loaded: usize,
    busy: u64,
    transfer: Transfer,
    disk_bytes: u64,
}

/// How often each chunk had been changed when it was last saved.
type Saved = HashMap<ChunkAt, u64>;

/// Plays all sides and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let home = tempfile::Builder::new().prefix("cg-crowd-").tempdir()?;
    let [ours, flat] = ["ours", "rocksdb"].map(|name| home.path().join(name));
    let prefetch = PrefetchOptions {
        width_chunks: VIEW_COLUMNS as u8,
        height_chunks: (HEIGHT_CHUNKS / 2) as u8,
        ..PrefetchOptions::default()
    };
    let world_options = WorldOptions {
        cache_bytes: CACHE_BYTES,
        engine_bytes: ENGINE_BYTES,
        prefetch: Some(prefetch),
        ..WorldOptions::balanced()
    };

    let world = World::builder().options(&world_options).create(&ours)?;
    let contents = Contents::in_world(&world)?;
    let mut metrics = None;
    let mut played =
        vec![play("world", Tiered::new(world, BUDGET), &contents, options, &ours, |side, saved| {
            metrics = Some(side.world.metrics());
            same(&side.world, &contents, saved)
        })?];
    if !options.alone {
        drop(World::builder().options(&world_options).create(&flat)?);
        // Opened again, as the options that RocksDB records while it makes files are for making them.
        let world = World::builder().options(&world_options).open(&flat)?;
        let contents = Contents::in_world(&world)?;
        world.close()?;
        drop(world);
        let cache_bytes = (CACHE_BYTES + ENGINE_BYTES / 4 * 3) as usize;
        let side = Flat { raw: raw::open(&flat, cache_bytes)?, schema: contents.schema() };
        played.push(play("RocksDB", side, &contents, options, &flat, |_, _| Ok(()))?);
        #[cfg(feature = "peers")]
        {
            let dir = home.path().join("leveldb");
            let side = Level::create(&dir, cache_bytes, contents.schema())?;
            played.push(play("LevelDB", side, &contents, options, &dir, |_, _| Ok(()))?);
        }
        #[cfg(not(feature = "peers"))]
        eprintln!("LevelDB takes no part: it is compiled with the feature `peers`");
    }
    println!(
        "\n{} players into new land and {} behind them, {} minutes by the clock, {:?} a tick; every chunk of view made or \
         loaded, saved when it is left and every five minutes:\n",
        options.players, options.followers, options.minutes, TICK
    );
    print(&mut played);
    if let Some(metrics) = &metrics {
        tell(metrics);
    }
    Ok(())
}

/// Plays the trace on one store.
fn play<S: Side>(
    name: &'static str,
    mut side: S,
    contents: &Contents,
    options: &Options,
    dir: &Path,
    at_the_end: impl FnOnce(&S, &Saved) -> Result<(), Failure>,
) -> Result<Played, Failure> {
    let count = options.minutes * 60 * GameTick::PER_SECOND;
    let mut crowd = Crowd::new(contents.dimension, options.players, options.followers);
    let (mut saved, mut waiting) = (Saved::new(), VecDeque::<Vec<(ChunkAt, Arc<Chunk>)>>::new());
    let (mut ticks, mut made, mut loaded, mut busy) = (Vec::new(), 0, 0, 0);
    let bar = ProgressBar::new(count).with_message(name);
    let before = Transfer::so_far()?;
    let (mut pace, control) = (Pace::begin(), Control::start());
    for now in 0..count {
        let asked = crowd.tick();
        if !asked.saves.is_empty() {
            waiting.push_back(built(contents, &mut saved, asked.saves));
        }
        pace.wait();
        let start = Instant::now();
        let found_new = side.load(&asked.new)?;
        let found = side.load(&asked.known)?;
        // What the store had no room for comes first.
        while let Some(chunks) = waiting.front() {
            if !side.save(chunks)? {
                busy += 1;
                break;
            }
            waiting.pop_front();
        }
        side.tick(GameTick::new(now), &asked.players)?;
        // What is seen at the very first is no walking into new land.
        if now > 0 {
            ticks.push(start.elapsed());
        }
        // What waits to be saved may be met again before.
        if found_new > 0 || (found < asked.known.len() && waiting.is_empty()) {
            return Err(
                format!("{name}: {found_new} chunks too many, {found} of {}", asked.known.len()).into()
            );
        }
        made += asked.new.len();
        loaded += found;
        bar.inc(1);
    }
    let control = control.end();
    bar.finish_and_clear();
    waiting.extend(crowd.stop().chunks(512).map(|saves| built(contents, &mut saved, saves.to_vec())));
    while let Some(chunks) = waiting.front() {
        if side.save(chunks)? {
            waiting.pop_front();
        } else {
            std::thread::sleep(TICK);
        }
    }
    at_the_end(&side, &saved)?;
    side.close()?;
    let transfer = Transfer::so_far()?.since(before);
    Ok(Played { name, ticks, control, made, loaded, busy, transfer, disk_bytes: disk_bytes(dir)? })
}

/// The chunks that a host would have at hand.
fn built(contents: &Contents, last: &mut Saved, saves: Vec<(ChunkAt, u64)>) -> Vec<(ChunkAt, Arc<Chunk>)> {
    last.extend(saves.iter().copied());
    saves.into_iter().map(|(at, changes)| (at, contents.chunk(at.pos, changes))).collect()
}

/// Makes sure that the world holds what it was given last, in the engine too.
fn same(world: &World, contents: &Contents, saved: &Saved) -> Result<(), Failure> {
    world.flush()?;
    world.cache().clear();
    for (at, changes) in saved.iter().step_by(COMPARED) {
        if world.load(*at)? != Some(contents.chunk(at.pos, *changes)) {
            return Err(format!("{at} is not what was saved last").into());
        }
    }
    Ok(())
}

/// Markdown, ready for `docs/lab`.
fn print(played: &mut [Played]) {
    println!(
        "| | made | loaded | p50 | p99 | p99.9 | max | longer than 50 ms | nothing, p99.9 | max | busy | written | on disk |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for side in played {
        let Played { name, made, loaded, busy, .. } = *side;
        let of = |times: &mut Vec<Duration>, percent| format!("{:.2?}", percentile(times, percent));
        let [p50, p99, p999, max] = [50.0, 99.0, 99.9, 100.0].map(|percent| of(&mut side.ticks, percent));
        let [quiet_p999, quiet_max] = [99.9, 100.0].map(|percent| of(&mut side.control, percent));
        let missed = side.ticks.iter().filter(|tick| **tick > TICK).count();
        println!(
            "| {name} | {made} | {loaded} | {p50} | {p99} | {p999} | {max} | {missed} | {quiet_p999} | {quiet_max} | {busy} | \
             {:.0} MB | {:.0} MB |",
            side.transfer.written_bytes as f64 / 1e6,
            side.disk_bytes as f64 / 1e6,
        );
        if name == "world" {
            let p999 = percentile(&mut side.ticks, 99.9);
            let met = if p999 <= AIM {
                "met".to_owned()
            } else {
                format!("missed by {:.1}×", p999.as_secs_f64() / AIM.as_secs_f64())
            };
            eprintln!("p99.9 of the world's ticks ≤ {AIM:?}: {met}");
        }
    }
}

/// Prints the world's own figures.
fn tell(metrics: &Metrics) {
    println!("\nThe world: {metrics}.");
    let stats = metrics.stats;
    let decided = stats.prefetched_used + stats.prefetched_wasted;
    if decided > 0 {
        let useful = 100.0 * stats.prefetched_used as f64 / decided as f64;
        println!("Prefetched: {}, of which {useful:.1} % of those decided were used.", stats.prefetched);
    }
}
