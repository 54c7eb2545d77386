//! LMDB: a tree in a mapped file, one writer, readers that copy nothing.
//!
//! `lmdb-rkv` opens an environment without `unsafe`, which `heed` does not.

use std::path::Path;
use std::sync::Arc;

use cg_format::{ChunkAt, key};
use lmdb::{Cursor as _, Database, DatabaseFlags, Environment, Transaction as _, WriteFlags};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Role, Setting, Subject};
use crate::failure::Failure;

/// Columns of one transaction.
const TOGETHER: usize = 64;
/// The most that the file may grow to; only its used pages take disk.
const MAP_BYTES: usize = 64 << 30;

pub(super) struct Lmdb;

impl Kind for Lmdb {
    fn about(&self) -> About {
        About {
            name: "LMDB".to_owned(),
            role: Role::Rival,
            version: "LMDB 0.9.24, crate lmdb-rkv 0.14.0".to_owned(),
            durability: "columns wait in the host for a transaction of 64; each transaction is synced, also where less is \
                         asked"
                .to_owned(),
            options: "one key a chunk; LZ4 for each chunk; no cache of its own: mapped pages are the system's".to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        std::fs::create_dir_all(setting.dir)?;
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let table = Table::open(setting.dir)?;
        Ok(Box::new(Host::new(Box::new(table), Compression::Lz4, TOGETHER, setting)))
    }
}

struct Table {
    environment: Arc<Environment>,
    database: Database,
}

impl Table {
    fn open(dir: &Path) -> Result<Self, lmdb::Error> {
        let environment = Environment::new().set_map_size(MAP_BYTES).open(dir)?;
        let database = environment.create_db(None, DatabaseFlags::empty())?;
        Ok(Self { environment: Arc::new(environment), database })
    }
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], _synced: bool) -> Result<(), Failure> {
        let mut transaction = self.environment.begin_rw_txn()?;
        for (at, row) in rows {
            transaction.put(self.database, &key::chunk(*at), row, WriteFlags::empty())?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        let transaction = self.environment.begin_ro_txn()?;
        for at in places {
            match transaction.get(self.database, &key::chunk(*at)) {
                Ok(row) => take(Some(row))?,
                Err(lmdb::Error::NotFound) => take(None)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(transaction.commit()?)
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        let transaction = self.environment.begin_ro_txn()?;
        let mut cursor = transaction.open_ro_cursor(self.database)?;
        for row in cursor.iter() {
            take(Some(row?.1))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(self.environment.sync(true)?)
    }

    fn share(&self) -> Option<Box<dyn Rows + Send>> {
        Some(Box::new(Self { environment: Arc::clone(&self.environment), database: self.database }))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.environment.sync(true)?)
    }
}
