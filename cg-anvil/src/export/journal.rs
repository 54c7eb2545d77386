//! The journal of an export: the file that says that a folder holds an unfinished one, and what of it is done.
//!
//! It is the first file of the folder and the last that goes. Its first line says of which world, in which state and with
//! which options the export is. Then one line says that a region is begun, before any file of it is there, and one what it
//! came to, after its files are on the disk; and one names the files that are no regions. A line that was cut off is none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use cg_store::World;
use serde::{Deserialize, Serialize};

use super::error::ExportError;
use super::options::ExportOptions;
use super::report::ExportReport;
use super::slots::Part;
use crate::region::{Region, RegionPos, region_of_file};
use crate::{folder, save};

/// The journal's name in the folder of an export.
pub const UNFINISHED: &str = "cg-export.unfinished";

/// The folders of a dimension that hold regions.
const REGION_FOLDERS: [&str; 3] = [Part::Region.folder(), Part::Points.folder(), Part::Entities.folder()];

/// Identity of an export. Only one of the same world in the same state, with the same options and by the same release,
/// is continued; what another one of that world left is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    release: String,
    world: String,
    incarnation: String,
    commit: u64,
    options: ExportOptions,
}

/// A region of a save: the folder of its dimension and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    folder: PathBuf,
    x: i32,
    z: i32,
}

/// Result of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) report: ExportReport,
    /// Entities that ride others in it.
    pub(super) riders: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    #[serde(rename = "export")]
    Head(Head),
    #[serde(rename = "begun")]
    Begun(Place),
    #[serde(rename = "done")]
    Done(Place, Box<Done>),
    #[serde(rename = "files")]
    Files(Vec<String>),
}

/// The journal of the export that this process does.
#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
    /// Locked as long as the export goes on.
    file: File,
    done: BTreeMap<Place, Done>,
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that another thread just started may still have the descriptor, and with it the lock.
        let _unlocked = self.file.unlock();
    }
}

/// Contents of a journal that was found.
#[derive(Debug, Default)]
struct Found {
    head: Option<Head>,
    begun: BTreeSet<Place>,
    done: BTreeMap<Place, Done>,
    files: BTreeSet<PathBuf>,
    /// Up to where its lines are whole.
    len_bytes: u64,
}

impl Journal {
    /// Begins an export into a folder, or continues one that was stopped.
    pub(super) fn open(world: &World, dir: &Path, options: &ExportOptions) -> Result<Self, ExportError> {
        let io = |source| ExportError::Io { path: dir.to_owned(), source };
        folder::make(dir).map_err(io)?;
        let path = dir.join(UNFINISHED);
        let is_there = path.symlink_metadata().is_ok_and(|there| there.is_file());
        if !is_there && fs::read_dir(dir).map_err(io)?.next().is_some() {
            return Err(ExportError::NotEmpty(dir.to_owned()));
        }
        let io = |source| ExportError::Io { path: path.clone(), source };
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(ExportError::InUse(dir.to_owned()));
        }
        let identity = world.identity();
        let head = Head {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            world: identity.uuid.to_string(),
            incarnation: identity.incarnation.to_string(),
            commit: world.last_commit().get(),
            options: options.clone(),
        };
        let mut journal = Self { dir: dir.to_owned(), file, done: BTreeMap::new() };
        let found = Found::read(&mut journal.file, dir).map_err(io)?;
        if found.head.as_ref().is_some_and(|found| found.world != head.world) {
            return Err(ExportError::OtherWorld(dir.to_owned()));
        }
        let known = found.check(dir)?;
        let continues = found.head.as_ref() == Some(&head);
        for path in known {
            // The files that are no regions are written in one go; so are they again. A column of a region that is done may have
            // the name of such a file, which then is left out again.
            if !continues || found.files.contains(&path) && !found.is_of_done(dir, &path) {
                fs::remove_file(&path).map_err(|source| ExportError::Io { path, source })?;
            }
        }
        if continues {
            journal.done = found.done;
            // What was deleted since is written again.
            journal.done.retain(|place, done| place.file_count(dir) == done.report.files);
            journal.cut(found.len_bytes).map_err(io)?;
        } else {
            remove_empty_folders(dir);
            journal.cut(0).map_err(io)?;
            journal.write(&Line::Head(head)).map_err(io)?;
        }
        journal.file.sync_all().and_then(|()| folder::sync(dir)).map_err(io)?;
        Ok(journal)
    }

    /// Result of a region that an earlier run finished; else notes that it is begun.
    pub(super) fn begin(&mut self, folder: &Path, pos: RegionPos) -> Result<Option<Done>, ExportError> {
        let place = Place::new(folder, pos);
        if let Some(done) = self.done.remove(&place) {
            return Ok(Some(done));
        }
        self.note(&Line::Begun(place))?;
        Ok(None)
    }

    /// Notes what a region came to whose files are on the disk.
    pub(super) fn end(&mut self, folder: &Path, pos: RegionPos, done: &Done) -> Result<(), ExportError> {
        // Without a sync: where the line is lost the region is written again.
        let line = Line::Done(Place::new(folder, pos), Box::new(done.clone()));
        self.write(&line).map_err(|source| self.failed(source))
    }

    /// Notes which files that are no regions will be there.
    pub(super) fn files(&mut self, names: Vec<String>) -> Result<(), ExportError> {
        if names.is_empty() { Ok(()) } else { self.note(&Line::Files(names)) }
    }

    /// Puts every name in the folder on the disk and says that the export is done.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let mut folders = Vec::new();
        walk(&self.dir, &mut |path, is_folder| {
            folders.extend(is_folder.then_some(path));
            Ok(())
        })?;
        let above = self.dir.parent().map(Path::to_owned);
        // An earlier run may have been stopped after it made a folder.
        for path in folders.into_iter().chain(above).chain([self.dir.clone()]) {
            folder::sync(&path).map_err(|source| ExportError::Io { path, source })?;
        }
        let path = self.dir.join(UNFINISHED);
        let removed = fs::remove_file(&path).and_then(|()| folder::sync(&self.dir));
        removed.map_err(|source| ExportError::Io { path, source })
    }

    fn note(&mut self, line: &Line) -> Result<(), ExportError> {
        self.write(line).and_then(|()| self.file.sync_data()).map_err(|source| self.failed(source))
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }

    fn cut(&mut self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)?;
        self.file.seek(SeekFrom::Start(len_bytes)).map(drop)
    }

    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Io { path: self.dir.join(UNFINISHED), source }
    }
}

impl Place {
    fn new(folder: &Path, pos: RegionPos) -> Self {
        Self { folder: folder.to_owned(), x: pos.x(), z: pos.z() }
    }

    /// How many region files it has in a save.
    fn file_count(&self, dir: &Path) -> u64 {
        let Some(pos) = RegionPos::new(self.x, self.z) else { return 0 };
        let folders = REGION_FOLDERS.iter().map(|name| dir.join(&self.folder).join(name));
        folders.filter(|folder| folder.join(pos.file_name()).is_file()).count() as u64
    }
}

impl Found {
    /// Reads the lines of a journal up to the first that is none.
    fn read(file: &mut File, dir: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut found = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(parsed) = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice(line).ok())
            else {
                break;
            };
            match (parsed, found.head.is_some()) {
                (Line::Head(head), false) => found.head = Some(head),
                (Line::Begun(place), true) => drop(found.begun.insert(place)),
                (Line::Done(place, done), true) => drop(found.done.insert(place, *done)),
                (Line::Files(names), true) => {
                    found.files.extend(names.iter().filter_map(|name| save::file_path(dir, name)));
                }
                (Line::Head(_), true) | (_, false) => break,
            }
            found.len_bytes += line.len() as u64;
        }
        Ok(found)
    }

    /// Whether a file is that of a column to which a slot of a region points that is done.
    fn is_of_done(&self, dir: &Path, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return false;
        };
        let Some(pos) = region_of_file(name) else { return false };
        let mut places = self.done.keys().filter(|place| (place.x, place.z) == (pos.x(), pos.z()));
        places.any(|place| REGION_FOLDERS.iter().any(|part| dir.join(&place.folder).join(part) == folder))
            && Region::open(&folder.join(pos.file_name())).is_ok_and(|mut region| {
                region.external_slots().into_iter().any(|slot| pos.external_name(slot) == name)
            })
    }

    /// The files of the export in the folder. One that is not of it is an error.
    fn check(&self, dir: &Path) -> Result<Vec<PathBuf>, ExportError> {
        let mut regions = BTreeMap::<PathBuf, BTreeSet<RegionPos>>::new();
        for Place { folder, x, z } in self.begun.iter().chain(self.done.keys()) {
            let Some(pos) = RegionPos::new(*x, *z) else { continue };
            for name in REGION_FOLDERS {
                regions.entry(dir.join(folder).join(name)).or_default().insert(pos);
            }
        }
        let mut known = Vec::new();
        walk(dir, &mut |path, is_folder| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_of_region = || {
                let regions = path.parent().and_then(|folder| regions.get(folder));
                regions.zip(region_of_file(name)).is_some_and(|(regions, pos)| regions.contains(&pos))
            };
            if is_folder || path == dir.join(UNFINISHED) {
                return Ok(());
            }
            if !self.files.contains(&path) && !is_of_region() {
                return Err(ExportError::Foreign { dir: dir.to_owned(), path });
            }
            known.push(path);
            Ok(())
        })?;
        Ok(known)
    }
}

/// Visits all that is below a folder; a link is no folder. Each folder comes after what is in it.
fn walk(
    dir: &Path,
    visit: &mut impl FnMut(PathBuf, bool) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let io = |source| ExportError::Io { path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let is_folder = entry.file_type().map_err(io)?.is_dir();
        if is_folder {
            walk(&entry.path(), visit)?;
        }
        visit(entry.path(), is_folder)?;
    }
    Ok(())
}

/// Removes the folders below one that hold nothing.
fn remove_empty_folders(dir: &Path) {
    // One that stays is in no way.
    let _left = walk(dir, &mut |path, is_folder| {
        if is_folder {
            let _gone = fs::remove_dir(&path);
        }
        Ok(())
    });
}
