//! Overlays and segments: an arena that is edited and reset, and saves and loads that go through segments.
//!
//! | group | what is allowed |
//! |---|---|
//! | edit and reset | 50 µs for one block and a reset; stated beside the same edit in the world itself |
//! | reset | 1.5 × a reset after 10 written chunks, after 100,000 |
//! | save | 1.3 × an unsegmented world, for a changed chunk in segments of which all are open |
//! | submit | 4 × an unsegmented world, which takes some hundred nanoseconds, for the same chunks |
//! | save a chunk and an object | 1.3 × an unsegmented world, for an object that the segment has; stated for a new one, and for a redo record in the root instead |
//! | load a column again | 1.5 × an unsegmented world with the same memory, for the view of a player over four segments |
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::world::{Generator, Scene};
use cg_format::{BlockId, BlockPos, Chunk, ChunkAt, ChunkPos, LocalPos};
use cg_layers::{Base, OnDisk, Overlay, SegmentOptions, SegmentedWorld};
use cg_registry::Name;
use cg_store::{Error, Property, World, WorldOptions, WriteBatch, WriteTicket};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};

const SEED: u64 = 7;

fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 64 << 20, min_free_bytes: Some(0), ..WorldOptions::process() }
}

/// Chunks of hills along x, as they are generated and with one block changed.
fn chunks(generator: &Generator, count: i64) -> Vec<(ChunkAt, [Arc<Chunk>; 2])> {
    let one = |x| {
        let pos = ChunkPos::new(x, 0, 0).expect("a place in the world");
        let chunk = generator.chunk(pos).chunk_without_entities();
        let mut changed = Chunk::clone(&chunk);
        let cell = LocalPos::new(3, 3, 3);
        let other = BlockId::new(u64::from(chunk.block(cell).get() == 0));
        changed.set_block(cell, other, generator.schema()).expect("a registered block");
        changed.pack();
        (ChunkAt::new(generator.dimension(), pos), [Arc::new(chunk), Arc::new(changed)])
    };
    (0..count).map(one).collect()
}

fn save(world: &World, at: ChunkAt, chunk: &Arc<Chunk>) {
    let saved = world.transaction(|tx| {
        tx.save(at, Arc::clone(chunk));
        Ok::<_, Error>(())
    });
    saved.expect("the disk has room");
}

fn edit_and_reset(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world =
        World::builder().options(&options()).create(dir.path().join("world")).expect("an empty directory");
    let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    for (at, [chunk, _]) in chunks(&generator, 16) {
        save(&world, at, &chunk);
    }
    let place = BlockPos::new(5, 5, 5);
    let dimension = generator.dimension();
    let mut group = criterion.benchmark_group("overlay: edit and reset");
    let mut turn = 0;
    group.bench_function("ref: set a block in the world itself", |bench| {
        bench.iter(|| {
            turn += 1;
            world
                .transaction(|tx| tx.set_block(dimension, place, BlockId::new(turn % 2)))
                .expect("is stored")
                .seq
        });
    });
    let memory = Overlay::in_memory(world.clone(), &options()).expect("a base");
    edits(&mut group, "in memory", &memory, dimension, place);
    let disk = Overlay::create(dir.path().join("arenas"), world.clone(), &options()).expect("is new");
    edits(&mut group, "on disk", &disk, dimension, place);
    group.finish();
}

fn edits<S: Base>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    overlay: &Overlay<S>,
    dimension: cg_format::Dimension,
    place: BlockPos,
) {
    let at = ChunkAt::new(dimension, place.chunk());
    let here = overlay.load(at).expect("loads").expect("is stored").block(place.local());
    let other = BlockId::new(u64::from(here.get() == 0));
    group.bench_function(format!("set a block and reset, {name}"), |bench| {
        bench.iter(|| {
            overlay.transaction(|tx| tx.set_block(dimension, place, other)).expect("is stored");
            overlay.reset().expect("the disk has room");
        });
    });
    overlay.arenas().sweep(usize::MAX).expect("the disk has room");
}

fn reset(criterion: &mut Criterion) {
    let is_quick = std::env::args().any(|arg| arg == "--test" || arg == "--quick");
    let largest = if is_quick { 1000 } else { 100_000 };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world =
        World::builder().options(&options()).create(dir.path().join("world")).expect("an empty directory");
    let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    let chunk = Arc::new(Chunk::filled(BlockId::new(1), generator.schema()).expect("is registered"));
    let mut group = criterion.benchmark_group("overlay: reset");
    for (name, count) in
        [("ref: after 10 written chunks <= 1.5", 10), ("after 100,000 written chunks", largest)]
    {
        let place = dir.path().join(count.to_string());
        let overlay = Overlay::create(place, world.clone(), &options()).expect("an empty directory");
        for first in (0..count).step_by(1000) {
            write(&overlay, &generator, first..count.min(first + 1000), &chunk);
        }
        let mut is_first = true;
        group.bench_function(name, |bench| {
            bench.iter_custom(|times| {
                let mut total = Duration::ZERO;
                for _ in 0..times {
                    // The first reset finds all of it; those after it find as much garbage and ten chunks of their own.
                    if !std::mem::take(&mut is_first) {
                        write(&overlay, &generator, 0..10, &chunk);
                    }
                    let begun = Instant::now();
                    overlay.reset().expect("the disk has room");
                    total += begun.elapsed();
                }
                total
            });
        });
    }
    group.finish();
}

fn write<S: Base>(
    overlay: &Overlay<S>,
    generator: &Generator,
    places: std::ops::Range<i64>,
    chunk: &Arc<Chunk>,
) {
    let written = overlay.transaction(|tx| {
        for x in places {
            let pos = ChunkPos::new(x, 77, 0)?;
            tx.save(ChunkAt::new(generator.dimension(), pos), Arc::clone(chunk));
        }
        Ok::<_, Error>(())
    });
    written.expect("the disk has room");
}

fn segmented_save(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world =
        World::builder().options(&options()).create(dir.path().join("world")).expect("an empty directory");
    let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    let chunks = chunks(&generator, 128);
    let submitted = chunks.clone();
    let segment_options = SegmentOptions { side_chunks: 32, max_open: 8, world: options() };
    let segmented = SegmentedWorld::create(dir.path().join("segmented"), &[], &segment_options);
    let segmented = segmented.expect("an empty directory");
    Generator::in_world(Scene::Hills, SEED, segmented.root()).expect("new names");
    let mut group = criterion.benchmark_group("overlay: save a changed chunk");
    let mut turn = 0_usize;
    let mut next = move || {
        turn += 1;
        let (at, contents) = &chunks[turn * 37 % chunks.len()];
        (*at, Arc::clone(&contents[turn / chunks.len() % 2]))
    };
    group.bench_function("ref: in one world <= 1.3", |bench| {
        bench.iter(|| {
            let (at, chunk) = next();
            save(&world, at, &chunk);
        });
    });
    group.bench_function("in four segments", |bench| {
        bench.iter(|| {
            let (at, chunk) = next();
            segmented
                .transaction(at, |tx| {
                    tx.save(at, chunk);
                    Ok::<_, Error>(())
                })
                .expect("the disk has room");
        });
    });
    group.finish();
    segmented_submit(criterion, &world, &segmented, &submitted);
    // Fewer in a run that only tries each benchmark once, or none of these.
    assert!(segmented.segments().open_count() <= 4, "no segment but those of the chunks was opened");
}

/// What a tick thread waits for when it submits a chunk. It is accepted before the next one is timed.
fn segmented_submit(
    criterion: &mut Criterion,
    world: &World,
    segmented: &SegmentedWorld<OnDisk>,
    chunks: &[(ChunkAt, [Arc<Chunk>; 2])],
) {
    let mut group = criterion.benchmark_group("overlay: submit a changed chunk");
    let mut turn = 0_usize;
    let mut next = move || {
        turn += 1;
        let (at, contents) = &chunks[turn * 37 % chunks.len()];
        let mut batch = WriteBatch::new();
        batch.save(*at, Arc::clone(&contents[turn / chunks.len() % 2]));
        (*at, batch)
    };
    let mut timed = |times: u64,
                     submit: &dyn Fn(ChunkAt, WriteBatch) -> WriteTicket,
                     flush: &dyn Fn() -> Result<(), Error>| {
        let mut took = Duration::ZERO;
        for time in 0..times {
            let (at, batch) = next();
            let began = Instant::now();
            let ticket = submit(at, batch);
            took += began.elapsed();
            ticket.wait().expect("is accepted");
            if time % 1024 == 0 {
                flush().expect("the disk has room");
            }
        }
        took
    };
    group.bench_function("ref: in one world <= 4", |bench| {
        let submit = |_, batch| world.submit(batch).expect("the queue has room");
        bench.iter_custom(|times| timed(times, &submit, &|| world.flush()));
    });
    group.bench_function("in four segments", |bench| {
        let submit = |at, batch| segmented.submit(at, batch).expect("the queue has room");
        bench.iter_custom(|times| timed(times, &submit, &|| segmented.flush()));
    });
    group.finish();
}

/// A chunk and an object in one commit. The last is what it would cost if the root had the objects: a redo record with the
/// chunk, the segment's commit, and the object with the end of the record.
fn segmented_object(criterion: &mut Criterion) {
    const OBJECT_BYTES: usize = 200;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world =
        World::builder().options(&options()).create(dir.path().join("world")).expect("an empty directory");
    let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    let chunks = chunks(&generator, 128);
    let segment_options = SegmentOptions { side_chunks: 32, max_open: 8, world: options() };
    let segmented = SegmentedWorld::create(dir.path().join("segmented"), &[], &segment_options);
    let segmented = segmented.expect("an empty directory");
    Generator::in_world(Scene::Hills, SEED, segmented.root()).expect("new names");
    let mut group = criterion.benchmark_group("overlay: save a chunk and an object");
    let mut turn = 0_usize;
    let mut next = move || {
        turn += 1;
        let (at, contents) = &chunks[turn * 37 % chunks.len()];
        (turn, *at, Arc::clone(&contents[turn / chunks.len() % 2]))
    };
    let bytes = |turn: usize| [turn as u8; OBJECT_BYTES];
    let known = |at: ChunkAt| format!("bricks/{}", at.pos.x());
    group.bench_function("ref: in one world <= 1.3", |bench| {
        bench.iter(|| {
            let (turn, at, chunk) = next();
            let saved = world.transaction(|tx| {
                tx.save(at, chunk);
                tx.put_object(known(at), bytes(turn))
            });
            saved.expect("the disk has room")
        });
    });
    for (name, is_new) in [("that its segment has", false), ("that is new", true)] {
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let (turn, at, chunk) = next();
                let key = if is_new { format!("new/{turn}") } else { known(at) };
                let saved = segmented.transaction(at, |tx| {
                    tx.save(at, chunk);
                    tx.put_object(key, bytes(turn))
                });
                saved.expect("the disk has room");
            });
        });
    }
    group.bench_function("by a redo record in the root", |bench| {
        let root = segmented.root();
        let record = Property::Named(Name::new("game:redo").expect("a name"));
        bench.iter(|| {
            let (turn, at, chunk) = next();
            let mut redo = bytes(turn).to_vec();
            chunk.encode(&mut redo);
            let saved = root.transaction(|tx| {
                tx.set_property(record.clone(), Some(redo));
                Ok::<_, Error>(())
            });
            saved.expect("the disk has room");
            let saved = segmented.transaction(at, |tx| {
                tx.save(at, chunk);
                Ok::<_, Error>(())
            });
            saved.expect("the disk has room");
            let saved = root.transaction(|tx| {
                tx.set_property(record.clone(), None);
                tx.put_object(format!("redo/{}", at.pos.x()), bytes(turn))
            });
            saved.expect("the disk has room");
        });
    });
    group.finish();
}

/// The view of a player at the corner of four segments, which memory has room for. One iteration is one column.
fn segmented_load(criterion: &mut Criterion) {
    const SIDE: i64 = 11;
    const HEIGHT: i64 = 24;
    let names = World::builder().options(&options()).in_memory().expect("nothing to reconcile");
    let generator = Generator::in_world(Scene::Hills, SEED, &names).expect("new names");
    let mut columns = Vec::new();
    for (x, z) in (0..SIDE * SIDE).map(|index| (index / SIDE - SIDE / 2, index % SIDE - SIDE / 2)) {
        let at = (0..HEIGHT).map(|y| ChunkAt::new(generator.dimension(), ChunkPos::constant(x, y, z)));
        columns.push(at.collect::<Vec<_>>());
    }
    let chunk = |at: &ChunkAt| (*at, Arc::new(generator.chunk(at.pos).chunk_without_entities()));
    let chunks: Vec<_> = columns.iter().map(|column| column.iter().map(chunk).collect::<Vec<_>>()).collect();
    // So much that a world keeps all of them, in whichever part of its cache they fall. A sixteenth is too little for the
    // chunks of one segment.
    let bytes: usize = chunks.iter().flatten().map(|(_, chunk)| 128 + chunk.memory_bytes()).sum();
    let options = WorldOptions { cache_bytes: bytes as u64 * 3, ..options() };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let world =
        World::builder().options(&options).create(dir.path().join("world")).expect("an empty directory");
    Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
    let segment_options = SegmentOptions { world: options, ..SegmentOptions::default() };
    let segmented = SegmentedWorld::create(dir.path().join("segmented"), &[], &segment_options);
    let segmented = segmented.expect("an empty directory");
    Generator::in_world(Scene::Hills, SEED, segmented.root()).expect("new names");
    for column in chunks {
        for (at, chunk) in &column {
            save(&world, *at, chunk);
        }
        let saved = segmented.transaction(column[0].0, |tx| {
            for (at, chunk) in column {
                tx.save(at, chunk);
            }
            Ok::<_, Error>(())
        });
        saved.expect("the disk has room");
    }
    assert_eq!(segmented.segments().open_count(), 4);
    let mut group = criterion.benchmark_group("overlay: load a column again");
    let mut next = columns.iter().cycle();
    group.bench_function("ref: in one world <= 1.5", |bench| {
        bench.iter(|| world.load_many(next.next().expect("there are columns")));
    });
    group.bench_function("in four segments", |bench| {
        bench.iter(|| segmented.load_many(next.next().expect("there are columns")));
    });
    group.finish();
}

criterion_group!(benches, edit_and_reset, reset, segmented_save, segmented_object, segmented_load);
criterion_main!(benches);
