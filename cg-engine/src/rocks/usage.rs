//! The size of an engine's files and caches.

use std::fs;
use std::path::Path;

use cg_format::key::Family;

use super::super::{EngineError, FamilyUsage, Usage};
use super::{Access, RocksEngine, failure, listing, tuning};

impl RocksEngine {
    /// The current size of the files and caches.
    pub(super) fn usage_now(&self) -> Result<Usage, EngineError> {
        self.check_open()?;
        let families =
            Family::ALL.into_iter().map(|family| self.usage_of(family)).collect::<Result<_, _>>()?;
        let io = |source| EngineError::Io { path: self.dir.clone(), source };
        let mut log_bytes = 0;
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            if listing::is_log(&entry.file_name()) {
                // A log may be deleted after the directory was listed.
                log_bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        // A writer makes files before its manifest names them.
        let stray_files =
            if self.access == Access::ReadOnly { listing::strays(&self.dir)? } else { Vec::new() };
        Ok(Usage { families, log_bytes, memory_bytes: self.budget.used_bytes(), stray_files })
    }

    pub(super) fn usage_of(&self, family: Family) -> Result<FamilyUsage, EngineError> {
        let property = |name: &str| {
            let value = self.db.property_int_value_cf(self.family(family), name);
            value.map(Option::unwrap_or_default).map_err(|error| failure::of("read a property", error))
        };
        Ok(FamilyUsage {
            family,
            row_count: property("rocksdb.estimate-num-keys")?,
            table_bytes: property("rocksdb.total-sst-files-size")?,
            blob_bytes: property("rocksdb.total-blob-file-size")?,
            garbage_bytes: property("rocksdb.live-blob-file-garbage-size")?,
            buffered_bytes: property("rocksdb.cur-size-all-mem-tables")?,
            upper_file_count: self.upper_file_count(family)?,
            is_held: self.is_held(family),
        })
    }

    fn upper_file_count(&self, family: Family) -> Result<u64, EngineError> {
        // The value is text, although it is a number.
        let at_level = |level: i32| {
            let name = format!("rocksdb.num-files-at-level{level}");
            let count = self.db.property_value_cf(self.family(family), &name);
            let count = count.map_err(|error| failure::of("read a property", error))?;
            Ok(count.and_then(|count| count.parse::<u64>().ok()).unwrap_or_default())
        };
        (0..tuning::LAST_LEVEL).map(at_level).sum()
    }
}

/// The bytes that are free for this process.
pub(super) fn free_bytes(dir: &Path) -> Option<u64> {
    blocks(dir).map(|disk| disk.free_bytes)
}

/// The size of the disk.
pub(super) fn all_bytes(dir: &Path) -> Option<u64> {
    blocks(dir).map(|disk| disk.all_bytes)
}

struct Disk {
    free_bytes: u64,
    all_bytes: u64,
}

#[cfg(unix)]
fn blocks(dir: &Path) -> Option<Disk> {
    let found = rustix::fs::statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Disk { free_bytes: bytes(found.f_bavail), all_bytes: bytes(found.f_blocks) })
}

#[cfg(not(unix))]
fn blocks(_dir: &Path) -> Option<Disk> {
    None
}
