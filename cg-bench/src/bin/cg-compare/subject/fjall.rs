//! fjall: sorted runs with a log, in Rust.

use cg_format::{ChunkAt, key};
use fjall::{Config, Keyspace, PartitionCreateOptions, PartitionHandle, PersistMode};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Role, Setting, Subject};
use crate::failure::Failure;

pub(super) struct Fjall;

impl Kind for Fjall {
    fn about(&self) -> About {
        About {
            name: "fjall".to_owned(),
            role: Role::Rival,
            version: "fjall 2.11.2, the newest that Rust 1.89 compiles".to_owned(),
            durability: "a save is in the log when it returns (a killed process loses nothing); synced: fdatasync of the log"
                .to_owned(),
            options: "one key a chunk, one batch a column; LZ4, blocks of 8 KiB, cached blocks".to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let table = Table::open(setting)?;
        Ok(Box::new(Host::new(Box::new(table), Compression::ByTheStore, 1, setting)))
    }

    fn compact(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let table = Table::open(setting)?;
        table.partition.rotate_memtable_and_wait()?;
        table.partition.major_compact()?;
        Ok(table.keyspace.persist(PersistMode::SyncAll)?)
    }
}

struct Table {
    keyspace: Keyspace,
    partition: PartitionHandle,
}

impl Table {
    fn open(setting: &Setting<'_>) -> Result<Self, fjall::Error> {
        let config = Config::new(setting.dir).cache_size(setting.memory.blocks() as u64);
        let keyspace = config.flush_workers(1).compaction_workers(1).open()?;
        let options = PartitionCreateOptions::default().block_size(8 << 10);
        let partition = keyspace.open_partition("chunks", options)?;
        Ok(Self { keyspace, partition })
    }
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], synced: bool) -> Result<(), Failure> {
        let mode = if synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.keyspace.batch().durability(Some(mode));
        for (at, row) in rows {
            batch.insert(&self.partition, key::chunk(*at), row.as_slice());
        }
        Ok(batch.commit()?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        for at in places {
            take(self.partition.get(key::chunk(*at))?.as_deref())?;
        }
        Ok(())
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        for row in self.partition.iter() {
            take(Some(&row?.1))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(self.keyspace.persist(PersistMode::SyncData)?)
    }

    fn share(&self) -> Option<Box<dyn Rows + Send>> {
        Some(Box::new(Self { keyspace: self.keyspace.clone(), partition: self.partition.clone() }))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.keyspace.persist(PersistMode::SyncAll)?)
    }
}
