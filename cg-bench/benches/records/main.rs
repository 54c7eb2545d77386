//! Spatial records against what a host would do without them.
//!
//! | group | references |
//! |---|---|
//! | `records: insert 1,000 into N` | RocksDB alone writes a thousand rows under their ids in one batch; `SQLite` writes them and their places in an R*Tree in one transaction |
//! | `records: area of 32 blocks of N` | RocksDB alone looks at every row; `SQLite` asks its R*Tree, and returns what lies in the box alone |
//!
//! None is held against a limit: a scan of everything is what a host does that has no tree. N is 10,000 and 100,000 and,
//! in a full run, 1,000,000. `SQLite` takes part with the feature `peers`, which compiles it.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

use cg_format::entity::EntityPos;
use cg_format::record::{Record, RecordView};
use cg_format::{BlockBox, BlockPos, Dimension, RecordId};
use cg_store::records::RecordQuery;
use cg_store::{Error, World, WorldOptions};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rocksdb::{DB, IteratorMode, Options, WriteBatch};
use tempfile::TempDir;
use uuid::Uuid;

/// Records of a leaf of 16 blocks, about: a busy town.
const RECORDS_PER_LEAF: f64 = 8.0;
/// How many are inserted at once.
const BATCH: u64 = 1000;
/// The side of the area that is asked for.
const AREA_BLOCKS: i64 = 32;

#[cfg(feature = "peers")]
mod sqlite;

#[cfg(feature = "peers")]
fn sqlite(dir: &TempDir, count: u64) -> sqlite::Sqlite {
    let mut sqlite = sqlite::Sqlite::create(&dir.path().join("records.sqlite")).expect("an empty directory");
    for first in (0..count).step_by(BATCH as usize) {
        sqlite.insert(&part(count, first)).expect("the disk has room");
    }
    sqlite
}

/// Numbers from a seed, the same every time.
fn hashed(mut n: u64) -> u64 {
    n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// The side of a cube in which this many records have the stated density.
fn side_blocks(count: u64) -> f64 {
    (count as f64 / RECORDS_PER_LEAF).cbrt() * 16.0
}

/// The nth record of a world of this many.
fn nth(count: u64, n: u64) -> (RecordId, Record) {
    let part = |axis: u64| (hashed(n * 4 + axis) >> 11) as f64 / (1_u64 << 53) as f64 * side_blocks(count);
    let position =
        EntityPos::from_f64(Dimension::new(0), [part(0), part(1), part(2)]).expect("small numbers");
    let record = Record::new(position, "game:sign", n as i64, vec![n as u8; 32]).expect("a short kind");
    let id = Uuid::from_u64_pair(hashed(n * 4 + 3), n);
    (RecordId::new(id), record)
}

/// The nth area that is asked for.
fn area(count: u64, n: u64) -> BlockBox {
    let room = (side_blocks(count) as i64 - AREA_BLOCKS).max(1);
    let part = |axis: u64| (hashed(n * 3 + axis) % room as u64) as i64;
    let (x, y, z) = (part(0), part(1), part(2));
    let last = AREA_BLOCKS - 1;
    BlockBox::new(BlockPos::new(x, y, z), BlockPos::new(x + last, y + last, z + last))
}

/// Worlds of a full run, or of one that only shows that everything runs.
fn counts() -> &'static [u64] {
    let is_short = std::env::args().any(|arg| arg == "--quick" || arg == "--test");
    if is_short { &[10_000, 100_000] } else { &[10_000, 100_000, 1_000_000] }
}

/// A world with records in sorted files.
fn world(dir: &TempDir, count: u64) -> World {
    let path = dir.path().join("world");
    let world = World::builder().options(&WorldOptions::process()).create(&path).expect("an empty directory");
    world.registry().register_dimension("game:overworld").expect("a new name");
    world.records().insert((0..count).map(|n| nth(count, n))).expect("the disk has room");
    world.close().expect("the disk has room");
    drop(world);
    World::builder().options(&WorldOptions::process()).open(&path).expect("just closed")
}

/// The same records under their ids, as RocksDB alone keeps them.
fn flat(dir: &TempDir, count: u64) -> DB {
    let mut options = Options::default();
    options.create_if_missing(true);
    let db = DB::open(&options, dir.path().join("flat")).expect("an empty directory");
    for first in (0..count).step_by(BATCH as usize) {
        db.write(flat_batch(count, first)).expect("the disk has room");
    }
    db.flush().expect("the disk has room");
    db
}

fn flat_batch(count: u64, first: u64) -> WriteBatch {
    let mut batch = WriteBatch::default();
    for n in first..first + BATCH {
        let (id, record) = nth(count, n);
        let mut row = Vec::new();
        record.encode(&mut row);
        batch.put(id.to_bytes(), row);
    }
    batch
}

fn insert(criterion: &mut Criterion) {
    for &count in counts() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (world, flat) = (world(&dir, count), flat(&dir, count));
        let mut group = criterion.benchmark_group(format!("records: insert 1,000 into {count}"));
        group.throughput(Throughput::Elements(BATCH));
        let mut next = count;
        let mut first = || {
            next += BATCH;
            next
        };
        group.bench_function("ref: RocksDB batch", |bench| {
            bench.iter_batched(
                || flat_batch(count, first()),
                |batch| flat.write(batch).expect("the disk has room"),
                BatchSize::SmallInput,
            );
        });
        #[cfg(feature = "peers")]
        {
            let mut sqlite = sqlite(&dir, count);
            group.bench_function("ref: SQLite with an R*Tree", |bench| {
                bench.iter_batched(
                    || part(count, first()),
                    |records| sqlite.insert(&records).expect("the disk has room"),
                    BatchSize::SmallInput,
                );
            });
        }
        group.bench_function("insert", |bench| {
            bench.iter_batched(
                || part(count, first()),
                |records| {
                    world
                        .transaction(|tx| {
                            for (id, record) in records {
                                tx.put_record(id, record);
                            }
                            Ok::<_, Error>(())
                        })
                        .expect("the disk has room")
                },
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

fn part(count: u64, first: u64) -> Vec<(RecordId, Record)> {
    (first..first + BATCH).map(|n| nth(count, n)).collect()
}

fn query(criterion: &mut Criterion) {
    for &count in counts() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (world, flat) = (world(&dir, count), flat(&dir, count));
        let mut group = criterion.benchmark_group(format!("records: area of 32 blocks of {count}"));
        let mut n = 0;
        let mut next = || {
            n += 1;
            area(count, n)
        };
        group.bench_function("ref: flat RocksDB scan", |bench| {
            bench.iter(|| {
                let area = next();
                let found = flat.iterator(IteratorMode::Start).filter(|row| {
                    let (_, row) = row.as_ref().expect("sound files");
                    let record = RecordView::decode(row).expect("a sound row");
                    area.contains(record.position.block())
                });
                black_box(found.count())
            });
        });
        #[cfg(feature = "peers")]
        {
            let sqlite = sqlite(&dir, count);
            group.bench_function("ref: SQLite with an R*Tree", |bench| {
                bench.iter(|| black_box(sqlite.payload_bytes_in(&next()).expect("a sound file")));
            });
        }
        let records = world.records();
        group.bench_function("for_each_in", |bench| {
            bench.iter(|| {
                let query = RecordQuery::new(Dimension::new(0), next());
                let mut found = 0;
                records
                    .for_each_in(&query, |record| {
                        found += record.expect("sound").1.payload.len();
                        ControlFlow::<()>::Continue(())
                    })
                    .expect("sound files");
                black_box(found)
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_millis(300));
    targets = insert, query
}
criterion_main!(benches);
