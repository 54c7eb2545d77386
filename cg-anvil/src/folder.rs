//! Folders whose names survive a power cut.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

thread_local! {
    static SYNCS: Cell<u64> = const { Cell::new(0) };
}

/// Puts the names in a folder on the disk: what was made, renamed or deleted there is so after a power cut too.
///
/// # Errors
/// What the system says.
pub fn sync(folder: &Path) -> io::Result<()> {
    // Only on Unix is a folder a file; elsewhere its names are synced with its files.
    if cfg!(unix) {
        File::open(or_here(folder))?.sync_all()?;
    }
    SYNCS.set(SYNCS.get() + 1);
    Ok(())
}

/// Makes a folder and those above it, up to the first that is there. The name of each is on the disk afterwards.
///
/// # Errors
/// What the system says.
pub fn make(folder: &Path) -> io::Result<()> {
    let folder = or_here(folder);
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent();
    above.map_or(Ok(()), make)?;
    match fs::create_dir(folder) {
        Ok(()) => above.map_or(Ok(()), sync),
        // Another process made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// How many folders this thread has synced; for tests.
pub fn sync_count() -> u64 {
    SYNCS.get()
}

/// A path without a folder is in the current one.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_that_is_made_is_synced_into_the_one_above() {
        let dir = tempfile::tempdir().expect("a directory");
        let before = sync_count();
        make(&dir.path().join("a/b/c")).expect("it is writable");
        assert_eq!(sync_count() - before, 3);
        make(&dir.path().join("a/b/c")).expect("it is there");
        make(&dir.path().join("a/d")).expect("it is writable");
        assert_eq!(sync_count() - before, 4);
        assert!(dir.path().join("a/b/c").is_dir());
        fs::write(dir.path().join("file"), "").expect("it is writable");
        let error = make(&dir.path().join("file")).expect_err("a file is no folder");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        make(Path::new("")).expect("the current folder is there");
        sync(Path::new("")).expect("the current folder can be synced");
    }
}
