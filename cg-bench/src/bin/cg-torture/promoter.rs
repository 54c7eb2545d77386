//! The process that is killed while it merges a large overlay into its base, and the worlds that it does that with.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cg_layers::Arenas;
use cg_store::StoreLimits;
use cg_store::engine::{Engine, RocksEngine, RocksOptions};
use cg_store::prelude::*;
use cg_store::view::Area;
use cg_tiering::GameTick;

use crate::failure::Failure;
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
    let tells = Arc::default();
    let base = over(Telling::new(engine, &tells, orders.loses_intents), 0)?;
    let overlay = Telling::of_overlay(&orders.dir.join("overlay"), &tells)?;
    let arenas = Arenas::over(overlay, base.clone(), &options(0))?;
    let overlay = arenas.resume(0)?;
    let chunks = fs::read_to_string(orders.dir.join("chunks"))?.trim().parse()?;
    let is_over = AtomicBool::new(false);
    tells.store(true, Ordering::Release);
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
                base.read_view(|view| {
                    view.for_each_place(area, |_| std::ops::ControlFlow::<()>::Continue(()))
                })?;
                Ok(())
            })
        });
        let begun = Instant::now();
        let merged = overlay.merge_into(&base);
        let took = begun.elapsed();
        is_over.store(true, Ordering::Release);
        let ended =
            |end: std::thread::Result<Result<Duration, Failure>>| end.map_err(|_| "a reader panicked")?;
        merged?;
        Ok::<_, Failure>((took, ended(loads.join())?, ended(walks.join())?))
    })?;
    if base.metrics().stats.commits_staged != 1 && !orders.loses_intents {
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
pub(crate) fn longest(
    is_over: &AtomicBool,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<Duration, Failure> {
    let mut longest = Duration::ZERO;
    while !is_over.load(Ordering::Acquire) {
        let begun = Instant::now();
        call()?;
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(longest)
}

/// The most memory that the process has had.
pub(crate) fn peak_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("the system does not tell")?.parse()?;
    Ok(kib << 10)
}

/// The registered kinds of which chunks and entities are made.
pub(crate) struct Kinds {
    blocks: [BlockId; 3],
    light: SideKind,
    cow: EntityTypeId,
}

impl Kinds {
    pub(crate) fn register(world: &World) -> Result<Self, Failure> {
        world.registry().register_dimension("game:field")?;
        let blocks = world.registry().register_blocks([":air", "game:stone", "game:glass"])?;
        let (light, cow) =
            (world.registry().register_side("game:light")?, world.registry().register_entity("game:cow")?);
        Ok(Self { blocks, light, cow })
    }

    /// A chunk that is filled, speckled, or speckled with side data.
    pub(crate) fn random(&self, rng: &mut Rng, kind: u64, world: &World) -> Result<Chunk, Failure> {
        let schema = world.catalog().current_schema();
        let block = |rng: &mut Rng| self.blocks[rng.below(3) as usize];
        let mut chunk = Chunk::filled(block(rng), &schema)?;
        if kind > 0 {
            for _ in 0..20 {
                let cell = LocalPos::from_index(rng.below(4096) as u16).ok_or("below 4096")?;
                chunk.set_block(cell, block(rng), &schema)?;
            }
        }
        if kind > 1 {
            chunk.set_side(self.light, (0..100).map(|_| rng.next() as u8).collect::<Vec<_>>());
        }
        Ok(chunk)
    }

    pub(crate) fn cow_in(&self, at: ChunkAt) -> Result<Entity, Failure> {
        let block = at.pos.block(LocalPos::new(8, 0, 8));
        let position = EntityPos::new(at.dimension, block, [0.5, 0.0, 0.5])?;
        Ok(Entity::new(self.cow, Owner::Chunk(at), position))
    }
}

pub(crate) fn cow_id(n: u64) -> EntityId {
    EntityId::new(uuid::Uuid::from_u128(n.into()))
}

/// Makes a base, and an overlay over it that changes this many chunks of it, in every way.
pub(crate) fn make(dir: &Path, seed: u64, chunks: u64, batch_bytes: u64) -> Result<(), Failure> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("chunks"), chunks.to_string())?;
    let engine = RocksEngine::create(&dir.join("base"), &RocksOptions::default())?;
    let base = over(engine, batch_bytes)?;
    let kinds = Kinds::register(&base)?;
    let mut rng = Rng::new(seed);
    for first in (0..chunks / BASE_PART).step_by(AT_ONCE as usize) {
        base.transaction(|tx| {
            for n in first..(first + AT_ONCE).min(chunks / BASE_PART) {
                tx.save(at(&base, n * BASE_PART), kinds.random(&mut rng, n % 3, &base)?);
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
                tx.save(at(&base, n), kinds.random(&mut rng, n % 3, &base)?);
                if n % 50 == 1 {
                    tx.put_entity(cow_id(n), kinds.cow_in(at(&base, n))?);
                }
            }
            Ok::<_, Failure>(())
        })?;
    }
    overlay.arenas().flush()?;
    Ok(base.close()?)
}

/// Opens a base as it was left.
pub(crate) fn open(dir: &Path) -> Result<World, Failure> {
    over(RocksEngine::open(&dir.join("base"), &RocksOptions::default())?, 0)
}

fn over(engine: impl Engine, batch_bytes: u64) -> Result<World, Failure> {
    Ok(World::builder().options(&options(batch_bytes)).over(engine)?)
}

pub(crate) fn options(batch_bytes: u64) -> WorldOptions {
    let limits = StoreLimits { batch_bytes, ..StoreLimits::default() };
    let defaults = WorldOptions { min_free_bytes: Some(0), cache_bytes: 16 << 20, ..WorldOptions::process() };
    if batch_bytes == 0 { defaults } else { WorldOptions { limits, ..defaults } }
}

/// The nth chunk of the box.
pub(crate) fn at(world: &World, n: u64) -> ChunkAt {
    let dimension = world.catalog().dimension("game:field").expect("is registered when the base is made");
    let [x, y, z] = [n % SIDE, n / SIDE % SIDE, n / SIDE / SIDE].map(|axis| axis as i64);
    ChunkAt::new(dimension, ChunkPos::constant(x, y, z))
}
