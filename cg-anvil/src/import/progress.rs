//! How far an import is, kept in the world and committed with what it imports.
//!
//! Properties in JSON: `minecraft:import` says what is imported, `minecraft:import/<n>` how far the nth file that was begun
//! is and what was reported of it, `minecraft:import/<n>/<p>` which entities of the file wait that do not fit there,
//! `minecraft:import-met/<n>/<s>/<p>` which entities of the world it met. All are gone when the import is done, or
//! abandoned. A file is found by its name: the save may have others when the import is continued.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use cg_registry::Name;
use cg_store::prelude::{Property, Transaction};
use cg_store::{Error, ErrorKind, World};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ReplacedLevel;
use super::choices::Choices;
use super::error::ImportError;
use super::ledger::Met;
use super::report::ImportReport;
use super::source::Stamp;
use crate::region::Slot;

/// How the names of all properties begin in which an import keeps its progress.
pub(crate) const PROGRESS_PREFIX: &str = "minecraft:import";
const HEAD: &str = PROGRESS_PREFIX;
/// How the properties begin that list the entities that the world had and that the import replaced or kept.
const MET: &str = "minecraft:import-met/";
/// The rules of imports that this release begins: 1 since strays are parted from a save, 2 since the progress of a file is
/// found by its name, 3 since only what the game names so is a region of a save, and slots that cannot be read are kept.
pub(super) const RULES: u32 = 3;
/// Waiting entities that are written anew with every transaction; more go to pages.
pub(super) const WAITING: usize = 4096;

/// Description of the import, the same for all its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Which rules the import follows; an import continues by the rules by which it began.
    #[serde(default)]
    pub(super) rules: u32,
    /// Which files, how long and how old.
    pub(super) save: String,
    /// Where the save was.
    #[serde(default)]
    pub(super) path: String,
    /// How it was asked for.
    #[serde(flatten)]
    pub(super) choices: Choices,
    /// The world's last commit before the import: what is newer came with it.
    pub(super) began_after: u64,
    /// The only dimension that is taken of the save, where the world's own save is another.
    #[serde(default)]
    pub(super) only: Option<String>,
    /// The `level.dat` that the world had, where it is replaced.
    #[serde(default)]
    pub(super) replaced_level: Option<ReplacedLevel>,
    /// Files of the world's save that were deleted, by folder.
    #[serde(default)]
    pub(super) deleted_files: BTreeMap<String, u64>,
    /// Whether the save was in use.
    #[serde(default)]
    pub(super) in_use: bool,
}

/// How far one file is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileProgress {
    /// The file's path from the save's folder on.
    pub(super) name: String,
    /// The dimension that it is of.
    pub(super) dimension: String,
    /// Stamp of the file when its reading began.
    pub(super) stamp: Stamp,
    /// Whether the report says that the file was changed since, or is gone.
    #[serde(default)]
    pub(super) is_change_told: bool,
    /// The first slot that is not in the world yet.
    pub(super) next_slot: u16,
    /// Report of the slots before.
    pub(super) report: ImportReport,
    /// Entities without a chunk so far; one may have come with a later file.
    pub(super) waiting: Vec<Uuid>,
    /// What was met of its columns.
    #[serde(flatten)]
    pub(super) met: Met,
    /// Pages of further entities that wait.
    #[serde(default)]
    pub(super) pages: u32,
}

impl FileProgress {
    pub(super) const fn is_done(&self) -> bool {
        self.next_slot >= Slot::COUNT
    }
}

pub(super) fn head(world: &World) -> Result<Option<Head>, ImportError> {
    read(world, HEAD)
}

pub(super) fn put_head(tx: &mut Transaction<'_>, head: &Head) {
    put(tx, HEAD, head);
}

/// How far a file is, by its number; `None` if no file of that number was begun.
pub(super) fn file(world: &World, number: usize) -> Result<Option<FileProgress>, ImportError> {
    read(world, &file_name(number))
}

pub(super) fn put_file(tx: &mut Transaction<'_>, number: usize, progress: &FileProgress) {
    put(tx, &file_name(number), progress);
}

/// The property that holds a page of waiting entities.
pub(super) fn page_name(file: usize, page: u32) -> Name {
    Name::new(format!("{}/{page}", file_name(file))).expect("a literal name and numbers")
}

/// The entities of a page.
pub(super) fn page(world: &World, file: usize, page: u32) -> Result<Vec<Uuid>, ImportError> {
    Ok(read(world, page_name(file, page).as_str())?.unwrap_or_default())
}

/// The value of a page's property.
pub(super) fn page_bytes(waiting: &[Uuid]) -> Vec<u8> {
    serde_json::to_vec(waiting).expect("plain data is JSON")
}

/// The property that lists entities of the world that were met in slots before this one, since the transaction before.
pub(super) fn met_name(file: usize, next_slot: u16, page: u32) -> Name {
    Name::new(format!("{MET}{file}/{next_slot}/{page}")).expect("a literal name and numbers")
}

/// The entities of the world that an import met.
pub(super) fn met(world: &World) -> Result<HashSet<Uuid>, ImportError> {
    let mut met = HashSet::new();
    for name in all(world)?.iter().filter(|name| name.as_str().starts_with(MET)) {
        met.extend(read::<Vec<Uuid>>(world, name.as_str())?.unwrap_or_default());
    }
    Ok(met)
}

/// The properties in which a world keeps the progress of an import, damaged ones too.
pub(super) fn all(world: &World) -> Result<Vec<Name>, Error> {
    let mut names = Vec::new();
    let failed = world.read_view(|view| {
        view.for_each_property(PROGRESS_PREFIX, |property| {
            match property {
                Ok((name, _)) => names.extend(progress_name(name.as_bytes())),
                Err(Error::Corrupt(damage)) => names.extend(progress_name(&damage.key)),
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        })
    })?;
    failed.map_or(Ok(names), Err)
}

/// The name of a property, if it is of the progress of an import.
fn progress_name(key: &[u8]) -> Option<Name> {
    let name = std::str::from_utf8(key).ok()?;
    let is_own = name == HEAD || name.starts_with(&format!("{HEAD}/")) || name.starts_with(MET);
    Name::new(name).ok().filter(|_| is_own)
}

/// Forgets the progress of an import.
pub(super) fn clear(tx: &mut Transaction<'_>, all: Vec<Name>) {
    for name in all {
        tx.set_property(Property::Named(name), None);
    }
}

fn file_name(number: usize) -> String {
    format!("{HEAD}/{number}")
}

fn property(name: &str) -> Property {
    Property::Named(Name::new(name).expect("a literal name and a number"))
}

fn read<T: DeserializeOwned>(world: &World, name: &str) -> Result<Option<T>, ImportError> {
    let unreadable = |why: String| ImportError::Progress { property: name.to_owned(), why };
    let bytes = world.property(&property(name)).map_err(|error| match error {
        error if error.kind() == ErrorKind::Damaged => unreadable(error.to_string()),
        error => ImportError::Store(error),
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| unreadable(error.to_string()))
}

fn put(tx: &mut Transaction<'_>, name: &str, value: &impl Serialize) {
    let bytes = serde_json::to_vec(value).expect("plain data is JSON");
    tx.set_property(property(name), Some(bytes));
}

/// The error type of a transaction that only fails as the store does.
pub(super) type Stored = Result<(), Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_a_file_is_stored_in_one_form() {
        let stored = serde_json::to_string(&FileProgress::default()).expect("JSON");
        let end =
            r#""waiting":[],"brought":[],"kept":[],"points":[],"entity_slots":[],"unread":[],"pages":0}"#;
        assert!(stored.ends_with(end), "{stored}");
        assert!(stored.starts_with(r#"{"name":"","dimension":"","stamp":"#), "{stored}");
        assert_eq!(serde_json::from_str::<FileProgress>(&stored).expect("JSON"), FileProgress::default());
        // Of a release that had neither.
        let before = stored.replace(r#","kept":[],"points":[],"entity_slots":[],"unread":[],"pages":0"#, "");
        assert_eq!(serde_json::from_str::<FileProgress>(&before).expect("JSON"), FileProgress::default());
    }
}
