//! RocksDB's own threads, which flush and compact: whether they failed, and what may not be done then.

#[cfg(all(test, target_os = "linux"))]
mod full_disk;

use cg_format::key::Family;
use rocksdb::{WriteBatch, properties};

use super::super::{EngineError, Failure};
use super::{RocksEngine, failure};

impl RocksEngine {
    /// Notes the first failure, and ends all that RocksDB would do by itself. Otherwise it would go on five seconds after
    /// a full disk has room again, family by family.
    pub(super) fn stop(&self, failure: Failure) {
        // The first failure stays the cause.
        if self.failed.set(failure).is_ok() {
            self.db.cancel_all_background_work(true);
        }
    }

    /// Whether nothing has failed, also in RocksDB's own threads.
    pub(super) fn is_sound(&self) -> bool {
        let failures = || self.db.property_int_value(properties::BACKGROUND_ERRORS).ok().flatten();
        self.failed.get().is_none() && failures().unwrap_or(0) == 0
    }

    /// Checks that no failure in RocksDB's own threads has ended its writing.
    pub(super) fn check_background(&self) -> Result<(), EngineError> {
        if self.is_sound() {
            return Ok(());
        }
        // The next write gets the error of the threads.
        let written = self.db.write_opt(WriteBatch::default(), &self.writes);
        written.map_err(|error| self.fail(self.writing("write the log", error)))
    }

    /// Changes an option of a family. The caller has checked that no write of RocksDB's own threads has failed.
    ///
    /// RocksDB keeps the files of a change that it wrote into the manifest and could not sync. But it deletes them after
    /// any later change, also one that it does not write into the manifest, as that of an option. The manifest on the disk
    /// may name them.
    pub(super) fn set_option(&self, family: Family, name: &str, value: &str) -> Result<(), EngineError> {
        let changed = self.db.set_options_cf(self.family(family), &[(name, value)]);
        changed.map_err(|error| failure::of("set an option", error))
    }
}
