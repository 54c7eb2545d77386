//! Regions captured and put back, against a restore block by block in the same run.
//!
//! | region | what it is |
//! |---|---|
//! | generated | 24×24 columns of 24 sections, 56,623,104 blocks, from a seed, all different where there is ground |
//! | real saves | the region files of `mca` in `CG_WORLDS`, each as it is |
//!
//! The host keeps its chunks in a map and counts the changes that it is told.
//!
//! | damage | what it is |
//! |---|---|
//! | scattered | random cells, so that nearly every section is touched |
//! | clustered | craters of 20 blocks; at 100 % everything is air |
//!
//! One iteration is the whole region, or all saves. With `--quick` and `--test` the generated region has 4×4 columns, and
//! that many are taken of one save. What a name filter leaves out is not prepared either.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod arena;
mod by_block;
mod queue;
mod real;
mod store;

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::memory::Memory;
use cg_snapshot::{RestoreJob, RestoreOptions, Unverifiable, capture};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

use arena::{Arena, Damage, describe, options};

const CASES: [(Damage, u64); 6] = [
    (Damage::Clustered, 1),
    (Damage::Clustered, 25),
    (Damage::Clustered, 100),
    (Damage::Scattered, 1),
    (Damage::Scattered, 25),
    (Damage::Scattered, 100),
];

fn case(damage: Damage, percent: u64) -> String {
    format!("{percent} % {damage:?}").to_lowercase()
}

/// Restores, and counts what is told.
fn restore(arena: &Arena, host: &mut Memory) -> u64 {
    let snapshot = Arc::clone(&arena.snapshot);
    let mut job = RestoreJob::new(snapshot, &arena.catalog, RestoreOptions::default()).expect("it fits");
    let mut told = 0;
    job.run(host, &mut |change| {
        black_box(change);
        told += 1;
    })
    .expect("memory takes all");
    told
}

fn generated() -> Vec<Arena> {
    vec![Arena::generated()]
}

fn capturing(criterion: &mut Criterion) {
    capturing_of(criterion, "", "generated", generated);
    if real::are_there() {
        capturing_of(criterion, " of real saves", "real saves", real::arenas);
    }
}

fn capturing_of(criterion: &mut Criterion, of: &str, name: &str, arenas: fn() -> Vec<Arena>) {
    let arenas = LazyCell::new(|| {
        let arenas = arenas();
        describe(name, &arenas);
        arenas
    });
    let mut group = criterion.benchmark_group(format!("snapshot: capture{of}"));
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("from a host", |bench| {
        bench.iter_with_large_drop(|| {
            let captured = arenas.iter().map(|arena| {
                capture(&arena.host, &arena.catalog, arena.region, &options()).expect("memory is left")
            });
            captured.collect::<Vec<_>>()
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group(format!("snapshot: file{of}"));
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    let write = |arena: &Arena| arena.snapshot.to_bytes(&FileOptions::default()).expect("sound");
    group.bench_function("write, LZ4", |bench| {
        bench.iter_with_large_drop(|| arenas.iter().map(write).collect::<Vec<_>>());
    });
    group.bench_function("read, LZ4", |bench| {
        let files: Vec<Vec<u8>> = arenas.iter().map(write).collect();
        bench.iter_with_large_drop(|| {
            let read = |bytes| {
                let file = SnapshotFile::open(std::io::Cursor::new(bytes), cg_format::Limits::default());
                file.and_then(|mut file| file.load(Unverifiable::Fail)).expect("sound")
            };
            files.iter().map(read).collect::<Vec<_>>()
        });
    });
    group.finish();
}

fn restoring(criterion: &mut Criterion) {
    restoring_of(criterion, "", generated);
    if real::are_there() {
        restoring_of(criterion, " of real saves", real::arenas);
    }
}

fn restoring_of(criterion: &mut Criterion, of: &str, arenas: fn() -> Vec<Arena>) {
    let arenas = LazyCell::new(arenas);
    let saved = LazyCell::new(|| {
        arenas.iter().map(|arena| by_block::as_indexes(&arena.snapshot)).collect::<Vec<_>>()
    });
    for (damage, percent) in CASES {
        let name = format!("snapshot: restore{of}, {}", case(damage, percent));
        let damaged = LazyCell::new(|| {
            let damaged: Vec<_> = arenas.iter().map(|arena| arena.damaged(damage, percent)).collect();
            let differ: u64 = damaged.iter().map(|(_, blocks)| blocks).sum();
            let all: u64 = arenas.iter().map(Arena::blocks).sum();
            let share = 100.0 * differ as f64 / all.max(1) as f64;
            eprintln!("{name}: {differ} blocks differ, {share:.2} %");
            damaged
        });
        let hosts = || damaged.iter().map(|(host, _)| host.clone()).collect::<Vec<_>>();
        let mut group = criterion.benchmark_group(&name);
        group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
        group.bench_function("to a host", |bench| {
            bench.iter_batched(
                hosts,
                |mut hosts| {
                    for ((arena, host), (_, blocks)) in arenas.iter().zip(&mut hosts).zip(damaged.iter()) {
                        let told = restore(arena, host);
                        assert!(told >= *blocks, "{told}");
                    }
                    hosts
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function("ref: block by block", |bench| {
            bench.iter_batched(
                hosts,
                |mut hosts| {
                    for ((arena, host), saved) in arenas.iter().zip(&mut hosts).zip(saved.iter()) {
                        black_box(by_block::restore(arena, saved, host));
                    }
                    hosts
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, capturing, restoring, store::restoring, queue::restoring);
criterion_main!(benches);
