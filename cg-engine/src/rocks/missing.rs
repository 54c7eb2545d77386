//! Errors for a lost file, which list what still exists and how to restore the file.

use std::path::Path;

use cg_format::key::Family;
use rocksdb::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY_NAME};

use super::super::{EngineError, Place};
use super::listing::{self, Listing};
use super::manifest::Named;
use super::open::{self, CURRENT, corrupt_file, is_manifest};
use super::{Db, RocksOptions, held, log_scan, tuning};

/// What helps if a manifest is lost.
const FROM_A_COPY: &str = "bring it back from a copy of this directory that was made since the world was last opened, or \
                           restore a checkpoint";

/// The manifest is shorter than what was synced of it.
pub(super) fn cut_manifest(name: &str, whole_bytes: u64, synced_bytes: u64) -> EngineError {
    let problem = format!("the file is cut, {synced_bytes} bytes of it were synced: {FROM_A_COPY}");
    corrupt_file(name, whole_bytes, &problem)
}

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
        "the file is missing; only it says which tables belong to the world: {FROM_A_COPY}; {}",
        there(names)
    );
    corrupt_file(name, 0, &problem)
}

/// Adds to an error of opening that the manifest was cut, if that is its cause: it ends inside a record or has none, or
/// there are files that are newer than all that it names.
pub(super) fn or_cut_manifest(dir: &Path, error: EngineError) -> EngineError {
    let is_candidate = matches!(error, EngineError::Corrupt { .. } | EngineError::MissingFamily { .. });
    let Some(manifest) = open::current_manifest(dir).ok().filter(|_| is_candidate) else { return error };
    let Ok(Ok(end)) = log_scan::scan_file(&dir.join(&manifest), u64::MAX) else { return error };
    let is_cut = end.tear.is_some() || end.record_count == 0;
    let is_older = || match (listing::named(dir, &manifest, u64::MAX), Listing::look(dir)) {
        (Some(named), Ok(listing)) => listing.is_newer_than(&named),
        _ => false,
    };
    match error {
        // A killed process may leave such files too, so the table is named and not the manifest.
        EngineError::Corrupt { place: place @ Place::File { .. }, message } if !is_cut => {
            let also = format!(
                "{message}; or {manifest} was cut, since there are files that are newer than it: then {FROM_A_COPY}"
            );
            let message = if is_older() { also } else { message };
            EngineError::Corrupt { place, message }
        }
        error if is_cut || is_older() => {
            let problem =
                format!("the file is cut, it is older than the other files ({error}): {FROM_A_COPY}");
            corrupt_file(&manifest, end.whole_bytes, &problem)
        }
        error => error,
    }
}

/// Adds to damage at the beginning of a log which the manifest does not name that it may be a stray file.
pub(super) fn or_stray_log(name: &str, named: Option<&Named>, error: EngineError) -> EngineError {
    let is_named = |named: &Named| listing::log_number(name).is_some_and(|number| named.names_log(number));
    match error {
        EngineError::Corrupt { place: Place::File { name, offset_bytes: 0 }, message }
            if !named.is_some_and(is_named) =>
        {
            let message = format!(
                "{message}; the manifest does not name this log: if it was put here by hand, it is a stray file and may be \
                 moved away"
            );
            EngineError::Corrupt { place: Place::File { name, offset_bytes: 0 }, message }
        }
        other => other,
    }
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
