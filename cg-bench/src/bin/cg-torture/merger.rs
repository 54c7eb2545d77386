//! The process that is killed while it merges a large overlay into a segmented world, and the worlds that it does that with.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_layers::{Arenas, SegmentHome, SegmentOptions, SegmentPos, SegmentedWorld};
use cg_registry::Catalog;
use cg_store::engine::{RocksEngine, RocksOptions};
use cg_store::error::Location;
use cg_store::prelude::*;
use cg_store::verify::{ContentHash, VerifyDepth};
use cg_tiering::GameTick;

use crate::failure::Failure;
use crate::promoter::{Kinds, at, cow_id, longest, options, peak_bytes};
use crate::rng::Rng;
use crate::telling::Telling;
use crate::values::{self, Values};

/// Every such chunk of the base is there before.
const BASE_EACH: u64 = 10;
/// Every such chunk has a cow before, and those behind them have one afterwards.
const COW_EACH: u64 = 50;
/// Every such chunk has values before, and the chunks after them have some afterwards.
const VALUES_EACH: u64 = 50;
/// The values of every such chunk go.
const VALUES_GONE_EACH: u64 = 150;
/// Every such chunk goes.
const GONE_EACH: u64 = 90;
/// A cow goes this many chunks further, over borders too.
const COW_GOES: u64 = 17;
/// Chunks of one transaction while the overlay is made.
const AT_ONCE: u64 = 1000;

/// What the process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Orders {
    /// Where base and overlay are.
    #[arg(long)]
    dir: PathBuf,
    /// Commit the values before the chunks, as a control.
    #[arg(long)]
    splits: bool,
}

/// How many chunks the overlay changes, how large a segment is and a batch of any of its worlds may be.
pub(crate) struct Size {
    pub(crate) chunks: u64,
    side_chunks: u32,
    batch_bytes: u64,
}

impl Size {
    pub(crate) const CI: Self = Self { chunks: 600, side_chunks: 16, batch_bytes: 8 << 10 };
    pub(crate) const WHOLE: Self = Self { chunks: 100_000, side_chunks: 32, batch_bytes: 4 << 20 };
}

/// Segments on disk whose engines tell.
pub(crate) struct Home {
    dir: PathBuf,
    tells: Arc<AtomicBool>,
}

pub(crate) type Base = SegmentedWorld<Home>;

impl Home {
    fn path(&self, segment: SegmentPos) -> PathBuf {
        self.dir.join(format!("{}.{}.{}", segment.x, segment.y, segment.z))
    }
}

impl SegmentHome for Home {
    fn location(&self, segment: SegmentPos) -> Location {
        self.path(segment).into()
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.path(segment).exists())
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = RocksEngine::create(&self.path(segment), &RocksOptions::default())?;
        let take = |catalog: &mut Catalog| {
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        self.over("segment ", engine, take, options)
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = RocksEngine::open(&self.path(segment), &RocksOptions::default())?;
        let take = |catalog: &mut Catalog| {
            check(catalog)?;
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        self.over("segment ", engine, take, options)
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        // Nothing here deletes a segment.
        Err(cg_layers::SegmentError::Missing { segment }.into())
    }
}

impl Home {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.join("base"), tells: Arc::default() }
    }

    fn over(
        &self,
        name: &'static str,
        engine: RocksEngine,
        change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        cg_store::layer::world_over(Telling::named(name, engine, Arc::clone(&self.tells)), options, change)
    }

    /// Whether its engines tell.
    pub(crate) fn tells(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.tells)
    }

    pub(crate) fn root(&self, engine: RocksEngine, options: &WorldOptions) -> Result<World, Error> {
        self.over("root ", engine, |_| Ok(()), options)
    }
}

/// Merges the overlay into its base; each engine tells of every batch.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let home = Home::new(&orders.dir);
    let tells = Arc::clone(&home.tells);
    let base = open_with(home)?;
    let overlay = Telling::of_overlay(&orders.dir.join("overlay"), &tells)?;
    let arenas = Arenas::over(overlay, base.clone(), &options(0))?;
    let overlay = arenas.resume(0)?;
    let chunks: u64 = fs::read_to_string(orders.dir.join("chunks"))?.trim().parse()?;
    let is_over = AtomicBool::new(false);
    // All segments are open when it begins, as they are while players are in them.
    for segment in base.segments().list() {
        base.segments().with(segment, |_| Ok(()))?;
    }
    if orders.splits {
        for n in (0..chunks).step_by(VALUES_EACH as usize).filter(|n| n % VALUES_GONE_EACH != 0) {
            let at = at(base.root(), n);
            base.transaction(at, |tx| values::put(tx, n, at, 2))?;
        }
    }
    tells.store(true, Ordering::Release);
    let (took, longest_load, longest_look, longest_transaction) = std::thread::scope(|scope| {
        let loads = scope.spawn(|| {
            let mut rng = Rng::new(7);
            longest(&is_over, || {
                base.load(at(base.root(), rng.below(chunks)))?;
                Ok(())
            })
        });
        let looks = scope.spawn(|| {
            let mut rng = Rng::new(9);
            longest(&is_over, || {
                base.entity(cow_id(COW_EACH * rng.below(chunks / COW_EACH)))?;
                Ok(())
            })
        });
        let transactions = scope.spawn(|| {
            let mut rng = Rng::new(8);
            longest(&is_over, || {
                base.transaction(at(base.root(), rng.below(chunks)), |_| Ok::<_, Failure>(()))
            })
        });
        let begun = std::time::Instant::now();
        let merged = overlay.merge_into(&base);
        let took = begun.elapsed();
        is_over.store(true, Ordering::Release);
        merged?;
        let loads = loads.join().map_err(|_| "a reader panicked")??;
        let looks = looks.join().map_err(|_| "a reader of cows panicked")??;
        let transactions = transactions.join().map_err(|_| "a writer panicked")??;
        Ok::<_, Failure>((took, loads, looks, transactions))
    })?;
    let mut out = io::stdout().lock();
    let peak = peak_bytes()? >> 20;
    writeln!(
        out,
        "end {took:.1?}, at most {peak} MiB resident, the longest load of a chunk beside it {longest_load:.1?}, of a cow {longest_look:.1?}, the longest transaction {longest_transaction:.1?}"
    )?;
    Ok(out.flush()?)
}

/// Makes a segmented world, and an overlay over it that changes this many chunks of it in every way.
pub(crate) fn make(dir: &Path, seed: u64, size: &Size) -> Result<(), Failure> {
    fs::create_dir_all(dir.join("base"))?;
    fs::write(dir.join("chunks"), size.chunks.to_string())?;
    let home = Home::new(dir);
    let engine = RocksEngine::create(&home.dir.join("root"), &RocksOptions::default())?;
    let options = options(size.batch_bytes);
    let root = home.root(engine, &options)?;
    let kinds = Kinds::register(&root)?;
    let base = begin(home, root, Some(size.side_chunks), options)?;
    let at = |n| at(base.root(), n);
    let mut rng = Rng::new(seed);
    for n in (0..size.chunks).step_by(BASE_EACH as usize) {
        base.transaction(at(n), |tx| {
            tx.save(at(n), kinds.random(&mut rng, n % 3, base.root())?);
            if n % VALUES_EACH == 0 {
                values::put(tx, n, at(n), 1)?;
            }
            if n % COW_EACH == 0 {
                tx.put_entity(cow_id(n), kinds.cow_in(at(n))?);
            }
            Ok::<_, Failure>(())
        })?;
    }
    let arenas = Arenas::create(dir.join("overlay"), base.clone(), &crate::promoter::options(0))?;
    let overlay = arenas.lease("", GameTick::new(0))?;
    let is_gone = |n: u64| n.is_multiple_of(GONE_EACH);
    for first in (0..size.chunks).step_by(AT_ONCE as usize) {
        overlay.transaction(|tx| {
            for n in first..(first + AT_ONCE).min(size.chunks) {
                if is_gone(n) {
                    tx.delete(at(n));
                } else {
                    tx.save(at(n), kinds.random(&mut rng, n % 3, base.root())?);
                }
                match n % VALUES_EACH {
                    0 if n % VALUES_GONE_EACH == 0 => values::delete(tx, n)?,
                    0 | 1 => values::put(tx, n, at(n), 2)?,
                    _ => {}
                }
            }
            Ok::<_, Failure>(())
        })?;
    }
    overlay.transaction(|tx| {
        for n in (0..size.chunks - COW_GOES).step_by(COW_EACH as usize) {
            for (cow, to) in [(n, n + COW_GOES), (n + 1, n + 1)] {
                if !is_gone(to) {
                    tx.put_entity(cow_id(cow), kinds.cow_in(at(to))?);
                }
            }
        }
        Ok::<_, Failure>(())
    })?;
    overlay.arenas().flush()?;
    drop((overlay, arenas));
    Ok(base.close()?)
}

/// Everything that a base has: what each segment holds, and the owner of each cow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Look {
    segments: Vec<(SegmentPos, ContentHash)>,
    owners: Vec<Option<Owner>>,
    /// Of every chunk that was there before, with what it has, and of the chunks after them.
    values: Vec<(Option<SegmentPos>, Values)>,
}

impl Look {
    pub(crate) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The segment that has neither all chunks and values as before nor all as after.
    pub(crate) fn torn(&self, before: &Self, after: &Self) -> Option<SegmentPos> {
        let of = |segment, other: &Self| {
            let pairs = self.values.iter().zip(&other.values);
            pairs.filter(|((at, _), _)| *at == Some(segment)).all(|(one, other)| one == other)
        };
        let segments = self.segments.iter().map(|(segment, _)| *segment);
        segments.into_iter().find(|segment| !of(*segment, before) && !of(*segment, after))
    }

    /// How many segments are not the same.
    pub(crate) fn changed(&self, other: &Self) -> usize {
        let pairs = self.segments.iter().zip(&other.segments);
        pairs.filter(|(one, other)| one != other).count()
    }
}

/// Opens a base as it was left.
pub(crate) fn open(dir: &Path) -> Result<Base, Failure> {
    open_with(Home::new(dir))
}

/// Looks at all of a base, and closes it.
pub(crate) fn look(base: &Base, chunks: u64) -> Result<Look, Failure> {
    let mut segments = Vec::new();
    for segment in base.segments().list() {
        let (hash, report) = base.segments().with(segment, |world| {
            let hash =
                world.content_hash(cg_store::view::Area::Box(segment.dimension, ChunkBox::EVERYTHING))?;
            Ok((hash, world.verify(VerifyDepth::Full, |_| {})?))
        })?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("{segment} is not sound: {}", finding.what).into());
        }
        segments.push((segment, hash));
    }
    let cows = (0..chunks).filter(|n| n % COW_EACH < 2);
    let owners = cows.map(|n| Ok(base.entity(cow_id(n))?.map(|cow| cow.owner)));
    let owners = owners.collect::<Result<_, Failure>>()?;
    let mut values = Vec::new();
    for n in (0..chunks).filter(|n| n % VALUES_EACH < 2) {
        let at = at(base.root(), n);
        // What is new goes to the root, apart from its chunk.
        let segment = n.is_multiple_of(VALUES_EACH).then(|| base.segment_of(at));
        values.push((segment, Values::of(base, n, at)?));
    }
    base.close()?;
    Ok(Look { segments, owners, values })
}

/// Merges what a merge that was killed has left in the overlay; `forgets` empties the overlay first: the control.
pub(crate) fn go_on(dir: &Path, forgets: bool) -> Result<(), Failure> {
    let base = open(dir)?;
    let overlay = Telling::of_overlay(&dir.join("overlay"), &Arc::default())?;
    let arenas = Arenas::over(overlay, base.clone(), &options(0))?;
    let overlay = arenas.resume(0)?;
    if forgets {
        overlay.reset()?;
    }
    overlay.merge_into(&base)?;
    drop((overlay, arenas));
    Ok(base.close()?)
}

fn open_with(home: Home) -> Result<Base, Failure> {
    let engine = RocksEngine::open(&home.dir.join("root"), &RocksOptions::default())?;
    let root = home.root(engine, &options(0))?;
    begin(home, root, None, options(0))
}

/// Begins with a root, which is new if there is a side.
pub(crate) fn begin(
    home: Home,
    root: World,
    side_chunks: Option<u32>,
    world: WorldOptions,
) -> Result<Base, Failure> {
    let segments = SegmentOptions { max_open: 64, world, ..SegmentOptions::default() };
    Ok(SegmentedWorld::begin(home, root, side_chunks, &segments)?)
}
