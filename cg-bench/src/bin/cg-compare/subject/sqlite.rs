//! SQLite as Luanti uses it: its table of blocks, its statements, and a transaction for each cycle of saves.

use cg_format::ChunkAt;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{Compression, Host, Row, Rows, Take};
use super::{About, Kind, Role, Setting, Subject};
use crate::failure::Failure;
use crate::workload::Workload;

/// Columns of one transaction: some of what Luanti saves every 5.3 seconds.
const TOGETHER: usize = 64;

pub(super) struct Sqlite;

impl Kind for Sqlite {
    fn about(&self) -> About {
        About {
            name: "SQLite as in Luanti".to_owned(),
            role: Role::Rival,
            version: format!("SQLite {}, crate rusqlite 0.37.0", rusqlite::version()),
            durability: "columns wait in the host for a transaction of 64; each transaction is synced, also where less is \
                         asked (synchronous = FULL, as Luanti's default)"
                .to_owned(),
            options: "the table of Luanti 5.12, one row a chunk; Zstandard 3 for each chunk; rollback journal, cache and \
                      pages as they are by default"
                .to_owned(),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        std::fs::create_dir_all(setting.dir)?;
        let db = Connection::open(setting.dir.join("map.sqlite"))?;
        db.execute_batch(
            "CREATE TABLE blocks (x INTEGER, y INTEGER, z INTEGER, data BLOB NOT NULL, PRIMARY KEY (x, z, y))",
        )?;
        drop(db);
        self.open(setting)
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let db = Connection::open(setting.dir.join("map.sqlite"))?;
        db.execute_batch("PRAGMA synchronous = 2")?;
        Ok(Box::new(Host::new(Box::new(Table { db }), Compression::Zstd, TOGETHER, setting)))
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        workload.needs_threads().then_some("Luanti has one thread at its database")
    }
}

struct Table {
    db: Connection,
}

impl Rows for Table {
    fn put(&mut self, rows: &[Row], _synced: bool) -> Result<(), Failure> {
        let transaction = self.db.transaction()?;
        {
            let mut put =
                transaction.prepare_cached("REPLACE INTO blocks (x, y, z, data) VALUES (?, ?, ?, ?)")?;
            for (at, row) in rows {
                put.execute(params![at.pos.x(), at.pos.y(), at.pos.z(), row])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, places: &[ChunkAt], take: &mut Take<'_>) -> Result<(), Failure> {
        let mut get =
            self.db.prepare_cached("SELECT data FROM blocks WHERE x = ? AND y = ? AND z = ? LIMIT 1")?;
        for at in places {
            let key = params![at.pos.x(), at.pos.y(), at.pos.z()];
            let row: Option<Vec<u8>> = get.query_row(key, |row| row.get(0)).optional()?;
            take(row.as_deref())?;
        }
        Ok(())
    }

    fn scan(&mut self, take: &mut Take<'_>) -> Result<(), Failure> {
        let mut scan = self.db.prepare("SELECT data FROM blocks")?;
        let mut rows = scan.query([])?;
        while let Some(row) = rows.next()? {
            take(Some(row.get_ref(0)?.as_blob()?))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        // Every transaction was synced.
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.db.close().map_err(|(_, error)| error.into())
    }
}
