//! The families of a directory, which must be exactly those of this release.

use std::path::Path;

use cg_format::key::Family;
use rocksdb::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY_NAME, Options};

use super::super::EngineError;
use super::held::Held;
use super::{Budget, Db, failure, tuning};

/// The options of each family, including RocksDB's own `default`. [Held](super::held) families are not compacted.
pub(super) fn descriptors(budget: &Budget, held: &Held) -> Vec<ColumnFamilyDescriptor> {
    let ours = Family::ALL.into_iter().map(|family| {
        let mut options = tuning::family(Some(family), budget);
        options.set_disable_auto_compactions(held.contains_key(&family));
        ColumnFamilyDescriptor::new(family.name(), options)
    });
    let default = ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, tuning::family(None, budget));
    ours.chain([default]).collect()
}

/// Compares the families of the directory, as they are read `from` it or a view of it, with ours, before anything is opened. RocksDB itself would create an absent
/// one, or refuse an unknown one without naming it.
///
/// # Errors
/// [`EngineError::MissingFamily`], [`EngineError::UnknownFamily`], and errors of reading the manifest.
pub(super) fn check(from: &Path, dir: &Path) -> Result<(), EngineError> {
    let found = Db::list_cf(&Options::default(), from).map_err(|error| failure::opening(dir, error))?;
    compare(dir, &found)
}

fn compare(dir: &Path, found: &[String]) -> Result<(), EngineError> {
    let dir = || dir.to_path_buf();
    let unknown = |name: &&String| {
        *name != DEFAULT_COLUMN_FAMILY_NAME
            && !Family::ALL.iter().any(|family| family.name() == name.as_str())
    };
    if let Some(name) = found.iter().find(unknown) {
        return Err(EngineError::UnknownFamily { dir: dir(), name: name.clone() });
    }
    match Family::ALL.into_iter().find(|family| !found.iter().any(|name| name == family.name())) {
        Some(family) => Err(EngineError::MissingFamily { dir: dir(), family }),
        None => Ok(()),
    }
}
