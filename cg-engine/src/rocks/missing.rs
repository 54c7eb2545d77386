//! Errors for a lost file, which list what still exists and how to restore the file.

use std::path::Path;

use cg_format::key::Family;
use rocksdb::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY_NAME};

use super::super::EngineError;
use super::open::{CURRENT, corrupt_file, is_manifest};
use super::{Db, RocksOptions, held, tuning};

/// `CURRENT` does not exist, or names no manifest.
pub(super) fn current(names: &[String], problem: &str) -> EngineError {
    let mut manifests = names.iter().filter(|name| is_manifest(name));
    let advice = match (manifests.next(), manifests.next()) {
        // The content of `CURRENT` can be reconstructed.
        (Some(only), None) => format!(
            "{only} is there, and it is the only manifest: write its name and a line feed into {CURRENT}; all else may be sound"
        ),
        _ => format!(
            "bring it back from a copy of this directory that was made since the world was last opened, or restore a checkpoint; {}",
            there(names)
        ),
    };
    corrupt_file(CURRENT, 0, &format!("{problem}; {advice}"))
}

/// The manifest that `CURRENT` names does not exist.
pub(super) fn manifest(names: &[String], name: &str) -> EngineError {
    let problem = format!(
        "the file is missing; only it says which tables belong to the world: bring it back from a copy of this directory \
         that was made since the world was last opened, or restore a checkpoint; {}",
        there(names)
    );
    corrupt_file(name, 0, &problem)
}

/// If RocksDB could not open a table because it does not exist, returns an error that describes it.
pub(super) fn table(dir: &Path, options: &RocksOptions, said: &str) -> Option<EngineError> {
    let name = held::table_in(said).filter(|name| !dir.join(name).exists())?;
    let kinds = |lost: bool| {
        let kinds = Family::ALL.into_iter().filter(|family| opens(dir, options, *family) != lost);
        kinds.map(Family::name).collect::<Vec<_>>().join(", ")
    };
    let problem = format!(
        "the file is missing; rows of {} were in it, and the tables of all others are there ({}): a checkpoint that was \
         made while the file existed has it under the same name, so copy it from there, or restore the checkpoint",
        kinds(true),
        kinds(false)
    );
    Some(corrupt_file(name, 0, &problem))
}

/// Whether a family can be opened without the others.
fn opens(dir: &Path, options: &RocksOptions, family: Family) -> bool {
    let descriptor =
        |name: &str, family| ColumnFamilyDescriptor::new(name, tuning::family(family, &options.budget));
    let families = [descriptor(DEFAULT_COLUMN_FAMILY_NAME, None), descriptor(family.name(), Some(family))];
    Db::open_cf_descriptors_read_only(&tuning::database(&options.budget), dir, families, false).is_ok()
}

/// Counts the files with rows.
fn there(names: &[String]) -> String {
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    format!("{} tables, {} blob files and {} logs are there", count(".sst"), count(".blob"), count(".log"))
}
