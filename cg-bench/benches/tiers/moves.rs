//! Chunks moved from tier to tier by ticks that have all the time they want, on one core and on two.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cg_bench::raw::{Db, family};
use cg_bench::stored::{Stored, area, cluster_tier, open_raw, world_options};
use cg_format::{Space, Tier, key};
use cg_store::{World, WorldOptions};
use cg_tiering::{GameTick, TierPolicy};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use rocksdb::{IteratorMode, WriteBatch};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

const ENOUGH: Duration = Duration::from_secs(3600);
const DAY: u64 = 24 * 3600 * GameTick::PER_SECOND;

/// Rows of a family.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn moves(criterion: &mut Criterion, [hot, warm, cold]: &[Stored; 3]) {
    let mut group = criterion.benchmark_group("tiers: move");
    group.throughput(Throughput::Elements(area().count() as u64)).sampling_mode(SamplingMode::Flat);
    let cores: CpuSet = sched_getaffinity(None).expect("the system tells");
    for (from, to) in [(hot, warm), (hot, cold), (warm, cold), (warm, hot), (cold, hot)] {
        let way = format!("{:?} to {:?}", from.tier, to.tier);
        let (going, coming) = (rows(&from.open_raw(), from.space()), rows(&to.open_raw(), to.space()));
        group.bench_function(BenchmarkId::new("ref: read and write the rows", &way), |bench| {
            bench.iter_custom(|times| each(times, |copy| move_raw(from, to, &going, &coming, copy)));
        });
        for (count, name) in [(1, "1 core"), (2, "2 cores")] {
            run_on(&cores, count);
            group.bench_function(BenchmarkId::new(format!("tick, {name}"), &way), |bench| {
                bench.iter_custom(|times| each(times, |copy| move_all(from, to.tier, copy)));
            });
            run_on(&cores, usize::MAX);
        }
    }
    group.finish();
}

/// Times something so often, each time in a directory that is not there yet.
fn each(times: u64, mut once: impl FnMut(&Path) -> Duration) -> Duration {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut run = |_| {
        let copy = dir.path().join("copy");
        let time = once(&copy);
        fs::remove_dir_all(&copy).expect("ours");
        time
    };
    (0..times).map(&mut run).sum()
}

/// Moves all chunks of a copy of a world, and times the ticks that do it.
fn move_all(from: &Stored, to: Tier, copy: &Path) -> Duration {
    checkpoint(from, copy);
    let hot_at_once = TierPolicy { promote_after_ticks: 0, ..TierPolicy::default() };
    let options = world_options(to);
    let tiers = if to == Tier::L0 { hot_at_once } else { options.tiers };
    // The threads of these resources are begun on the cores that the process has now.
    let world =
        World::builder().options(&WorldOptions { tiers, ..options }).open(copy).expect("a sound copy");
    let now = if to == Tier::L0 {
        let kept = world.tiers().keep_loaded(from.dimension, &area()).expect("a box that can be kept");
        // As long as the world is open.
        std::mem::forget(kept);
        GameTick::new(1)
    } else {
        GameTick::new(DAY)
    };
    let (mut left, start) = (area().count() as u64, Instant::now());
    while left > 0 {
        let moves = world.tick(now, &[], ENOUGH).expect("ticks").moves;
        assert_eq!((moves.refused, moves.conflicts), (0, 0), "nothing is in the way");
        left -= [moves.promoted, moves.warmed, moves.cooled][to as usize];
        assert!(start.elapsed() < ENOUGH, "{left} chunks are not moved");
    }
    start.elapsed()
}

/// RocksDB alone: reads each row that goes, and writes those that come in one batch for each of the larger rows, whose
/// bytes are there already.
fn move_raw(from: &Stored, to: &Stored, going: &Rows, coming: &Rows, copy: &Path) -> Duration {
    checkpoint(from, copy);
    let raw = open_raw(copy);
    let (goes, comes) = (family(&raw, from.space()), family(&raw, to.space()));
    let start = Instant::now();
    let (mut going, mut coming) = (going.iter().peekable(), coming.iter().peekable());
    // Rows of all tiers sort as the cubes do that they are of.
    while let (Some((gone, _)), Some((came, _))) = (going.peek(), coming.peek()) {
        let larger = cluster_tier(from.tier.max(to.tier)).expect("one of both is a cluster");
        let cube = |stored: &Stored, key: &[u8]| {
            let pos = match cluster_tier(stored.tier) {
                None => key::decode_chunk(key).expect("a key").pos,
                Some(tier) => key::decode_cluster(tier, key).expect("a key").1.min_chunk(),
            };
            pos.cluster(larger)
        };
        let (this, mut batch) = (cube(from, gone), WriteBatch::default());
        assert_eq!(this, cube(to, came), "both tiers have the same chunks");
        while let Some((key, row)) = going.next_if(|(key, _)| cube(from, key) == this) {
            let found = raw.get_pinned_cf(goes, key).expect("sound files").expect("a stored row");
            assert_eq!(found.len(), row.len());
            // What is promoted stays where it is, as a shadow.
            if from.tier < to.tier {
                batch.delete_cf(goes, key);
            }
        }
        while let Some((key, row)) = coming.next_if(|(key, _)| cube(to, key) == this) {
            batch.put_cf(comes, key, row);
        }
        raw.write(batch).expect("the disk has room");
    }
    start.elapsed()
}

fn checkpoint(stored: &Stored, copy: &Path) {
    stored.open().checkpoint(copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
}

fn rows(raw: &Db, space: Space) -> Rows {
    let all = raw.iterator_cf(family(raw, space), IteratorMode::Start);
    let all: Rows = all
        .map(|row| row.map(|(key, row)| (key.into(), row.into())))
        .collect::<Result<_, _>>()
        .expect("sound files");
    assert!(!all.is_empty());
    all
}

/// Lets every thread of the process run on the first few of these cores only.
fn run_on(cores: &CpuSet, count: usize) {
    let mut some = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
    usable.take(count).for_each(|core| some.set(core));
    for thread in fs::read_dir("/proc/self/task").expect("Linux").flatten() {
        let id = thread.file_name().to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
        // A thread that has just ended needs no core.
        let _ = sched_setaffinity(id, &some);
    }
}
