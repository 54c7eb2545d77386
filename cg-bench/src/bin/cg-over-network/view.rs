//! Commits while one view of a world is read for minutes: the server keeps every version of the world's head meanwhile.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cg_bench::fill::fill;
use cg_bench::world::{Generator, Scene};
use cg_format::{BlockId, ChunkAt, ChunkBox, ChunkPos, LocalPos, key::Family};
use cg_postgres::{Options, PostgresEngine};
use cg_store::engine::{ALL_KEYS, Engine as _, ReadableExt as _};
use cg_store::{Error, World, WorldOptions};

use crate::bench::Bench;
use crate::failure::Failure;
use crate::row::{Bound, Figure, Row};
use crate::sample::Sample;

/// Commits are begun at this rate.
const COMMITS_PER_S: u32 = 200;
/// Chunks along a side of the area that is saved.
const SIDE: i64 = 16;
/// The commits before the view, in its first and last seconds and after it are measured for so long, or for a quarter of
/// the view.
const PART: Duration = Duration::from_secs(10);

/// Measures commits before, in and after a view.
///
/// # Errors
/// Of the database.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let time = Duration::from_secs(bench.times(bench.options.view_seconds) as u64);
    let part = PART.min(time / 4);
    let network = bench.database.over(Duration::ZERO)?;
    let (engine, _) = network.create("view")?;
    let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
    let generator = Generator::in_world(Scene::Hills, 7, &world)?;
    let area = ChunkBox::new(ChunkPos::constant(-8, -8, -8), ChunkPos::constant(7, 7, 7));
    fill(&world, &generator, area, |_| {})?;
    let reader = PostgresEngine::open_read_only(&network.address("view")?, &Options::default())?;
    let (start, is_over) = (Instant::now(), AtomicBool::new(false));
    let (commits, [begun, ended], exports) = thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&world, &generator, start, &is_over));
        thread::sleep(part);
        let begun = start.elapsed();
        let exported = export(&reader, start + begun + time);
        let ended = start.elapsed();
        thread::sleep(part);
        is_over.store(true, Ordering::Release);
        let commits = committing.join().map_err(|_| "the thread of commits panicked")??;
        Ok::<_, Failure>((commits, [begun, ended], exported?))
    })?;
    world.close()?;
    let within = |from: Duration, to: Duration| {
        let mut sample = Sample::default();
        let inside = commits.iter().filter(|(at, _)| (from..to).contains(at));
        inside.for_each(|(_, time)| sample.add(*time));
        sample
    };
    let row = |what: &str, mut sample: Sample, bound| Row::of(what, network.delay, &mut sample, bound);
    let mut first = within(begun, begun + part);
    let bound = Bound { figure: Figure::Time(2 * first.time(50.0)), text: "twice that of the first".into() };
    let seconds = time.as_secs();
    let rate = commits.len() as f64 / (ended + part).as_secs_f64();
    Ok(vec![
        row("commit before a view", within(begun.saturating_sub(part), begun), None),
        row("commit in the first seconds of a view", first, None),
        row(
            &format!("commit in the last of {seconds} s, {exports} exports"),
            within(ended.saturating_sub(part), ended),
            Some(bound),
        ),
        row("commit after a view", within(ended, ended + part), None),
        Row::rate("commits meanwhile", network.delay, rate, "/s", None),
    ])
}

/// Saves one chunk of the area after the other until it is over. Returns when each commit was begun, since the start, and
/// what it took.
fn commit(
    world: &World,
    generator: &Generator,
    start: Instant,
    is_over: &AtomicBool,
) -> Result<Vec<(Duration, Duration)>, Failure> {
    let mut commits = Vec::new();
    while !is_over.load(Ordering::Acquire) {
        let n = commits.len() as i64;
        let (x, y, z) = (n % SIDE - SIDE / 2, n / SIDE % SIDE - SIDE / 2, n / SIDE / SIDE % SIDE - SIDE / 2);
        let pos = ChunkPos::new(x, y, z)?;
        let mut chunk = generator.chunk(pos).chunk_without_entities();
        // Every round changes another cell.
        let cell = LocalPos::from_index((n / SIDE.pow(3) % 4096) as u16).ok_or("a chunk has 4096 cells")?;
        let block = if chunk.block(cell) == BlockId::new(2) { BlockId::new(1) } else { BlockId::new(2) };
        chunk.set_block(cell, block, generator.schema())?;
        let at = ChunkAt::new(generator.dimension(), pos);
        let due = start + Duration::from_secs(1) / COMMITS_PER_S * commits.len() as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        world.transaction(|tx| {
            tx.save(at, chunk);
            Ok::<_, Error>(())
        })?;
        commits.push((begun.duration_since(start), begun.elapsed()));
    }
    Ok(commits)
}

/// Reads all rows of one view again and again. Returns how often.
fn export(reader: &PostgresEngine, until: Instant) -> Result<u64, Failure> {
    let view = reader.follow()?;
    let mut count = 0;
    while Instant::now() < until {
        for family in Family::ALL {
            view.scan(family, ALL_KEYS, |_, _| ControlFlow::<()>::Continue(()))?;
        }
        count += 1;
    }
    Ok(count)
}
