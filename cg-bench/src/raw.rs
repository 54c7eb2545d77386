//! RocksDB itself on the files of a world: what the store is compared with.
//!
//! It is opened with the options that RocksDB recorded beside the files, is handed finished keys and rows, and does
//! nothing else.

use std::path::Path;

use cg_format::Space;
use cg_store::directory;
use rocksdb::{Cache, ColumnFamily, DBWithThreadMode, Env, Error, Options, SingleThreaded};

/// A database whose families are fixed.
pub type Db = DBWithThreadMode<SingleThreaded>;

/// Opens the files of a closed world, such as a checkpoint, with a block cache of this many bytes.
///
/// # Errors
/// What RocksDB says.
pub fn open(world: &Path, cache_bytes: usize) -> Result<Db, Error> {
    let dir = directory::engine_dir(world);
    let cache = Cache::new_hyper_clock_cache(cache_bytes, 0);
    let (options, families) = Options::load_latest(&dir, Env::new()?, false, cache)?;
    Db::open_cf_descriptors(&options, &dir, families)
}

/// The family of a space.
///
/// # Panics
/// If the database is not a world's.
pub fn family(db: &Db, space: Space) -> &ColumnFamily {
    db.cf_handle(space.family().name()).expect("every world has every family")
}
