//! Whether a game has a save open, and the same lock for as long as a save is changed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
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

/// The lock that a game from 1.16 on holds while it has a save open. Held until it is dropped.
///
/// The system drops it also when this process closes the file elsewhere, as [`is_in_use`] does.
#[derive(Debug)]
pub struct SaveLock(#[expect(dead_code, reason = "it is held, not read")] File);

impl SaveLock {
    /// Takes the lock of a save; `None` if another process has it. Of a file that is there nothing is changed; where there is
    /// none an empty one is made, over which the game writes.
    ///
    /// # Errors
    /// The file cannot be opened for writing or made, or the system does not answer.
    pub fn take(save: &Path) -> io::Result<Option<Self>> {
        let path = save.join(NAME);
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(&path)?;
        if is_new {
            // The game runs as the owner of its save. Only the superuser may give a file away, and needs to.
            let owner = fs::metadata(save)?;
            let _refused = chown(&path, Some(owner.uid()), Some(owner.gid()));
        }
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
