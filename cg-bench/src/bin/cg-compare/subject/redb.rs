//! redb: a copy-on-write tree in one file, in Rust.

use std::path::PathBuf;
use std::sync::Arc;

use cg_format::{ChunkAt, key};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Role, Setting, Subject};
use crate::failure::Failure;

/// Columns of one transaction.
const TOGETHER: usize = 64;
const CHUNKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("chunks");

pub(super) struct Redb;

fn file(setting: &Setting<'_>) -> PathBuf {
    setting.dir.join("world.redb")
}

impl Kind for Redb {
    fn about(&self) -> About {
        About {
            name: "redb".to_owned(),
            role: Role::Rival,
            version: "redb 4.1.0, the newest that Rust 1.89 compiles".to_owned(),
            durability: "columns wait in the host for a transaction of 64; each transaction is synced, also where less is \
                         asked"
                .to_owned(),
            options: "one key a chunk; LZ4 for each chunk; cached pages".to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        std::fs::create_dir_all(setting.dir)?;
        let db = Database::create(file(setting))?;
        let transaction = db.begin_write()?;
        transaction.open_table(CHUNKS)?;
        transaction.commit()?;
        drop(db);
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let db = Database::builder().set_cache_size(setting.memory.blocks()).open(file(setting))?;
        Ok(Box::new(Host::new(Box::new(Table { db: Arc::new(db) }), Compression::Lz4, TOGETHER, setting)))
    }

    fn compact(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let mut db = Database::open(file(setting))?;
        while db.compact()? {}
        Ok(())
    }
}

struct Table {
    db: Arc<Database>,
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], _synced: bool) -> Result<(), Failure> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut table = transaction.open_table(CHUNKS)?;
            for (at, row) in rows {
                table.insert(key::chunk(*at).as_slice(), row.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        let table = self.db.begin_read()?.open_table(CHUNKS)?;
        for at in places {
            let row = table.get(key::chunk(*at).as_slice())?;
            take(row.as_ref().map(redb::AccessGuard::value))?;
        }
        Ok(())
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        let table = self.db.begin_read()?.open_table(CHUNKS)?;
        for row in table.iter()? {
            take(Some(row?.1.value()))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        // Every transaction was synced.
        Ok(())
    }

    fn share(&self) -> Option<Box<dyn Rows + Send>> {
        Some(Box::new(Self { db: Arc::clone(&self.db) }))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
