//! Worlds as a host uses them, in memory and on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::Family;
use cg_registry::ListKind;
use cg_store::engine;
use cg_store::engine::{Batch, Engine, Level, MemEngine, ReadableExt as _, RocksEngine};
use cg_store::prelude::*;
use cg_store::tiers::{MoveCounts, TracePart};
use cg_store::verify::VerifyDepth;

pub(crate) use crate::fixture::*;

mod absence;
mod boxes;
mod cache_size;
mod calls;
mod change_log;
mod close;
mod columns;
mod copies;
mod damage;
mod deltas;
mod durability;
mod edges;
mod faulty;
mod full_disk;
mod hash;
mod history;
mod hot_rows;
mod illegal_values;
mod iterate;
mod keep_map;
mod limits;
mod lineage;
mod linearizable;
mod load;
mod low_disk;
mod memory;
mod moves;
mod named_cells;
mod network_ticks;
mod objects;
mod opacity;
mod opacity_ticks;
mod open;
mod over;
mod ownership;
mod paths;
mod prefetch;
mod property;
mod quarantine;
mod quarantine_values;
mod queue;
mod records;
mod refresh;
mod registry;
mod row_digests;
mod scale;
mod settings;
mod snapshots;
mod staged;
mod submit;
mod tier;
mod transaction;
mod unknown;
mod unreadable;
mod value_history;
mod verify;
mod warm_rows;

impl Disk {
    /// Opens the closed world's rows without the engine, which would seal every row that it writes.
    pub(crate) fn raw(&self) -> Raw {
        let families = Family::ALL.map(Family::name);
        let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), self.path().join("db"), families);
        Raw(db.expect("the world is closed"))
    }
}

/// The rows of a closed world.
pub(crate) struct Raw(rocksdb::DB);

impl Raw {
    fn family(&self, family: Family) -> std::sync::Arc<rocksdb::BoundColumnFamily<'_>> {
        self.0.cf_handle(family.name()).expect("every family is open")
    }

    #[track_caller]
    pub(crate) fn get(&self, family: Family, key: impl AsRef<[u8]>) -> Vec<u8> {
        self.0.get_cf(&self.family(family), key).expect("reads").expect("the row is there")
    }

    pub(crate) fn put(&self, family: Family, key: impl AsRef<[u8]>, row: &[u8]) {
        self.0.put_cf(&self.family(family), key, row).expect("writes");
    }

    pub(crate) fn delete(&self, family: Family, key: impl AsRef<[u8]>) {
        self.0.delete_cf(&self.family(family), key).expect("writes");
    }

    /// The keys of a family, and its largest file with rows of it.
    pub(crate) fn keys_and_file(&self, family: Family) -> (Vec<Vec<u8>>, PathBuf) {
        let rows = self.0.iterator_cf(&self.family(family), rocksdb::IteratorMode::Start);
        let keys = rows.map(|row| row.expect("is sound").0.to_vec()).collect();
        let mut files = self.0.live_files().expect("lists");
        files.retain(|file| file.column_family_name == family.name());
        let largest = files.iter().max_by_key(|file| file.size).expect("the family has a file");
        (keys, self.0.path().join(largest.name.trim_start_matches('/')))
    }

    pub(crate) fn drop_family(&self, family: Family) {
        self.0.drop_cf(family.name()).expect("drops");
    }

    /// Flips one bit of a row.
    #[track_caller]
    pub(crate) fn flip(&self, family: Family, key: impl AsRef<[u8]>, byte: usize) {
        let mut row = self.get(family, &key);
        row[byte] ^= 0x10;
        self.put(family, key, &row);
    }
}

/// Every row of the engine except the commit sequence, whose row changes with every commit, and the identity and the
/// openings, which differ between worlds.
pub(crate) fn rows(world: &World) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut rows = BTreeMap::new();
    for family in Family::ALL {
        let shown = world.engine().scan(family, engine::ALL_KEYS, |key, row| {
            if ![engine::COMMIT_SEQUENCE_KEY, b"identity", b"world"].contains(&key)
                && !key.starts_with(b"lineage/")
            {
                rows.insert((family, key.to_vec()), row.to_vec());
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        shown.expect("scans");
    }
    rows
}

/// The same without what differs between two worlds of one content: the opening that wrote a row, and the checksum over it.
pub(crate) fn rows_of_any_opening(world: &World) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut rows = rows(world);
    for row in rows.values_mut() {
        for field in [4..8, 20..24] {
            row[field].fill(0);
        }
    }
    rows
}

/// How many names a list holds.
pub(crate) fn issued(world: &World, list: ListKind) -> u64 {
    world.catalog().list(list).len() as u64
}
