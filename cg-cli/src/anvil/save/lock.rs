//! Whether a game has a save open.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::regions;

/// The file that the game locks while it has the save open.
pub(super) const NAME: &str = "session.lock";

/// How far up a save is looked for around a dimension's folder.
const MAX_ANCESTORS: usize = 12;

/// Whether another process holds the lock of the save that a path is, or is inside of. Asks the system and writes nothing.
///
/// # Errors
/// The file is there and cannot be opened, or the system does not answer.
pub fn is_in_use(path: &Path) -> io::Result<bool> {
    let path = regions::absolute(path)?;
    let Some(lock) =
        path.ancestors().take(MAX_ANCESTORS).map(|folder| folder.join(NAME)).find(|lock| lock.is_file())
    else {
        return Ok(false);
    };
    // The game locks the whole file for writing, which is in conflict with a lock for reading; the latter with no other.
    Ok(fcntl_getlk(File::open(lock)?, &Flock::from(FlockType::ReadLock))?.is_some())
}
