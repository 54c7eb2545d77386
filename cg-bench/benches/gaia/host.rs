//! Operations on columns of a host whose chunks are in memory. Each function is one run.

use std::hint::black_box;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::{BlockId, Chunk, ChunkAt, Editor as _, Limits, LocalPos};
use cg_snapshot::file::SnapshotFile;
use cg_snapshot::memory::{Live, Memory, Watch};
use cg_snapshot::{
    Copied, Operation, Outcome, Place, RestoreJob, RestoreOptions, RestoreQueue, Snapshot, TickBudget,
    Unverifiable, capture,
};

use super::columns::{Column, Columns, Damaged, options};

/// A section as the document keeps it: a palette and an index of it for each block.
type Indexes = (ChunkAt, Vec<BlockId>, Vec<u16>);

struct Quiet;

impl Watch for Quiet {}

/// Times an operation on each column.
fn each<T>(columns: &Columns, mut operation: impl FnMut(&Column, usize) -> T) -> Vec<Duration> {
    let timed = |(index, column)| {
        let began = Instant::now();
        let result = operation(column, index);
        let took = began.elapsed();
        drop(black_box(result));
        took
    };
    (0..).zip(&columns.all).map(timed).collect()
}

/// Checks that a run has told all changes and left the columns as they were captured.
fn check(columns: &Columns, host: &Memory, told: u64, damaged: &Damaged) {
    assert_eq!(told, damaged.blocks, "blocks that were told");
    let last = columns.all.last().expect("not empty");
    let now = capture(host, &columns.catalog, last.region, &options()).expect("memory is left");
    assert_eq!(now, *last.snapshot, "the column is restored");
}

/// Restores each column, and is told each changed block.
pub(super) fn restore(columns: &Columns, damaged: &Damaged) -> Vec<Duration> {
    let mut host = columns.own(&damaged.host);
    let mut told = 0;
    let took = each(columns, |column, _| {
        let snapshot = Arc::clone(&column.snapshot);
        let job = RestoreJob::new(snapshot, &columns.catalog, RestoreOptions::default());
        let mut observe = |change| {
            black_box(change);
            told += 1;
        };
        job.expect("it fits").run(&mut host, &mut observe).expect("memory takes all")
    });
    check(columns, &host, told, damaged);
    took
}

/// The same as the document shows it: every block is looked at, and set and told if it differs.
pub(super) fn by_block(columns: &Columns, damaged: &Damaged) -> Vec<Duration> {
    let mut host = columns.own(&damaged.host);
    let saved: Vec<Vec<Indexes>> = columns.all.iter().map(|column| as_indexes(&column.snapshot)).collect();
    let schema = columns.catalog.current_schema();
    let mut told = 0;
    let took = each(columns, |column, index| {
        for (at, palette, indexes) in &saved[index] {
            host.edit(*at, |live| {
                for (cell, index) in LocalPos::all().zip(indexes) {
                    let pos = at.pos.block(cell);
                    let new = palette[usize::from(*index)];
                    if column.region.area().contains(pos) && live.block(cell) != new {
                        live.set_block(cell, new, &schema).expect("known");
                        black_box((at.dimension, pos, new));
                        told += 1;
                    }
                }
            });
        }
    });
    assert_eq!(told, damaged.blocks, "blocks that were told");
    took
}

fn as_indexes(snapshot: &Snapshot) -> Vec<Indexes> {
    let section = |(section, place): (cg_snapshot::Section, Place<'_>)| {
        let Place::Kept(kept) = place else { return None };
        let chunk = snapshot.decode(section.at, kept).expect("sound");
        let palette: Vec<BlockId> = chunk.palette().iter().map(|entry| entry.block).collect();
        let index = |cell| palette.iter().position(|kind| *kind == chunk.block(cell)).unwrap_or(0) as u16;
        let indexes = LocalPos::all().map(index).collect();
        Some((section.at, palette, indexes))
    };
    snapshot.sections().filter_map(section).collect()
}

/// Copies each column within a tick of a queue.
pub(super) fn copy(columns: &Columns) -> Vec<Duration> {
    let mut host = Live::new(columns.own(&columns.host), Quiet);
    let (mut queue, clock) = (RestoreQueue::new(), Instant::now());
    each(columns, |column, _| copied(columns, column, &mut host, &mut queue, clock))
}

fn copied(
    columns: &Columns,
    column: &Column,
    host: &mut Live<Quiet>,
    queue: &mut RestoreQueue,
    clock: Instant,
) -> Arc<Copied> {
    let handle = queue.handle().submit(Operation::Copy { region: column.region });
    let budget = TickBudget { time: Duration::from_secs(60), ..TickBudget::default() };
    queue.run(host, &columns.catalog, &budget, || clock.elapsed());
    match handle.outcome() {
        Some(Outcome::Copied(copied)) => copied,
        other => panic!("{other:?}"),
    }
}

/// Clones each chunk, as a server copies the sections that it goes on changing.
pub(super) fn clone(columns: &Columns) -> Vec<Duration> {
    let mut host = columns.own(&columns.host);
    each(columns, |column, _| {
        let mut clone = |at: &ChunkAt| {
            let chunk = host.load(*at).unwrap_or_else(|never| match never {})?;
            Some(Chunk::clone(&chunk))
        };
        column.at.iter().map(&mut clone).collect::<Vec<_>>()
    })
}

/// Makes a snapshot of the copy of each column.
pub(super) fn capture_copy(columns: &Columns) -> Vec<Duration> {
    let mut host = Live::new(columns.own(&columns.host), Quiet);
    let (mut queue, clock) = (RestoreQueue::new(), Instant::now());
    let copies: Vec<_> =
        columns.all.iter().map(|column| copied(columns, column, &mut host, &mut queue, clock)).collect();
    each(columns, |column, index| {
        let made = capture(&*copies[index], &columns.catalog, column.region, &options());
        made.expect("memory is left")
    })
}

/// Makes a snapshot of each column of the host itself.
pub(super) fn capture_host(columns: &Columns) -> Vec<Duration> {
    let host = columns.own(&columns.host);
    each(columns, |column, _| {
        capture(&host, &columns.catalog, column.region, &options()).expect("memory is left")
    })
}

/// Reads the file of each column from its bytes, and checks it.
pub(super) fn read(columns: &Columns) -> Vec<Duration> {
    each(columns, |column, _| {
        let file = SnapshotFile::open(Cursor::new(&column.file), Limits::default());
        file.and_then(|mut file| file.load(Unverifiable::Fail)).expect("sound")
    })
}

/// Copies the bytes of each different section of each column.
pub(super) fn copy_bytes(columns: &Columns) -> Vec<Duration> {
    each(columns, |column, _| {
        let mut bytes = Vec::with_capacity(column.snapshot.memory_bytes());
        column.snapshot.kept().for_each(|section| bytes.extend_from_slice(section.bytes()));
        bytes
    })
}
