//! The files of a save that are no regions, where an import took them from.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Cursor, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_store::settings::WorldSettings;
use cg_store::{Error, ErrorKind, World};

use super::error::ExportError;
use super::journal::Journal;
use super::players::Players;
use super::report::ExportReport;
use crate::Region;
use crate::mapping::key::{self, FILE_PREFIX};
use crate::save::{self, LEVEL, Layout};
use crate::settings::{self, ICON, Written};

/// How an export counts files that have no place in a save.
const NO_PATH: &str = "files that no save can hold at the path that they have";

/// How the paths begin of the files that are a dimension's own: those in its folder in each layout, and in that in which it
/// is placed.
pub(super) fn folders_of(dimension: &str, placed: Option<&Path>) -> Vec<String> {
    let folders = [Layout::Old, Layout::Dimensions].map(|layout| save::dimension_folder(dimension, layout));
    let folders: BTreeSet<_> = folders.into_iter().flatten().chain(placed.map(Path::to_owned)).collect();
    let folders = folders.into_iter().filter(|folder| !folder.as_os_str().is_empty());
    folders.map(|folder| format!("{}/", folder.display())).collect()
}

/// Writes every file that a world has an object of, or those `below` some folders. None leaves the folder, replaces another or passes for a region.
///
/// Holds the names of all files and one file in memory. Each is on the disk afterwards.
pub(super) fn write(
    (world, mut players): (&World, Players<'_>),
    dir: &Path,
    below: Option<&[String]>,
    journal: &mut Journal,
    report: &mut ExportReport,
) -> Result<(), ExportError> {
    let settings = WorldSettings::sound(world, |_, _| report.missed("damaged settings", 1))?;
    let mut names = names(world)?;
    let has = |file: &str| names.iter().any(|name| name == file);
    // A picture that was set in the world, of a save that had none.
    let is_icon_new = below.is_none() && settings.thumbnail.is_some() && has(LEVEL) && !has(ICON);
    let new_players = if below.is_none() { players.without_file(&names)? } else { Vec::new() };
    names.extend(is_icon_new.then(|| ICON.to_owned()));
    names.extend(new_players.iter().map(|(_, path)| path.clone()));
    journal.files(names)?;
    let mut writing = Written::new(settings, kept_settings(world)?);
    let mut files = NewFiles { report, written: Vec::new() };
    let failed = world.objects().for_each(FILE_PREFIX, |object| {
        let Ok((key, _, bytes)) = object else {
            files.report.missed("damaged objects of files", 1);
            return ControlFlow::Continue(());
        };
        let name = key.strip_prefix(FILE_PREFIX.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
        let is_wanted =
            |name: &str| below.is_none_or(|below| below.iter().any(|folder| name.starts_with(folder)));
        if !name.is_none_or(is_wanted) {
            return ControlFlow::Continue(());
        }
        let has_regions = files.report.files > 0;
        let is_file = |name: &&str| !is_region(name, has_regions) || holds_no_slot(bytes);
        let path = name.filter(is_file).and_then(|name| save::file_path(dir, name));
        let Some(path) = path else {
            files.report.missed(NO_PATH, 1);
            return ControlFlow::Continue(());
        };
        // Only objects of files have a name, and a path.
        let name = name.unwrap_or_default();
        let done = match players.file(name, writing.file(name, bytes)) {
            Ok(bytes) => bytes.map_or(Ok(()), |bytes| files.put(path, &bytes)),
            Err(error) => Err(error.into()),
        };
        done.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    })?;
    failed.map_or(Ok(()), Err)?;
    if is_icon_new && let Some(thumbnail) = writing.thumbnail() {
        files.put(dir.join(ICON), &thumbnail)?;
    }
    for (uuid, path) in new_players {
        if let Some(bytes) = players.new_file(uuid)? {
            files.put(dir.join(path), &bytes)?;
        }
    }
    let NewFiles { report, written } = files;
    if below.is_none() {
        report.missed("settings that no file of the save has a place for", writing.unsaid());
        players.finish(report);
    }
    // By now the system has begun to put them on the disk.
    for path in written {
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|source| ExportError::Io { path, source })?;
    }
    Ok(())
}

/// Files that are written, and what is said of them.
struct NewFiles<'r> {
    report: &'r mut ExportReport,
    written: Vec<PathBuf>,
}

impl NewFiles<'_> {
    /// Writes a file where there is none.
    fn put(&mut self, path: PathBuf, bytes: &[u8]) -> Result<(), ExportError> {
        match write_new(&path, bytes) {
            Ok(()) => {
                self.report.other_files += 1;
                self.written.push(path);
            }
            Err(error) if is_taken(&error) => self.report.missed("files where another file or folder is", 1),
            // Some systems take shorter ones than others.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => self.report.missed(NO_PATH, 1),
            Err(source) => return Err(ExportError::Io { path, source }),
        }
        Ok(())
    }
}

/// What the files say that a world keeps.
fn kept_settings(world: &World) -> Result<WorldSettings, Error> {
    let mut settings = WorldSettings::default();
    for file in settings::files() {
        match world.objects().get(key::file_key(&file)?) {
            Ok(Some(kept)) => settings::read(&file, &kept.bytes, &mut settings),
            Err(error) if error.kind() != ErrorKind::Damaged => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
    Ok(settings)
}

/// The names of all files that a world has an object of.
fn names(world: &World) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    world.objects().for_each(FILE_PREFIX, |object| {
        let name = object.ok().and_then(|(key, ..)| key.strip_prefix(FILE_PREFIX.as_bytes()));
        names.extend(name.and_then(|name| std::str::from_utf8(name).ok()).map(str::to_owned));
        ControlFlow::<()>::Continue(())
    })?;
    Ok(names)
}

/// Whether a file would be read as a region of the save: it has the name of one in the folder of a dimension, or is in the
/// save's own folder where there is no such folder.
fn is_region(name: &str, has_regions: bool) -> bool {
    let ends_so = Path::new(name).extension().is_some_and(|ending| ending == "mca");
    ends_so && (save::is_region_part(name) || !has_regions && !name.contains('/'))
}

/// Whether the bytes of a region file say that it has no slot.
fn holds_no_slot(bytes: &[u8]) -> bool {
    let region = Region::new(Cursor::new(bytes), None, PathBuf::new());
    region.is_ok_and(|region| region.slots().next().is_none())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(path)?;
    file.write_all(bytes).inspect_err(|_| {
        // That it could not be written matters more than that half of it could not be deleted.
        let _gone = fs::remove_file(path);
    })
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}
