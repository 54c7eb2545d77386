//! A directory of links to the files of another one, in which torn files are cut. So a reader changes nothing.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::EngineError;
use super::tear::Tears;

/// The directory, which goes with the value.
#[derive(Debug)]
pub(super) struct View(PathBuf);

impl View {
    /// Links to all files of a directory, but for those that are torn: of these it has a copy up to the tear, or nothing.
    ///
    /// The copies take as much room in the system's directory for temporary files as the manifest and one log.
    pub(super) fn new(dir: &Path, tears: &Tears) -> Result<Self, EngineError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cg-view-{}-{count}", std::process::id()));
        let failed = |source| EngineError::Io { path: path.clone(), source };
        fs::create_dir(&path).map_err(failed)?;
        let view = Self(path.clone());
        let dir = fs::canonicalize(dir).map_err(|source| EngineError::Io { path: dir.into(), source })?;
        view.fill(&dir, tears).map_err(failed)?;
        Ok(view)
    }

    fn fill(&self, dir: &Path, tears: &Tears) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            let (from, to) = (dir.join(&name), self.0.join(&name));
            match tears.end_of(&name.to_string_lossy()) {
                None => link(&from, &to)?,
                Some(0) => {}
                Some(end) => {
                    let mut copy = File::create_new(&to)?;
                    io::copy(&mut File::open(&from)?.take(end), &mut copy)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // What stays is links and copies.
        let _gone = fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)
}
