//! The process that is killed while it merges a large overlay into its base, and the worlds that it does that with.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cg_store::engine::{Engine, RocksEngine, RocksOptions};
use cg_store::prelude::*;
use cg_store::{Area, Arenas, StoreLimits};
use cg_tiering::GameTick;

use crate::Failure;
use crate::rng::Rng;
use crate::telling::Telling;

/// Chunks that the base begins with, for each ten of the overlay.
const BASE_PART: u64 = 10;
/// Chunks of one transaction while the worlds are made.
const AT_ONCE: u64 = 1000;
/// Chunks on the long side of the box.
const SIDE: u64 = 64;

/// What the process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Orders {
    /// Where base and overlay are.
    #[arg(long)]
    dir: PathBuf,
    /// Leave the intent out, as a control.
    #[arg(long)]
    loses_intents: bool,
}

/// Merges the overlay into its base, and tells of every batch.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let engine = RocksEngine::open(&orders.dir.join("base"), &RocksOptions::default())?;
    let base = over(Telling::new(engine, orders.loses_intents), 0)?;
    let arenas = Arenas::open(orders.dir.join("overlay"), base.clone(), &options(0))?;
    let overlay = arenas.resume(0)?;
    let chunks = fs::read_to_string(orders.dir.join("chunks"))?.trim().parse()?;
    let is_over = AtomicBool::new(false);
    base.engine().tell();
    let (took, longest_load, longest_walk) = std::thread::scope(|scope| {
        let loads = scope.spawn(|| {
            let mut rng = Rng::new(7);
            longest(&is_over, || {
                base.load(at(&base, rng.below(chunks)))?;
                Ok(())
            })
        });
        let walks = scope.spawn(|| {
            let few = ChunkBox::new(ChunkPos::new(0, 0, 0)?, ChunkPos::new(3, 3, 3)?);
            let dimension = base.catalog().dimension("game:field").ok_or("no dimension")?;
            longest(&is_over, || {
                let area = Area::Box(dimension, few);
                base.for_each_place(area, |_| std::ops::ControlFlow::<()>::Continue(()))?;
                Ok(())
            })
        });
        let begun = Instant::now();
        let promoted = overlay.promote_into(&base);
        let took = begun.elapsed();
        is_over.store(true, Ordering::Release);
        let ended =
            |end: std::thread::Result<Result<Duration, Failure>>| end.map_err(|_| "a reader panicked")?;
        promoted?;
        Ok::<_, Failure>((took, ended(loads.join())?, ended(walks.join())?))
    })?;
    if base.stats().commits_staged != 1 && !orders.loses_intents {
        return Err("it took one batch".into());
    }
    let mut out = io::stdout().lock();
    let peak = peak_bytes()? >> 20;
    writeln!(
        out,
        "end {took:.1?}, at most {peak} MiB resident, the longest load beside it {longest_load:.1?}, the longest walk over 64 chunks {longest_walk:.1?}"
    )?;
    Ok(out.flush()?)
}

/// How long a call takes at most, again and again until all is over.
fn longest(is_over: &AtomicBool, mut call: impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        call()?;
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(longest)
}

fn peak_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("the system does not tell")?.parse()?;
    Ok(kib << 10)
}

/// Makes a base, and an overlay over it that changes so many chunks of it, in every way.
pub(crate) fn make(dir: &Path, seed: u64, chunks: u64, batch_bytes: u64) -> Result<(), Failure> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("chunks"), chunks.to_string())?;
    let engine = RocksEngine::create(&dir.join("base"), &RocksOptions::default())?;
    let base = over(engine, batch_bytes)?;
    base.register_dimension("game:field")?;
    let blocks = base.register_blocks([":air", "game:stone", "game:glass"])?;
    let light = base.register_side("game:light")?;
    let cow = base.register_entity("game:cow")?;
    let mut rng = Rng::new(seed);
    let random = |rng: &mut Rng, kind: u64, world: &World<RocksEngine>| -> Result<Chunk, Failure> {
        let schema = world.catalog().current_schema();
        let block = |rng: &mut Rng| blocks[rng.below(3) as usize];
        let mut chunk = Chunk::filled(block(rng), &schema)?;
        if kind > 0 {
            for _ in 0..20 {
                let cell = LocalPos::from_index(rng.below(4096) as u16).ok_or("below 4096")?;
                chunk.set_block(cell, block(rng), &schema)?;
            }
        }
        if kind > 1 {
            chunk.set_side(light, (0..100).map(|_| rng.next() as u8).collect::<Vec<_>>());
        }
        Ok(chunk)
    };
    for first in (0..chunks / BASE_PART).step_by(AT_ONCE as usize) {
        base.transaction(|tx| {
            for n in first..(first + AT_ONCE).min(chunks / BASE_PART) {
                tx.save(at(&base, n * BASE_PART), random(&mut rng, n % 3, &base)?);
            }
            Ok::<_, Failure>(())
        })?;
    }
    let overlay =
        Arenas::create(dir.join("overlay"), base.clone(), &options(0))?.lease("", GameTick::new(0))?;
    for first in (0..chunks).step_by(AT_ONCE as usize) {
        overlay.transaction(|tx| {
            for n in first..(first + AT_ONCE).min(chunks) {
                // Every ninth chunk of the base goes.
                if n % (9 * BASE_PART) == 0 {
                    tx.delete(at(&base, n));
                    continue;
                }
                tx.save(at(&base, n), random(&mut rng, n % 3, &base)?);
                if n % 50 == 1 {
                    let block = at(&base, n).pos.block(LocalPos::new(8, 0, 8));
                    let position = EntityPos::new(at(&base, n).dimension, block, [0.5, 0.0, 0.5])?;
                    let entity = Entity::new(cow, Owner::Chunk(at(&base, n)), position);
                    tx.put_entity(EntityId::new(uuid::Uuid::from_u128(n.into())), entity);
                }
            }
            Ok::<_, Failure>(())
        })?;
    }
    overlay.arenas().flush()?;
    Ok(base.close()?)
}

/// Opens a base as it was left.
pub(crate) fn open(dir: &Path) -> Result<World<RocksEngine>, Failure> {
    over(RocksEngine::open(&dir.join("base"), &RocksOptions::default())?, 0)
}

fn over<E: Engine>(engine: E, batch_bytes: u64) -> Result<World<E>, Failure> {
    Ok(World::over(engine, uuid::Uuid::from_u128(1), |_| Ok(()), &options(batch_bytes))?)
}

fn options(batch_bytes: u64) -> WorldOptions {
    let limits = StoreLimits { batch_bytes, ..StoreLimits::default() };
    let defaults = WorldOptions { min_free_bytes: 0, cache_bytes: 16 << 20, ..WorldOptions::process() };
    if batch_bytes == 0 { defaults } else { WorldOptions { limits, ..defaults } }
}

/// The nth chunk of the box.
fn at<E: Engine>(world: &World<E>, n: u64) -> ChunkAt {
    let dimension = world.catalog().dimension("game:field").expect("is registered when the base is made");
    let [x, y, z] = [n % SIDE, n / SIDE % SIDE, n / SIDE / SIDE].map(|axis| axis as i64);
    ChunkAt::new(dimension, ChunkPos::constant(x, y, z))
}
