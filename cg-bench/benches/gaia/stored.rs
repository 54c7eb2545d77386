//! Operations on columns of a world on disk, each a transaction at `Process`. Each function is one run.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::world::Generator;
use cg_format::{Chunk, ChunkAt};
use cg_registry::Catalog;
use cg_snapshot::memory::Memory;
use cg_snapshot::{RestoreJob, RestoreOptions};
use cg_store::{Durability, Transaction, World, WorldOptions};
use tempfile::TempDir;

use super::columns::{Columns, Damaged};

/// A world that holds the columns.
pub(super) struct Stored {
    world: World,
    /// The chunks of each column as they are restored.
    finished: Vec<Vec<(ChunkAt, Arc<Chunk>)>>,
    /// Removed when the world is dropped.
    _dir: TempDir,
}

impl Stored {
    /// An empty world that knows the names of the columns.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = WorldOptions::process();
        let world =
            World::builder().options(&options).create(dir.path().join("world")).expect("an empty directory");
        world.registry().register(&Generator::registration()).expect("new names");
        Self { world, finished: Vec::new(), _dir: dir }
    }

    pub(super) fn catalog(&self) -> Catalog {
        Catalog::clone(&self.world.catalog())
    }

    /// Makes the chunks that [`save`](Self::save) saves.
    pub(super) fn finish(&mut self, columns: &Columns) {
        self.finished = columns.chunks(&columns.host);
    }

    /// Stores what a host has, column by column.
    fn put(&self, columns: &Columns, host: &Memory) {
        columns.chunks(host).iter().for_each(|chunks| self.save_column(chunks));
    }

    fn save_column(&self, chunks: &[(ChunkAt, Arc<Chunk>)]) {
        self.commit(|tx| {
            for (at, chunk) in chunks {
                tx.save(*at, Arc::clone(chunk));
            }
            Ok(())
        });
    }

    fn commit<T>(&self, write: impl FnOnce(&mut Transaction<'_>) -> Result<T, Box<dyn Error>>) -> T {
        self.world.transaction_at(Durability::Process, write).expect("the disk takes it").value
    }

    /// Restores each column.
    pub(super) fn restore(&self, columns: &Columns, damaged: &Damaged) -> Vec<Duration> {
        self.put(columns, &damaged.host);
        let (catalog, mut told) = (self.world.catalog(), 0);
        let mut restore = |snapshot| {
            let began = Instant::now();
            let job = RestoreJob::new(snapshot, &catalog, RestoreOptions::default());
            let mut job = job.expect("its names are registered");
            let mut observe = |change| {
                black_box(change);
                told += 1;
            };
            self.commit(|tx| Ok(job.run(tx, &mut observe)?));
            began.elapsed()
        };
        let took = columns.all.iter().map(|column| restore(Arc::clone(&column.snapshot))).collect();
        assert_eq!(told, damaged.blocks, "blocks that were told");
        took
    }

    /// Saves the finished chunks of each column.
    pub(super) fn save(&self, columns: &Columns, damaged: &Damaged) -> Vec<Duration> {
        self.put(columns, &damaged.host);
        let save = |chunks: &Vec<_>| {
            let began = Instant::now();
            self.save_column(chunks);
            began.elapsed()
        };
        self.finished.iter().map(save).collect()
    }
}
