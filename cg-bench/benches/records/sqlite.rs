//! `SQLite` with an R*Tree below the same records: what a host takes that has an SQL library at hand.
//!
//! A record is a row of `record` under its UUID and a box of one point in `place`, the tree. The log is written ahead and
//! never synced, so a commit survives what a world's survives at `Process`: a killed process, not a power cut.

use std::path::Path;

use cg_format::record::Record;
use cg_format::{BlockBox, RecordId};
use rusqlite::{Connection, Error, params};

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -65536;
    PRAGMA mmap_size = 1073741824;
    CREATE TABLE record (
        n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, x REAL, y REAL, z REAL, kind TEXT, timestamp INTEGER, payload BLOB
    );
    CREATE VIRTUAL TABLE place USING rtree(n, min_x, max_x, min_y, max_y, min_z, max_z);
";
const INSERT: &str =
    "INSERT INTO record (id, x, y, z, kind, timestamp, payload) VALUES (?, ?, ?, ?, ?, ?, ?)";
const INSERT_PLACE: &str = "INSERT INTO place VALUES (?, ?, ?, ?, ?, ?, ?)";
/// The tree keeps coordinates of 32 bits, rounded so that it finds too much and never too little; the row decides.
const QUERY: &str = "
    SELECT record.payload FROM place JOIN record USING (n)
    WHERE min_x < ?2 AND max_x >= ?1 AND min_y < ?4 AND max_y >= ?3 AND min_z < ?6 AND max_z >= ?5
      AND x >= ?1 AND x < ?2 AND y >= ?3 AND y < ?4 AND z >= ?5 AND z < ?6
";

/// Records in a file of `SQLite`.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let database = Connection::open(path)?;
        database.execute_batch(SCHEMA)?;
        Ok(Self(database))
    }

    /// All in one transaction.
    pub(crate) fn insert(&mut self, records: &[(RecordId, Record)]) -> Result<(), Error> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            let mut place = transaction.prepare_cached(INSERT_PLACE)?;
            for (id, record) in records {
                let [x, y, z] = record.position.to_f64();
                let view = record.view();
                let n = insert.insert(params![
                    id.to_bytes(),
                    x,
                    y,
                    z,
                    view.kind,
                    view.timestamp,
                    view.payload
                ])?;
                place.execute(params![n, x, x, y, y, z, z])?;
            }
        }
        transaction.commit()
    }

    /// Bytes of the payloads of all records in a box.
    pub(crate) fn payload_bytes_in(&self, area: &BlockBox) -> Result<usize, Error> {
        let (min, max) = (area.min(), area.max());
        let ends = |min: i64, max: i64| [min as f64, (max + 1) as f64];
        let [x, y, z] = [ends(min.x, max.x), ends(min.y, max.y), ends(min.z, max.z)];
        let mut query = self.0.prepare_cached(QUERY)?;
        let mut rows = query.query(params![x[0], x[1], y[0], y[1], z[0], z[1]])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            bytes += row.get_ref(0)?.as_blob()?.len();
        }
        Ok(bytes)
    }
}
