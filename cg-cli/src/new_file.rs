//! A file that has its name only when it is whole, and replaces no other.
//!
//! ```
//! use std::io::Write;
//! use cg_cli::new_file::NewFile;
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("map.bin");
//! let mut file = NewFile::create(&path)?;
//! file.write_all(b"whole")?;
//! assert!(!path.exists(), "not yet");
//! file.finish()?;
//! assert_eq!(std::fs::read(&path)?, b"whole");
//! assert_eq!(NewFile::create(&path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Names that are tried before giving up.
const ATTEMPTS: u32 = 1000;

/// A file in the making, beside the place where it will be. Dropped before it is finished, it is gone.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    unfinished: Unfinished,
}

/// The file under its first name, which goes with this value.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What went wrong with the file matters more than that it could not be deleted.
        let _gone = fs::remove_file(&self.0);
    }
}

impl NewFile {
    /// Begins a file in the folder of `path`, under a free name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if `path` is there, even as a link to nothing; what the system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        for attempt in 0..ATTEMPTS {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}-{attempt}.part", std::process::id()));
            match File::create_new(&name) {
                Ok(file) => {
                    return Ok(Self { file, path: path.to_owned(), unfinished: Unfinished(name.into()) });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "every name for an unfinished file beside it is taken"))
    }

    /// Puts what was written on the disk and gives it its name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if another process took the name meanwhile, whose file stays; what the system says.
    /// Nothing is left behind.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        let Self { path, unfinished, .. } = self;
        // A link takes no name that is there, a rename would.
        match fs::hard_link(&unfinished.0, &path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Err(_) if path.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
            // Some file systems have no links.
            Err(_) => fs::rename(&unfinished.0, &path),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("listed").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn unfinished_it_leaves_nothing_and_takes_no_name() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out");
        let taken = folder.path().join(format!("out.{}-0.part", std::process::id()));
        fs::write(&taken, "mine").expect("it is writable");
        let mut file = NewFile::create(&path).expect("another name is free");
        file.write_all(b"half").expect("it is writable");
        assert_eq!(names(folder.path()).len(), 2);
        drop(file);
        assert_eq!(names(folder.path()), [taken.file_name().expect("a name").to_str().expect("text")]);
        assert_eq!(fs::read(&taken).expect("it is there"), b"mine");
    }

    #[test]
    fn who_took_the_name_meanwhile_keeps_it() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out");
        let file = NewFile::create(&path).expect("free");
        fs::write(&path, "theirs").expect("it is writable");
        assert_eq!(file.finish().expect_err("taken").kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(&path).expect("it is there"), b"theirs");
        assert_eq!(NewFile::create(&path).expect_err("taken").kind(), ErrorKind::AlreadyExists);
    }
}
