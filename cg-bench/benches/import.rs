//! `cg import` of real saves, against another reader that parses the same columns and keeps nothing.
//!
//! The files are those of `mca` in `CG_WORLDS` that hold columns, 1.18 to 1.21. Each goes into a new world on the disk:
//! read, decoded, named, encoded, committed, and synced when the file is done; what `cg import` does except making the
//! world. The reference is handed each file in memory, parses every column with its sections, biomes and light, and looks
//! up the name of every cell, section by section.
//!
//! An import decodes on this many threads and commits on one more, so `1` is two threads that wait for each other. The
//! reference has one.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::fs;
use std::hint::black_box;
use std::io::Cursor;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_anvil::import::{ImportOptions, import};
use cg_bench::saves::regions;
use cg_store::{World, WorldOptions};
use criterion::{
    BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use fastanvil::{JavaChunk, SectionTower};
use tempfile::TempDir;

/// Counts of the content that was read, so that both sides are seen to read the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Amount {
    columns: u64,
    /// With blocks: what a world stores as a chunk.
    sections: u64,
}

/// Parses every column of a file and looks at every cell.
fn parse(file: &Path) -> Amount {
    let bytes = fs::read(file).expect("a readable file");
    let mut region = fastanvil::Region::from_stream(Cursor::new(bytes)).expect("a region");
    let mut amount = Amount::default();
    for column in region.iter() {
        let column = column.expect("a sound slot");
        let Ok(JavaChunk::Post18(column)) = JavaChunk::from_bytes(&column.data) else {
            panic!("{}: a column of another layout", file.display());
        };
        amount.columns += 1;
        let sections = column.sections.as_ref().map(SectionTower::sections).unwrap_or_default();
        for states in sections.iter().map(|section| &section.block_states) {
            let palette = states.palette();
            amount.sections += u64::from(!palette.is_empty());
            match states.try_iter_indices() {
                Some(indices) => {
                    for index in indices {
                        black_box(palette[index].name());
                    }
                }
                None => {
                    for state in palette {
                        black_box(state.name());
                    }
                }
            }
        }
    }
    amount
}

/// A new world for each file.
struct Targets {
    worlds: Vec<World>,
    /// Removed when the worlds are dropped.
    _dir: TempDir,
}

impl Targets {
    fn new(count: usize) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        // As the tool opens them.
        let options = WorldOptions { cache_bytes: 32 << 20, ..WorldOptions::default() };
        let create =
            |index: usize| World::builder().options(&options).create(dir.path().join(index.to_string()));
        let worlds = (0..count).map(|index| create(index).expect("an empty directory")).collect();
        Self { worlds, _dir: dir }
    }
}

/// Imports each file into its world. The worlds are given back, so that removing them takes no part.
fn import_all(files: &[PathBuf], targets: Targets, threads: Option<NonZero<usize>>) -> (Amount, Targets) {
    let options = ImportOptions { threads, ..ImportOptions::default() };
    let mut amount = Amount::default();
    for (file, world) in files.iter().zip(&targets.worlds) {
        let report = import(file, world, &options, |_| {}).expect("a sound save");
        amount.columns += report.imported_columns;
        amount.sections += report.imported_chunks;
    }
    (amount, targets)
}

fn columns(criterion: &mut Criterion) {
    let Some(files) = regions("the import") else { return };
    let targets = || Targets::new(files.len());
    let expected: Amount = files.iter().map(|file| parse(file)).fold(Amount::default(), |sum, file| Amount {
        columns: sum.columns + file.columns,
        sections: sum.sections + file.sections,
    });
    let (imported, _) = import_all(&files, targets(), None);
    assert_eq!(imported, expected, "both read the same");

    let mut group = criterion.benchmark_group("import columns of real saves");
    group.throughput(Throughput::Elements(expected.columns)).sampling_mode(SamplingMode::Flat);
    group.bench_function("ref: fastanvil, parsing alone", |bench| {
        bench.iter(|| files.iter().map(|file| parse(file).columns).sum::<u64>());
    });
    for (name, threads) in [("as many as cores", None), ("1", NonZero::new(1))] {
        group.bench_function(BenchmarkId::new("import, threads", name), |bench| {
            bench.iter_batched(
                targets,
                |targets| import_all(&files, targets, threads),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(20))
        .warm_up_time(Duration::from_millis(500));
    targets = columns
}
criterion_main!(benches);
