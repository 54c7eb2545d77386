//! Files that get their name only when they are whole and synced, and folders that are synced after that.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A file under another name than it will have. It goes with this value.
#[derive(Debug)]
pub(super) struct Partial(PathBuf);

impl Partial {
    /// The one beside a file.
    pub(super) fn of(file: &Path) -> Self {
        let mut name = std::ffi::OsString::from(".");
        name.push(file.file_name().unwrap_or_default());
        name.push(".partial");
        Self(file.with_file_name(name))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the file its name, replacing another, and syncs the folder.
    pub(super) fn rename(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.0, to)?;
        to.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename it is gone; what went wrong before matters more than that it could not be deleted.
        let _gone = fs::remove_file(&self.0);
    }
}

/// Makes the disk keep the names in a folder.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes a folder and those around it, and syncs the name of each.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let around = folder.parent().unwrap_or(Path::new(""));
    make_folder(around)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    own_like(folder, around);
    sync_folder(around)
}

/// Gives a new file or folder the owner of another, where that is allowed: a game runs as the owner of its save.
pub(super) fn own_like(path: &Path, model: &Path) {
    use std::os::unix::fs::{MetadataExt as _, chown};
    if let Ok(model) = fs::metadata(model) {
        // Only the superuser may, and whoever may not is mostly the owner.
        let _refused = chown(path, Some(model.uid()), Some(model.gid()));
    }
}

pub(super) fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    const STEP_BYTES: u64 = 1 << 20;
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    loop {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        one.by_ref().take(STEP_BYTES).read_to_end(&mut a)?;
        other.by_ref().take(STEP_BYTES).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}
