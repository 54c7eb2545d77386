//! The log of changes: what it costs a put, and what it saves a server that looks for changes among a million objects.
//!
//! | group | what is allowed |
//! |---|---|
//! | a put | 2 × the put of a world without a log |
//! | 10 of 1,000,000 objects changed | stated beside a scan of all objects |
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cg_store::engine::CommitSeq;
use cg_store::layer::values::{ValueKind, changed_values, keep_change_log, list_values, values};
use cg_store::{Error, World, WorldOptions};
use criterion::{Criterion, criterion_group, criterion_main};

/// Objects in each world.
const OBJECTS: u64 = 1_000_000;
/// Objects of one transaction while a world is filled.
const AT_ONCE: u64 = 1000;
/// Bytes of an object.
const LEN_BYTES: usize = 100;
/// How many objects change before they are asked for.
const CHANGED: u64 = 10;

fn key(n: u64) -> String {
    format!("block/{},{}/bricks", n / 1000, n % 1000)
}

/// A world with a million objects, and how often it was changed.
struct Filled {
    world: World,
    turn: u64,
}

impl Filled {
    fn new(dir: &std::path::Path, has_log: bool) -> Self {
        let options = WorldOptions { min_free_bytes: Some(0), ..WorldOptions::process() };
        let world = World::builder().options(&options).create(dir).expect("an empty directory");
        if has_log {
            keep_change_log(&world).expect("begins");
        }
        let mut filled = Self { world, turn: 0 };
        for first in (0..OBJECTS).step_by(AT_ONCE as usize) {
            filled.put(first, 1, AT_ONCE);
        }
        filled.world.flush().expect("syncs");
        filled
    }

    /// Changes objects at equal distances in one transaction.
    fn put(&mut self, first: u64, step: u64, count: u64) {
        self.turn += 1;
        let bytes: Vec<u8> = self.turn.to_le_bytes().into_iter().cycle().take(LEN_BYTES).collect();
        let put = self.world.transaction(|tx| {
            (0..count).try_for_each(|n| tx.put_object(key((first + n * step) % OBJECTS), bytes.clone()))
        });
        put.expect("the disk has room");
    }

    fn measure_puts(&mut self, times: u64, count: u64) -> Duration {
        let begun = Instant::now();
        for turn in 0..times {
            self.put(turn * 7919, 104_729, count);
        }
        let elapsed = begun.elapsed();
        self.world.flush().expect("syncs");
        elapsed
    }

    /// Changes a few objects before each iteration; the time excludes that.
    fn measure_finding(&mut self, times: u64, find: impl Fn(&World, CommitSeq) -> u64) -> Duration {
        let mut total = Duration::ZERO;
        for _ in 0..times {
            let known = self.world.last_commit();
            self.put(self.turn * 7919, 104_729, CHANGED);
            self.world.flush().expect("syncs");
            let begun = Instant::now();
            let found = black_box(find(&self.world, known));
            total += begun.elapsed();
            assert_eq!(found, CHANGED, "all that changed are found, and no others");
        }
        total
    }
}

/// The objects that changed, by the log, with their bytes.
fn by_log(world: &World, known: CommitSeq) -> u64 {
    let found = world.read_view(|view| {
        let mut keys = Vec::new();
        changed_values(view, ValueKind::Objects, (known, None), |_, key| {
            keys.push(key.to_vec());
            ControlFlow::<()>::Continue(())
        })?;
        let found = values(view, ValueKind::Objects, &keys);
        Ok::<_, Error>(found.into_iter().filter(|found| matches!(found, Ok(Some(_)))).count() as u64)
    });
    found.expect("reads")
}

/// The same, by a look at each object.
fn by_scan(world: &World, known: CommitSeq) -> u64 {
    let found = world.read_view(|view| {
        let mut found = 0;
        list_values(view, ValueKind::Objects, b"", None, |_, value| {
            found += u64::from(value.is_ok_and(|(commit, _)| commit > known));
            ControlFlow::<()>::Continue(())
        })?;
        Ok::<_, Error>(found)
    });
    found.expect("reads")
}

fn changes(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut without = Filled::new(&dir.path().join("without"), false);
    let mut with = Filled::new(&dir.path().join("with"), true);

    for (name, count) in [("one object", 1), ("100 objects", 100)] {
        let mut group = criterion.benchmark_group(format!("log of changes: a put of {name}"));
        group.bench_function("ref: without a log <= 2", |bench| {
            bench.iter_custom(|times| without.measure_puts(times, count));
        });
        group.bench_function("with a log", |bench| {
            bench.iter_custom(|times| with.measure_puts(times, count));
        });
        group.finish();
    }

    let mut group = criterion.benchmark_group("log of changes: 10 of 1,000,000 objects changed");
    group.sample_size(10);
    group.bench_function("ref: by a scan of all objects", |bench| {
        bench.iter_custom(|times| without.measure_finding(times, by_scan));
    });
    group.bench_function("by the log", |bench| {
        bench.iter_custom(|times| with.measure_finding(times, by_log));
    });
    group.finish();
}

criterion_group!(benches, changes);
criterion_main!(benches);
