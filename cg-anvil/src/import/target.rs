//! The world that is imported into: one that is there, or a new one.

use std::fs;
use std::io;
use std::path::Path;

use cg_store::directory::{ENGINE_DIR, FILE_NAME};
use cg_store::prelude::{OpenError, WorldOptions};
use cg_store::{Error, StoreLimits, World};

/// Most bytes of one entity in a world made by an import: saves hold carts of chests of books.
const ENTITY_BYTES: u64 = 16 << 20;

/// Opens a world, or makes one in a directory that is empty or not there.
///
/// What an import left that was killed while it made its world holds nothing, and is made anew.
///
/// # Errors
/// As [`WorldBuilder::open`](cg_store::WorldBuilder::open) and [`WorldBuilder::create`](cg_store::WorldBuilder::create); a directory with anything else in it is left alone.
pub fn open_or_create(dir: &Path, options: &WorldOptions) -> Result<World, Error> {
    if makes_world(dir)? {
        clear_unfinished(dir)?;
        return World::builder().options(&of_new_world(options)).create(dir);
    }
    World::builder().options(options).open(dir)
}

/// Options with which an import makes a world.
pub fn of_new_world(options: &WorldOptions) -> WorldOptions {
    let limits = options.limits.raised(StoreLimits { entity_bytes: ENTITY_BYTES, ..options.limits });
    WorldOptions { limits, ..options.clone() }
}

/// Removes a world whose making or copying was cut short from a directory for which [`makes_world`] is true.
///
/// # Errors
/// What the disk says.
pub fn clear_unfinished(dir: &Path) -> Result<(), Error> {
    let may_be_absent = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("clear", dir, error)),
        _ => Ok(()),
    };
    // The file goes last: while it is there, it says that the directory holds nothing of value.
    may_be_absent(fs::remove_dir_all(dir.join(ENGINE_DIR)))?;
    may_be_absent(fs::remove_file(dir.join(TEMPORARY_NAME)))?;
    may_be_absent(fs::remove_file(dir.join(FILE_NAME)))
}

/// Whether [`open_or_create`] makes a world rather than open one.
///
/// # Errors
/// What the disk says.
pub fn makes_world(dir: &Path) -> Result<bool, Error> {
    holds_only_the_unfinished(dir).map_err(|source| failed("list", dir, source))
}

/// The name under which a world's file is written before it is complete.
const TEMPORARY_NAME: &str = "world.cg.new";

/// Whether a directory is missing, empty, or holds a world whose making was cut short and nothing else.
fn holds_only_the_unfinished(dir: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name());
    }
    let known =
        |name: &std::ffi::OsString| [FILE_NAME, TEMPORARY_NAME, ENGINE_DIR].iter().any(|known| name == known);
    if !names.iter().all(known) {
        return Ok(false);
    }
    // The engine's directory comes after the file, and the file says that it is ready last of all.
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if !has(FILE_NAME) {
        return Ok(!has(ENGINE_DIR));
    }
    let file = cg_store::directory::WorldFile::read(dir);
    Ok(file.is_ok_and(|file| file.state == cg_store::directory::State::Creating))
}

fn failed(action: &'static str, dir: &Path, source: io::Error) -> Error {
    Error::Open(OpenError::Io { action, path: dir.to_owned(), source })
}
