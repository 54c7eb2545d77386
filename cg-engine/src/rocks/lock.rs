//! A lock that allows one writer or many readers per directory.
//!
//! The operating system drops RocksDB's own lock as soon as the process closes *any* descriptor of its lock file. A
//! copy or a backup does that. This lock belongs to the open file instead, and names the process that holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::super::EngineError;
use super::Access;
use super::listing::open_own;
use super::open::corrupt_file;

/// The locked file. It contains the process id of a writer.
pub(super) const FILE_NAME: &str = "OWNER";

/// A lock that is held until the value is dropped or the process ends in any way.
#[derive(Debug)]
pub(super) struct DirLock {
    file: File,
    path: PathBuf,
    /// The path in [`HELD`].
    real_path: PathBuf,
}

/// The locks that this process holds. A directory with several readers is listed once per reader.
static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl DirLock {
    /// Takes the lock if its file exists. Changes no byte.
    ///
    /// # Errors
    /// [`EngineError::Locked`]; [`EngineError::Io`].
    pub(super) fn existing(dir: &Path, access: Access) -> Result<Option<Self>, EngineError> {
        let path = dir.join(FILE_NAME);
        let opened = match access {
            Access::ReadWrite => open_own(OpenOptions::new().read(true).write(true), &path),
            Access::ReadOnly => open_own(OpenOptions::new().read(true), &path),
        };
        match opened {
            Ok(file) => Self::lock(dir, path, file, access).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(EngineError::Io { path, source }),
        }
    }

    /// Takes a writer's lock. Creates the lock file if it does not exist.
    ///
    /// # Errors
    /// As [`existing`](Self::existing).
    pub(super) fn create(dir: &Path) -> Result<Self, EngineError> {
        let path = dir.join(FILE_NAME);
        let opened = open_own(OpenOptions::new().read(true).write(true).create(true).truncate(false), &path);
        match opened {
            Ok(file) => Self::lock(dir, path, file, Access::ReadWrite),
            Err(source) => Err(EngineError::Io { path, source }),
        }
    }

    /// Writes this process's id for processes that find the lock taken. Never overwrites anything but such an id: the
    /// file may be another name of some other file.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the file holds anything else; [`EngineError::Io`].
    pub(super) fn sign(&self) -> Result<(), EngineError> {
        let (mut file, mut found) = (&self.file, Vec::new());
        let read = file.rewind().and_then(|()| file.take(16).read_to_end(&mut found));
        read.map_err(|source| EngineError::Io { path: self.path.clone(), source })?;
        if !found.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n') || found.len() == 16 {
            let problem =
                "it holds something else than the number of a process, and was not overwritten: remove it";
            return Err(corrupt_file(FILE_NAME, 0, &problem));
        }
        let mut write = || {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(format!("{}\n", std::process::id()).as_bytes())
        };
        write().map_err(|source| EngineError::Io { path: self.path.clone(), source })
    }

    /// Whether the locked file is that of a directory. It is not if the directory was replaced by another one.
    pub(super) fn is_of(&self, dir: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let both = self.file.metadata().and_then(|held| Ok((held, dir.join(FILE_NAME).metadata()?)));
            both.is_ok_and(|(held, there)| (held.dev(), held.ino()) == (there.dev(), there.ino()))
        }
        // The lock is on the open file, whose identity is not asked for there.
        #[cfg(not(unix))]
        dir.join(FILE_NAME).exists()
    }

    fn lock(dir: &Path, path: PathBuf, mut file: File, access: Access) -> Result<Self, EngineError> {
        let locked = match access {
            Access::ReadWrite => file.try_lock(),
            Access::ReadOnly => file.try_lock_shared(),
        };
        let real_path = path.canonicalize().unwrap_or_else(|_| path.clone());
        match locked {
            Ok(()) => {
                HELD.lock().push(real_path.clone());
                Ok(Self { file, path, real_path })
            }
            Err(TryLockError::WouldBlock) => {
                let this = std::process::id();
                let by = if HELD.lock().contains(&real_path) {
                    Some(this)
                } else {
                    // Readers write no id. If a reader's lock can be taken, the id in the file belongs to an earlier
                    // writer.
                    let by_writer = access == Access::ReadOnly || file.try_lock_shared().is_err();
                    let signed = if by_writer { signature(&mut file) } else { None };
                    // A process in another container may have the same id as this one.
                    signed.filter(|pid| *pid != this)
                };
                Err(EngineError::Locked { dir: dir.to_path_buf(), by })
            }
            Err(TryLockError::Error(source)) => Err(EngineError::Io { path, source }),
        }
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // If another thread is starting a process, that process has a copy of the descriptor until it runs its
        // program. Closing only our descriptor would keep the lock for that long. If unlocking fails, closing the
        // descriptor is the fallback.
        let _ = self.file.unlock();
        let mut held = HELD.lock();
        if let Some(at) = held.iter().position(|path| *path == self.real_path) {
            held.swap_remove(at);
        }
    }
}

fn signature(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_of_another_container_is_not_this_process_for_its_number() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let held = DirLock::create(dir.path()).expect("nobody holds it");
        held.sign().expect("is written");
        let by = |dir: &Path| match DirLock::existing(dir, Access::ReadWrite) {
            Err(EngineError::Locked { by, .. }) => by,
            taken => panic!("{taken:?}"),
        };
        assert_eq!(by(dir.path()), Some(std::process::id()));
        // Simulates a process that does not hold the lock.
        HELD.lock().retain(|path| *path != held.real_path);
        assert_eq!(by(dir.path()), None);
    }

    #[test]
    fn a_lock_that_is_dropped_is_not_left_to_copies_of_its_descriptor() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let held = DirLock::create(dir.path()).expect("nobody holds it");
        let _as_of_a_process_that_begins = held.file.try_clone().expect("a copy");
        let taken = DirLock::existing(dir.path(), Access::ReadOnly);
        assert!(matches!(taken, Err(EngineError::Locked { .. })), "{taken:?}");
        drop(held);
        let read = DirLock::existing(dir.path(), Access::ReadOnly).expect("it is free");
        let _as_of_another = read.as_ref().expect("its file is there").file.try_clone().expect("a copy");
        drop(read);
        DirLock::create(dir.path()).expect("it is free again");
    }
}
