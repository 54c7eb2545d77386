//! A busy server's commits: what a caller waits for when it hands a column of 24 chunks over, in each mode.
//!
//! The references are RocksDB with the options of the world, handed all rows that the commit writes, finished.
//!
//! | group | what is allowed |
//! |---|---|
//! | submit a changed column | 2 µs until the call returns; stated: until it is accepted, until the rows are written; 1.3 × a batch of the same rows at `Process` |
//! | save an unchanged column | stated, beside encoding and comparing its chunks |
//! | set one block | stated, beside saving the chunk |
//! | idle worlds after a commit | processor time: stated |
//! | synced commits | 1.1 × a synced batch of the same rows; eight callers together, per commit |
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_bench::process::processor_time;
use cg_bench::raw;
use cg_bench::world::{Generator, Scene};
use cg_format::{BlockPos, Chunk, ChunkAt, ChunkPos, ClusterTier, LocalPos, Space, key};
use cg_store::engine::CommitSeq;
use cg_store::opacity::Keep;
use cg_store::{Durability, Error, Property, World, WorldOptions, WriteBatch};
use criterion::{Criterion, criterion_group, criterion_main};
use rocksdb::WriteOptions;
use tempfile::TempDir;

const SEED: u64 = 7;
const COLUMNS: i64 = 32;
const HEIGHT: i64 = 24;

type Column = Vec<(ChunkAt, Arc<Chunk>)>;
/// The rows of one commit.
type Rows = Vec<(Space, Vec<u8>, Vec<u8>)>;

/// A world in which the same columns are saved again and again, each time with other content.
struct Busy {
    world: World,
    generator: Generator,
    /// The same columns twice, with one block of each chunk changed.
    columns: [Vec<Column>; 2],
    dir: TempDir,
    turn: usize,
}

impl Busy {
    fn new(options: &WorldOptions) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let world =
            World::builder().options(options).create(dir.path().join("world")).expect("an empty directory");
        let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
        let column = |x: i64| -> Column {
            let chunks = (0..HEIGHT).map(|y| {
                let pos = ChunkPos::new(x, y - 12, 0).expect("a place in the world");
                let chunk = generator.chunk(pos).chunk_without_entities();
                (ChunkAt::new(generator.dimension(), pos), Arc::new(chunk))
            });
            chunks.collect()
        };
        let first: Vec<Column> = (0..COLUMNS).map(column).collect();
        let changed = |chunk: &Arc<Chunk>| {
            let mut changed = Chunk::clone(chunk);
            let cell = LocalPos::new(3, 3, 3);
            let kinds = changed.palette();
            let other = kinds.iter().map(|kind| kind.block).find(|block| *block != chunk.block(cell));
            let other = other.unwrap_or(cg_format::BlockId::new(u64::from(chunk.block(cell).get() == 0)));
            changed.set_block(cell, other, generator.schema()).expect("a registered block");
            changed.pack();
            Arc::new(changed)
        };
        let second =
            first.iter().map(|column| column.iter().map(|(at, chunk)| (*at, changed(chunk))).collect());
        let columns = [first.clone(), second.collect()];
        for column in &columns[0] {
            save(&world, column, Durability::Process);
        }
        world.close().expect("the disk has room");
        drop(world);
        let world = World::builder().options(options).open(dir.path().join("world")).expect("just closed");
        for column in &columns[0] {
            assert!(column.iter().all(|(at, _)| world.load(*at).is_ok_and(|chunk| chunk.is_some())));
        }
        Self { world, generator, columns, dir, turn: 0 }
    }

    /// A column as it is not stored.
    fn next(&mut self) -> &Column {
        let (content, column) = self.next_place();
        &self.columns[content][column]
    }

    /// Which content of which column comes next.
    fn next_place(&mut self) -> (usize, usize) {
        self.turn += 1;
        let columns = COLUMNS as usize;
        (self.turn / columns % 2, self.turn % columns)
    }

    /// The rows that saving each column writes, by content.
    fn rows(&self) -> [Vec<Rows>; 2] {
        let rows_of = |column: &Column| {
            let seq = save(&self.world, column, Durability::Process);
            rows_of_commit(&self.world, column, seq)
        };
        // Each column has the other content before.
        let second = self.columns[1].iter().map(rows_of).collect();
        [self.columns[0].iter().map(rows_of).collect(), second]
    }
}

fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 256 << 20, min_free_bytes: Some(0), ..WorldOptions::balanced() }
}

fn save(world: &World, column: &Column, durability: Durability) -> CommitSeq {
    let saved = world.transaction_at(durability, |tx| {
        for (at, chunk) in column {
            tx.save(*at, Arc::clone(chunk));
        }
        Ok::<_, Error>(())
    });
    saved.expect("the disk has room").seq
}

/// Rows that a commit of a saved column has put.
fn rows_of_commit(world: &World, column: &Column, seq: CommitSeq) -> Rows {
    let chunks = column.iter().flat_map(|(at, _)| {
        let marks = [ClusterTier::L1, ClusterTier::L2]
            .map(|tier| (Space::ChangeMark, key::change_mark(at.dimension, at.pos.cluster(tier)).to_vec()));
        std::iter::once((Space::ChunkL0, key::chunk(*at).to_vec())).chain(marks)
    });
    let number = (Space::WorldMeta, cg_store::engine::COMMIT_SEQUENCE_KEY.to_vec());
    let mut keys: Vec<_> = chunks.chain([number]).collect();
    keys.sort_unstable();
    keys.dedup();
    let engine = world.engine();
    let put = keys.into_iter().filter_map(|(space, key)| {
        let row = engine.get(space, &key).expect("is sound")?.to_vec();
        (row[8..16] == seq.get().to_le_bytes()).then_some((space, key, row))
    });
    let rows: Rows = put.collect();
    assert!(rows.len() > column.len(), "{} rows of {} chunks", rows.len(), column.len());
    rows
}

/// A batch of finished rows.
fn batch_of(raw: &raw::Db, rows: &Rows) -> rocksdb::WriteBatch {
    let mut batch = rocksdb::WriteBatch::default();
    for (space, key, row) in rows {
        batch.put_cf(raw::family(raw, *space), key, row);
    }
    batch
}

/// The part of submitting a column that is measured.
#[derive(Clone, Copy)]
enum Measured {
    /// A call that finds the queue empty, until it returns.
    Alone,
    /// The same, until it is accepted, so that every reader sees it without waiting.
    UntilAccepted,
    /// The same, until its rows are written.
    UntilWritten,
    /// One of as many calls as there are columns, each right after the one before, as an autosave makes them.
    InARow,
}

/// A caller that waits for the outcome of a column.
#[derive(Clone, Copy)]
enum By {
    Submit,
    Transaction(Durability),
}

fn submitted(busy: &mut Busy, times: u64, measured: Measured, by: By) -> Duration {
    let mut total = Duration::ZERO;
    for time in 1..=times {
        let world = busy.world.clone();
        let column = busy.next();
        let begun = Instant::now();
        match by {
            By::Transaction(durability) => {
                black_box(save(&world, column, durability));
            }
            By::Submit => {
                let mut batch = WriteBatch::with_capacity(column.len());
                for (at, chunk) in column {
                    batch.save(*at, Arc::clone(chunk));
                }
                let ticket = black_box(world.submit(batch).expect("the queue has room"));
                if matches!(measured, Measured::UntilAccepted) {
                    black_box(ticket.wait().expect("it can be stored").seq);
                }
            }
        }
        if matches!(measured, Measured::UntilWritten) {
            world.flush_queue();
        }
        total += begun.elapsed();
        if !matches!(measured, Measured::InARow) || time % COLUMNS as u64 == 0 || time == times {
            world.flush_queue();
        }
    }
    total
}

trait FlushQueue {
    /// Waits until nothing is queued.
    fn flush_queue(&self);
}

impl FlushQueue for World {
    fn flush_queue(&self) {
        while self.metrics().submitted + self.metrics().queued_commits > 0 {
            std::thread::yield_now();
        }
    }
}

fn submit(criterion: &mut Criterion) {
    let mut busy = Busy::new(&options());
    let rows = busy.rows();
    let copy = busy.dir.path().join("copy");
    busy.world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
    let raw = raw::open(&copy, 128 << 20).expect("a world of ours");
    let mut group = criterion.benchmark_group("busy: submit a changed column");
    group.bench_function("ref: RocksDB write batch of all its rows <= 1.3", |bench| {
        bench.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for _ in 0..times {
                let (content, column) = busy.next_place();
                let rows = &rows[content][column];
                let begun = Instant::now();
                raw.write(batch_of(&raw, rows)).expect("the disk has room");
                total += begun.elapsed();
            }
            total
        });
    });
    let mut with_map = Busy::new(&WorldOptions { opacity: Keep::On, ..options() });
    group.bench_function("Process, with the opacity map", |bench| {
        let by = By::Transaction(Durability::Process);
        bench.iter_custom(|times| submitted(&mut with_map, times, Measured::Alone, by));
    });
    let balanced = By::Transaction(Durability::Balanced);
    for (name, measured, by) in [
        ("Process", Measured::Alone, By::Transaction(Durability::Process)),
        ("submit, until it returns", Measured::Alone, By::Submit),
        ("submit, until it returns, 32 in a row, each", Measured::InARow, By::Submit),
        ("submit, until it is accepted", Measured::UntilAccepted, By::Submit),
        ("submit, until it is written", Measured::UntilWritten, By::Submit),
        ("Balanced, until it returns", Measured::Alone, balanced),
        ("Balanced, until it returns, 32 in a row, each", Measured::InARow, balanced),
        ("Balanced, until it is written", Measured::UntilWritten, balanced),
    ] {
        group.bench_function(name, |bench| {
            bench.iter_custom(|times| submitted(&mut busy, times, measured, by));
        });
    }
    group.finish();
}

fn unchanged(criterion: &mut Criterion) {
    let busy = Busy::new(&options());
    // Not what is stored: only of a save that changes something does memory keep the very chunks.
    let column = busy.columns[1][0].clone();
    save(&busy.world, &column, Durability::Safe);
    let equal: Column = column.iter().map(|(at, chunk)| (*at, Arc::new(Chunk::clone(chunk)))).collect();
    let mut group = criterion.benchmark_group("busy: save an unchanged column");
    group.bench_function("ref: encode and compare", |bench| {
        let stored: Vec<_> = column.iter().map(|(_, chunk)| chunk.to_bytes()).collect();
        bench.iter(|| column.iter().zip(&stored).all(|((_, chunk), stored)| chunk.to_bytes() == *stored));
    });
    group.bench_function("Safe, the same Arcs", |bench| {
        bench.iter(|| save(&busy.world, &column, Durability::Safe));
    });
    group.bench_function("Safe, equal chunks", |bench| {
        bench.iter(|| save(&busy.world, &equal, Durability::Safe));
    });
    let empty = |at: &ChunkAt| {
        let pos = at.pos.offset(1000, 0, 0).expect("a place in the world");
        let air = Chunk::filled(cg_format::BlockId::new(0), busy.generator.schema());
        (ChunkAt::new(at.dimension, pos), Arc::new(air.expect("the registered air")))
    };
    let empty: Vec<Column> = (0..2).map(|_| column.iter().map(|(at, _)| empty(at)).collect()).collect();
    save(&busy.world, &empty[0], Durability::Safe);
    group.bench_function("Safe, equal empty chunks", |bench| {
        bench.iter(|| save(&busy.world, &empty[1], Durability::Safe));
    });
    group.finish();
}

fn one_block(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("busy: set one block");
    let (balanced, process) = (Durability::Balanced, Durability::Process);
    for (name, deltas, durability) in [
        ("ref: the whole chunk", false, balanced),
        ("a delta", true, balanced),
        ("the whole chunk, Process", false, process),
        ("a delta, Process", true, process),
    ] {
        let busy = Busy::new(&WorldOptions { deltas, durability, ..options() });
        let (at, chunk) = busy.columns[0][0][12].clone();
        let kinds: Vec<_> =
            chunk.palette().iter().map(|kind| kind.block).chain([cg_format::BlockId::new(0)]).collect();
        let place =
            BlockPos::new(at.pos.min_block().x + 5, at.pos.min_block().y + 5, at.pos.min_block().z + 5);
        let mut turn = 0;
        group.bench_function(name, |bench| {
            bench.iter_custom(|times| {
                let mut total = Duration::ZERO;
                for _ in 0..times {
                    turn += 1;
                    let block = kinds[turn % kinds.len().min(2)];
                    let begun = Instant::now();
                    let set =
                        busy.world.transaction(|tx| tx.set_block(busy.generator.dimension(), place, block));
                    total += begun.elapsed();
                    black_box(set.expect("is stored").seq);
                    busy.world.flush_queue();
                }
                total
            });
        });
    }
    let mut busy = Busy::new(&WorldOptions { durability: Durability::Fast, ..options() });
    let (at, chunk) = busy.columns[0][0][12].clone();
    let kinds: Vec<_> =
        chunk.palette().iter().map(|kind| kind.block).chain([cg_format::BlockId::new(0)]).collect();
    let lowest = at.pos.min_block();
    let place = BlockPos::new(lowest.x + 5, lowest.y + 5, lowest.z + 5);
    group.bench_function("submit, Fast <= 3 us", |bench| {
        bench.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for _ in 0..times {
                busy.turn += 1;
                let block = kinds[busy.turn % kinds.len().min(2)];
                let begun = Instant::now();
                let mut batch = WriteBatch::new();
                batch.set_block(busy.generator.dimension(), place, block);
                black_box(busy.world.submit(batch).expect("the queue has room"));
                total += begun.elapsed();
                busy.world.flush_queue();
            }
            total
        });
    });
    group.finish();
}

fn synced(criterion: &mut Criterion) {
    const CALLERS: u64 = 8;
    let mut busy = Busy::new(&options());
    let rows = busy.rows();
    let copy = busy.dir.path().join("copy");
    busy.world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
    let raw = raw::open(&copy, 128 << 20).expect("a world of ours");
    let mut sync = WriteOptions::default();
    sync.set_sync(true);
    let mut group = criterion.benchmark_group("busy: synced commits of a column");
    group.sample_size(10);
    group.bench_function("ref: RocksDB synced batch of all its rows <= 1.1", |bench| {
        bench.iter(|| {
            let (content, column) = busy.next_place();
            raw.write_opt(batch_of(&raw, &rows[content][column]), &sync).expect("the disk has room");
        });
    });
    group.bench_function("Safe", |bench| {
        bench.iter(|| {
            let world = busy.world.clone();
            save(&world, busy.next(), Durability::Safe)
        });
    });
    // Each caller has columns of its own; the time is that of all divided by their commits.
    let turn = AtomicU64::new(0);
    for durability in [Durability::Safe, Durability::SafeBatch] {
        group.bench_function(format!("{durability:?}, {CALLERS} callers, each"), |bench| {
            bench.iter_custom(|times| {
                let begun = Instant::now();
                std::thread::scope(|scope| {
                    for caller in 0..CALLERS {
                        let (busy, turn) = (&busy, &turn);
                        scope.spawn(move || {
                            for _ in 0..times {
                                let content = turn.fetch_add(1, Ordering::Relaxed) / (2 * CALLERS) % 2;
                                let column = caller * (COLUMNS as u64 / CALLERS);
                                save(
                                    &busy.world,
                                    &busy.columns[content as usize][column as usize],
                                    durability,
                                );
                            }
                        });
                    }
                });
                begun.elapsed() / CALLERS as u32
            });
        });
    }
    group.finish();
}

/// Measures the processor time that worlds use while nothing comes, in a tenth of a second after a commit in each.
fn idle(criterion: &mut Criterion) {
    const WORLDS: usize = 96;
    let options = WorldOptions { cache_bytes: 1 << 20, durability: Durability::Fast, ..options() };
    let worlds: Vec<World> = (0..WORLDS)
        .map(|_| World::builder().options(&options).in_memory().expect("nothing to reconcile"))
        .collect();
    let mut group = criterion.benchmark_group("busy: 96 idle worlds after a commit");
    group.sample_size(10);
    group.bench_function("processor time of 100 ms", |bench| {
        bench.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for time in 0..times {
                for world in &worlds {
                    let set = world.transaction(|tx| {
                        tx.set_property(Property::Seed, Some(time.to_le_bytes().to_vec()));
                        Ok::<_, Error>(())
                    });
                    set.expect("memory is left");
                    world.flush_queue();
                }
                let begun = processor_time();
                std::thread::sleep(Duration::from_millis(100));
                total += processor_time().saturating_sub(begun);
            }
            total
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(300));
    targets = submit, unchanged, one_block, synced, idle
}
criterion_main!(benches);
