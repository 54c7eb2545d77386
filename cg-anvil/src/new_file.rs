//! A file that has its name only when it is whole and on the disk.
//!
//! ```
//! use std::io::Write;
//! use cg_anvil::new_file::NewFile;
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

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::folder;

/// Names that are tried before giving up.
const ATTEMPTS: u32 = 1000;

/// How the name of an unfinished file begins and ends. Between are the process and a number: `.cg-4711-0.part`.
const UNFINISHED: [&str; 2] = [".cg-", ".part"];

/// A file in the making, beside the place where it will be. Dropped before it is finished, it is gone.
///
/// A process that is killed leaves the unfinished file; the next one that begins a file in the folder deletes it. The lock
/// on an unfinished file says that its process runs. On a file system without locks it stays.
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
        delete_abandoned(folder_of(path), Some(path));
        if path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Self::begin(path)
    }

    fn begin(path: &Path) -> io::Result<Self> {
        let folder = folder_of(path);
        let [start, end] = UNFINISHED;
        for attempt in 0..ATTEMPTS {
            let name = folder.join(format!("{start}{}-{attempt}{end}", std::process::id()));
            match File::create_new(&name) {
                Ok(file) => {
                    // Between the two calls another process may have taken it for one that nothing writes any more.
                    let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
                    if is_taken || name.symlink_metadata().is_err() {
                        continue;
                    }
                    return Ok(Self { file, path: path.to_owned(), unfinished: Unfinished(name) });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "every name for an unfinished file beside it is taken"))
    }

    /// Puts what was written on the disk and gives it its name, which is on the disk too.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if another process took the name meanwhile, whose file stays; what the system says.
    /// Nothing is left.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        // The lock is held until the first name is gone.
        let Self { path, unfinished, file: _file } = self;
        // A link takes no name that is there, a rename would.
        match fs::hard_link(&unfinished.0, &path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
            Err(_) if path.symlink_metadata().is_ok() => return Err(ErrorKind::AlreadyExists.into()),
            // Some file systems have no links.
            Err(_) => fs::rename(&unfinished.0, &path)?,
        }
        drop(unfinished);
        folder::sync(folder_of(&path)).inspect_err(|_| {
            // It may be gone after a power cut, and would be in the way of the next attempt.
            let _gone = fs::remove_file(&path);
        })
    }

    /// As [`finish`](Self::finish), in the place of the file that has the name, with its permissions.
    fn replace(self) -> io::Result<()> {
        if let Ok(there) = fs::metadata(&self.path) {
            self.file.set_permissions(there.permissions())?;
        }
        self.file.sync_all()?;
        fs::rename(&self.unfinished.0, &self.path)?;
        folder::sync(folder_of(&self.path))
    }
}

/// Writes a file, also where one is: that is replaced as a whole. A link is followed, and what is no file, such as a pipe,
/// is written into.
///
/// # Errors
/// What the system says. The file that was there is still there then, unless only the sync of its folder failed.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = fs::metadata(path);
    if there.as_ref().is_ok_and(|there| !there.is_file()) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let path = if there.is_ok() { fs::canonicalize(path)? } else { path.to_owned() };
    delete_abandoned(folder_of(&path), None);
    let mut file = NewFile::begin(&path)?;
    file.write_all(bytes)?;
    file.replace()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Deletes the unfinished files in a folder that no process writes any more, and `path` if that is a second name of one: the
/// process was ended before it could say that the file is there. One that cannot be deleted is in no way.
fn delete_abandoned(folder: &Path, path: Option<&Path>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_unfinished = entry.file_name().to_str().is_some_and(is_unfinished);
        if !is_unfinished || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            if let Some(path) = path.filter(|path| is_same_file(&file, path)) {
                let _gone = fs::remove_file(path);
            }
            let _gone = fs::remove_file(entry.path());
        }
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let there = file.metadata().and_then(|file| Ok((file, fs::symlink_metadata(path)?)));
    there.is_ok_and(|(file, path)| (file.dev(), file.ino()) == (path.dev(), path.ino()))
}

/// Whether a name is that of an unfinished file.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let [start, end] = UNFINISHED;
    let numbers = name.strip_prefix(start).and_then(|name| name.strip_suffix(end));
    let numbers = numbers.and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, attempt)| process.parse::<u32>().is_ok() && attempt.parse::<u32>().is_ok())
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
        let [first, second] = ["out", "out2"].map(|name| folder.path().join(name));
        let mut file = NewFile::create(&first).expect("free");
        file.write_all(b"half").expect("it is writable");
        let other =
            NewFile::create(&second).expect("another name is free, and the first file is in the making");
        assert_eq!(names(folder.path()), [0, 1].map(|n| format!(".cg-{}-{n}.part", std::process::id())));
        drop(other);
        drop(file);
        assert_eq!(names(folder.path()), <[&str; 0]>::default());
    }

    #[test]
    fn what_a_killed_process_left_is_deleted_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a directory");
        let theirs = ["map.png.part", ".cg-7.part", ".cg-7-x.part", ".cg-7-0.part.png", ".cg-8-0.part"];
        for name in theirs.iter().chain(&[".cg-7-0.part", ".cg-4294967295-12.part"]) {
            fs::write(folder.path().join(name), "half").expect("it is writable");
        }
        let writing = File::open(folder.path().join(".cg-8-0.part")).expect("it is there");
        writing.try_lock().expect("free");
        let path = folder.path().join("out");
        NewFile::create(&path).expect("free").finish().expect("it is writable");
        let mut left: Vec<_> = theirs.into_iter().chain(["out"]).collect();
        left.sort_unstable();
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn a_name_of_a_killed_process_is_free_and_anothers_is_not() {
        let folder = tempfile::tempdir().expect("a directory");
        let [path, theirs] = ["out", "theirs"].map(|name| folder.path().join(name));
        let left = folder.path().join(".cg-4294967295-0.part");
        fs::write(&left, "whole").expect("it is writable");
        fs::write(&theirs, "whole").expect("it is writable");
        fs::hard_link(&left, &path).expect("free");
        assert_eq!(NewFile::create(&theirs).expect_err("taken").kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["out", "theirs"], "the name is whole and stays by itself");
        fs::hard_link(&path, &left).expect("free");
        NewFile::create(&path).expect("free").finish().expect("it is writable");
        assert_eq!(names(folder.path()), ["out", "theirs"]);
        assert_eq!(fs::read(&path).expect("it is there"), b"");
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

    #[test]
    fn finished_its_folder_is_synced() {
        let folder = tempfile::tempdir().expect("a directory");
        let before = folder::sync_count();
        let file = NewFile::create(&folder.path().join("out")).expect("free");
        assert_eq!(folder::sync_count(), before);
        file.finish().expect("it is writable");
        assert_eq!(folder::sync_count(), before + 1);
        write(&folder.path().join("out"), b"new").expect("it is writable");
        assert_eq!(folder::sync_count(), before + 2);
    }

    #[test]
    fn a_written_file_replaces_what_is_there_as_a_whole() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out");
        write(&path, b"first").expect("it is writable");
        write(&path, b"2").expect("it is writable");
        assert_eq!(fs::read(&path).expect("it is there"), b"2");
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(write(folder.path(), b"3").expect_err("a folder").kind(), ErrorKind::IsADirectory);
        write(Path::new("/dev/null"), b"4").expect("it takes all");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().expect("a directory");
        let [path, link] = ["out", "link"].map(|name| folder.path().join(name));
        write(&path, b"first").expect("it is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mine");
        symlink("out", &link).expect("free");
        write(&link, b"second").expect("it is writable");
        assert!(link.symlink_metadata().expect("there").is_symlink());
        assert_eq!(fs::read(&path).expect("it is there"), b"second");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    }
}
