//! What a world takes on disk, and where it is.

use std::fs;
use std::io;
use std::path::Path;

use cg_store::World;
use serde::Serialize;

use crate::output::Failure;
use crate::place::{Address, Place};

/// A world's bytes on disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) bytes: u64,
    /// `None` of a world in a directory.
    pub(super) database: Option<DatabaseReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct DatabaseReport {
    pub(super) address: String,
    /// How a commit survives the loss of its server.
    pub(super) replication: String,
    /// The commit as of which the world is shown.
    pub(super) last_commit: u64,
}

impl Disk {
    pub(super) fn measure(place: &Place, world: &World) -> Result<Self, Failure> {
        match place {
            Place::Directory(path) => {
                let measured = files_bytes(path);
                let bytes = measured.map_err(|error| Failure::io("measure the files of", path, &error))?;
                Ok(Self { bytes, database: None })
            }
            Place::Address(address) => {
                let families = world.usage()?.families.into_iter();
                let bytes = families.map(|family| family.table_bytes + family.blob_bytes).sum();
                Ok(Self { bytes, database: Some(DatabaseReport::of(address, world)) })
            }
        }
    }
}

impl DatabaseReport {
    fn of(address: &Address, world: &World) -> Self {
        Self {
            address: address.to_string(),
            replication: address.replication(),
            last_commit: world.last_commit().get(),
        }
    }
}

/// The length of all files under a directory.
fn files_bytes(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sum += files_bytes(&entry.path())?;
        } else if kind.is_file() {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}
