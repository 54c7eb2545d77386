//! Backup of the slots that were replaced, as region files in a folder beside the save, and of other files.
//!
//! The folder of the save `world` is `world.cg-replaced-1`, or of the next number that is free, and has the save's own
//! paths. Files that belong to no region have theirs below `files/`, so that no `level.dat` makes a save of the folder. It ends with `.part` until the command is done, so that the same command goes on with it after a kill.
//! A region is there once its own file is; its `.mcc` files come first.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::disk::{self, Partial};
use super::error::IntoError;

const INFIX: &str = ".cg-replaced-";
const UNFINISHED: &str = ".part";
/// The folder of files that belong to no region.
const FILES: &str = "files";

/// The folders beside a save.
#[derive(Debug)]
pub(super) struct Backup {
    root: PathBuf,
    parent: PathBuf,
    /// The names of the folders, up to their number.
    stem: OsString,
    /// The highest number of a folder that is finished.
    last: u32,
    /// The number of the folder that is not.
    open: Option<u32>,
    /// The folders that this command finished.
    finished: Vec<PathBuf>,
}

impl Backup {
    /// Looks for the folders of a save.
    pub(super) fn find(root: &Path) -> io::Result<Self> {
        let no_parent = || io::Error::new(io::ErrorKind::InvalidInput, "there is no folder around the save");
        let (parent, name) = root.parent().zip(root.file_name()).ok_or_else(no_parent)?;
        let mut stem = name.to_owned();
        stem.push(INFIX);
        let (mut last, mut open) = (0, None);
        for entry in fs::read_dir(parent)? {
            let name = entry?.file_name();
            let Some(rest) = name.as_encoded_bytes().strip_prefix(stem.as_encoded_bytes()) else { continue };
            let Ok(rest) = std::str::from_utf8(rest) else { continue };
            let (number, is_open) = match rest.strip_suffix(UNFINISHED) {
                Some(number) => (number, true),
                None => (rest, false),
            };
            let Ok(number) = number.parse::<u32>() else { continue };
            if is_open {
                open = open.max(Some(number));
            } else {
                last = last.max(number);
            }
        }
        let (root, parent) = (root.to_owned(), parent.to_owned());
        Ok(Self { root, parent, stem, last, open, finished: Vec::new() })
    }

    /// Keeps a region file as it is, with these `.mcc` files beside it. What is there already stays.
    pub(super) fn keep_region(&mut self, file: &Path, externals: &[PathBuf]) -> io::Result<()> {
        let kept = self.place(file)?;
        if kept.is_file() {
            if is_same(file, &kept)? {
                return Ok(());
            }
            // It was changed since by another than this command.
            self.close()?;
        }
        self.keep_all(externals, true)?;
        self.keep(file, false)
    }

    /// The failure of a call that was to keep something.
    pub(super) fn failed(&self, source: io::Error) -> IntoError {
        IntoError::Backup { path: self.root.clone(), source }
    }

    /// Whether a file of the save is kept in the folder that is not finished.
    pub(super) fn has(&self, file: &Path) -> bool {
        let place = self.open.zip(self.below(file).ok());
        place.is_some_and(|(number, below)| self.folder(number, true).join(below).is_file())
    }

    /// Keeps files as they are, each unless one of its name is there.
    pub(super) fn keep_all(&mut self, files: &[PathBuf], is_overwritten: bool) -> io::Result<()> {
        files.iter().try_for_each(|file| self.keep(file, is_overwritten))
    }

    /// Ends the folder; gives those that this command has ended, the last one last.
    pub(super) fn finish(mut self) -> io::Result<Vec<PathBuf>> {
        self.close()?;
        Ok(self.finished)
    }

    fn keep(&mut self, file: &Path, is_overwritten: bool) -> io::Result<()> {
        let place = self.place(file)?;
        if !file.is_file() || place.is_file() && !is_overwritten {
            return Ok(());
        }
        let folder = place.parent().expect("a file of the save is in a folder").to_owned();
        disk::make_folder(&folder)?;
        let partial = Partial::of(&place);
        let _gone = fs::remove_file(partial.path());
        // The save's region gets another file, and this one stays. Parts of columns may be written in place by tools.
        let is_region = file.extension() == Some(OsStr::new("mca"));
        let file = fs::canonicalize(file)?;
        if !is_region || fs::hard_link(&file, partial.path()).is_err() {
            fs::copy(&file, partial.path())?;
            File::open(partial.path())?.sync_all()?;
        }
        partial.rename(&place)
    }

    /// Where a file of the save is kept.
    fn place(&mut self, file: &Path) -> io::Result<PathBuf> {
        let number = *self.open.get_or_insert(self.last + 1);
        let below = self.below(file)?;
        Ok(self.folder(number, true).join(below))
    }

    /// The path of a kept file, from the folder on.
    fn below(&self, file: &Path) -> io::Result<PathBuf> {
        let below = file.strip_prefix(&self.root).map_err(io::Error::other)?;
        let is_of_region = file.extension().is_some_and(|ending| ending == "mca" || ending == "mcc");
        Ok(if is_of_region { below.to_owned() } else { Path::new(FILES).join(below) })
    }

    fn folder(&self, number: u32, is_open: bool) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(number.to_string());
        name.push(if is_open { UNFINISHED } else { "" });
        self.parent.join(name)
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(number) = self.open.take() else { return Ok(()) };
        let from = self.folder(number, true);
        if from.is_dir() {
            let number = number.max(self.last + 1);
            let to = self.folder(number, false);
            fs::rename(&from, &to)?;
            disk::sync_folder(&self.parent)?;
            self.finished.push(to);
            self.last = number;
        }
        Ok(())
    }
}

/// Whether two files are one, or have the same bytes.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (a, b) = (fs::metadata(one)?, fs::metadata(other)?);
    if (a.dev(), a.ino()) == (b.dev(), b.ino()) {
        return Ok(true);
    }
    Ok(a.len() == b.len() && disk::same_bytes(one, other)?)
}
