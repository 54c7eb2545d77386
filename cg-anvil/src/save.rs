//! The region files of a save, and which dimension each belongs to.

mod forms;
mod layout;
mod lock;
mod other;
mod regions;
mod server;
mod strays;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

pub use forms::{Form, OtherForm};
pub use layout::{FOLDERS_OF_26, Layout, OVERWORLD, dimension_folder, found_folder, is_moved, only_layout};
pub use lock::{SaveLock, is_in_use};
pub use other::{OtherFiles, file_path, is_named_as_region};
use regions::{Bare, Found, REGION_FOLDERS};
pub use regions::{is_found, is_region_part};
pub use server::ServerFolder;
pub use strays::{Side, Strays, stray_name, stray_of};

use super::Level;
use super::region::RegionPos;

/// File that tells a save from a folder of region files.
pub(crate) const LEVEL: &str = "level.dat";
/// The longest `level.dat` that is read.
const MAX_LEVEL_BYTES: u64 = 64 << 20;

/// A save, a folder of region files, or one region file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// The path that was asked for.
    pub path: PathBuf,
    /// The region files: of a dimension that both layouts hold, those in which the game looks for it. By dimension,
    /// content, place and path, the same on every machine.
    pub regions: Vec<RegionFile>,
    /// The layout in which each dimension was met, also without a region file.
    pub layouts: BTreeMap<String, Layout>,
    /// Region files of dimensions that the save holds where the game does not look.
    pub strays: Vec<Strays>,
    /// Name and version from `level.dat`; of a save whose `level.dat` cannot be read, from `level.dat_old`.
    pub level: Option<Level>,
    /// Dimensions that were left out, and how many region files they have.
    pub left_out: BTreeMap<String, u64>,
    /// Files that hold chunks in a form that is not read.
    pub other_forms: Vec<OtherForm>,
    /// Files of a folder of region files that are copies of others in it, each with the name of that: none is read.
    pub copies: Vec<(PathBuf, String)>,
    /// Region files that bring nothing, and those of dimensions that were left out.
    dropped: Vec<PathBuf>,
    /// `None` where there are only region files.
    taken: Option<Taken>,
    /// Whether dimensions were made of the strays.
    has_taken_strays: bool,
}

/// The files of a save that are no regions: which are taken, and what they are called in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    /// How the paths begin of those that are taken; `None` if none is.
    from: Option<String>,
    /// Prefix that takes the place of that.
    to: String,
}

/// One region file of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionFile {
    /// The dimension, `namespace:name`.
    pub dimension: String,
    /// Kind of content, as the file's folder tells it.
    pub kind: RegionKind,
    /// The place in the file's name; `None` when it has none, and only the columns tell theirs.
    pub pos: Option<RegionPos>,
    /// Where the file is.
    pub path: PathBuf,
    /// The layout of its folder; `None` when that is no dimension's.
    pub layout: Option<Layout>,
}

/// Kind of a region file's content, as its folder tells it. Blocks come before entities, which belong to their chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegionKind {
    /// `region/`: columns.
    Blocks,
    /// A file by itself, or in a folder without a save around it: its content tells.
    ByContent,
    /// `entities/`: entities by column.
    Entities,
    /// `poi/`: points of interest by column.
    PointsOfInterest,
}

/// Why a path is no save.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Nothing that a save has.
    #[error(
        "{} is no save: neither a region file (.mca), nor a folder of them, nor a folder with a level.dat of Java Edition, region/, DIM-1/, DIM1/ or dimensions/ in it",
        .0.display()
    )]
    NotASave(PathBuf),
    /// The folder of a server.
    #[error("{0}")]
    Server(ServerFolder),
    /// A schematic.
    #[error(
        "{} is a schematic and no save; `cg schem import FILE WORLD --at X Y Z` puts it into a world",
        .0.display()
    )]
    Schematic(PathBuf),
    /// Chunks in another form, and no region file.
    #[error("{} holds {form}, which are not read; {}", path.display(), form.advice())]
    OtherForm {
        /// Path that was to be imported.
        path: PathBuf,
        /// The form.
        form: Form,
    },
    /// The overworld was asked for.
    #[error("{} holds no overworld that another dimension could be made of", .0.display())]
    NoOverworld(PathBuf),
    /// A name that a save has no folder for.
    #[error(
        "`{0}` is no name of a dimension: namespace:name of a-z 0-9 _ . - and / is wanted, with at most 255 bytes between slashes"
    )]
    DimensionName(String),
    /// A dimension has the name that strays are to have.
    #[error(
        "`--take-strays` makes a dimension `{name}`, and {} is of one of that name already; move that dimension's folder out of the save and import it by itself, or import without `--take-strays`",
        path.display()
    )]
    StrayName {
        /// A file of the dimension.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A folder or file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path that was read.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Lists the region files of a save, of a dimension's folder, of a folder of region files, or the one file that is named.
///
/// A folder of a save that is a dimension's own, such as `DIM-1` or `dimensions/minecraft/the_end`, is that dimension, and
/// so is `region/` in it or a file there. Files of any other folder without a save around it belong to [`OVERWORLD`],
/// unless two of them have the same place in the name: then what stands before `r.X.Z.mca` names a dimension of its own,
/// `file:<prefix>`, so that no column replaces another. Copies of a file beside them, such as `r.0.0 (1).mca`, are left out.
/// In the folder of a dimension a region is `r.X.Z.mca` as the game writes it, and every other file is a file of the save.
///
/// Opens folders, `level.dat`, and the headers of region files of dimensions that both layouts hold.
///
/// # Errors
/// [`SaveError`].
pub fn find(path: &Path) -> Result<Save, SaveError> {
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    if ending.is_some_and(|ending| ending == "schem" || ending == "schematic") && path.is_file() {
        return Err(SaveError::Schematic(path.to_owned()));
    }
    if path.is_file() {
        if let Some(form) = Form::of_file(path) {
            return Err(SaveError::OtherForm { path: path.to_owned(), form });
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = regions::listed(vec![path.to_owned()], own_dimension(folder));
        return Ok(Save::of(path, file, None));
    }
    let has_level = path.join(LEVEL).is_file();
    let own = if has_level { None } else { own_dimension(path) };
    let bare = regions::files(path, "mca")?;
    if let Some((dimension, layout)) = own {
        let mut found = Found::default();
        regions::of_dimension(path, &dimension, layout, &mut found)?;
        let is_bare = found.dimensions.is_empty();
        if !is_bare || path.join("data").is_dir() {
            let folder = dimension_folder(&dimension, layout).unwrap_or_default();
            if is_bare {
                found.files = regions::bare(bare, Some((dimension.clone(), layout))).files;
            }
            if let Some(other) = found.other_forms.first().filter(|_| found.files.is_empty()) {
                return Err(SaveError::OtherForm { path: path.to_owned(), form: other.form });
            }
            found.dimensions.insert((dimension, layout));
            let to = format!("{}/", folder.display());
            let mut save = Save::of(path, found.files, Some(Taken { from: Some(String::new()), to }));
            save.other_forms = found.other_forms;
            save.layouts = found.dimensions.into_iter().collect();
            return Ok(save);
        }
        let Bare { files, copies } = regions::bare(bare.clone(), Some((dimension, layout)));
        if !files.is_empty() {
            return Ok(Save { other_forms: forms::of_bare(path)?, copies, ..Save::of(path, files, None) });
        }
    }
    whole(path, bare)
}

/// A folder that is no dimension's own.
fn whole(path: &Path, bare: Vec<PathBuf>) -> Result<Save, SaveError> {
    let mut found = Found::default();
    regions::of_save(path, &mut found)?;
    let mut copies = Vec::new();
    if found.dimensions.is_empty() {
        // Beside the folders of dimensions they are files as others.
        let bare = regions::bare(bare, None);
        (found.files, copies) = (bare.files, bare.copies);
        found.other_forms.extend(forms::of_bare(path)?);
    }
    let level = level(path)?;
    if found.files.is_empty() {
        if let Some(other) = found.other_forms.first() {
            return Err(SaveError::OtherForm { path: path.to_owned(), form: other.form });
        }
        // A save whose folders are there but empty is a save with nothing in it.
        if found.dimensions.is_empty() && level.is_none() {
            if let Some(server) = ServerFolder::find(path).ok().flatten() {
                return Err(SaveError::Server(server));
            }
            return Err(SaveError::NotASave(path.to_owned()));
        }
    }
    let is_save = !found.dimensions.is_empty() || path.join(LEVEL).is_file();
    let taken = is_save.then(|| Taken { from: Some(String::new()), to: String::new() });
    let files_of_26 = FOLDERS_OF_26.iter().any(|folder| path.join(folder).is_dir());
    let looks = match &level {
        Some(level) => Layout::of_level(level, files_of_26),
        None if files_of_26 => Layout::Dimensions,
        None => Layout::Old,
    };
    let strays::Parted { live, strays, dropped } = strays::part(found.files, looks);
    if is_save {
        // They are files of it.
        copies.clear();
    }
    let other_forms = found.other_forms;
    let mut save = Save { strays, level, other_forms, copies, dropped, ..Save::of(path, live, taken) };
    for (dimension, layout) in found.dimensions {
        let has_regions = save.regions.iter().any(|file| file.dimension == dimension);
        // Of two empty folders, the one in which the game looks.
        if !has_regions && (layout == looks || !save.layouts.contains_key(&dimension)) {
            save.layouts.insert(dimension, layout);
        }
    }
    Ok(save)
}

/// Sorts region files by dimension, kind and place. A file without a place in its name comes last: of two columns at one
/// place the first counts.
fn sort(regions: &mut [RegionFile]) {
    fn key(file: &RegionFile) -> (&str, RegionKind, bool, Option<RegionPos>, &Path) {
        (&file.dimension, file.kind, file.pos.is_none(), file.pos, &file.path)
    }
    regions.sort_by(|one, other| key(one).cmp(&key(other)));
}

impl Save {
    fn of(path: &Path, mut regions: Vec<RegionFile>, taken: Option<Taken>) -> Self {
        sort(&mut regions);
        let layouts =
            regions.iter().filter_map(|file| Some((file.dimension.clone(), file.layout?))).collect();
        let (path, strays) = (path.to_owned(), Vec::new());
        Self {
            path,
            regions,
            layouts,
            strays,
            level: None,
            left_out: BTreeMap::new(),
            other_forms: Vec::new(),
            copies: Vec::new(),
            dropped: Vec::new(),
            taken,
            has_taken_strays: false,
        }
    }

    /// Makes dimensions of their own of the strays.
    ///
    /// # Errors
    /// [`SaveError::StrayName`]; nothing is changed then.
    pub fn take_strays(&mut self) -> Result<(), SaveError> {
        let names = self.strays.iter().map(|strays| stray_name(&strays.dimension));
        for name in names {
            if let Some(file) = self.regions.iter().find(|file| file.dimension == name) {
                return Err(SaveError::StrayName { path: file.path.clone(), name });
            }
        }
        self.has_taken_strays = true;
        for strays in std::mem::take(&mut self.strays) {
            let dimension = stray_name(&strays.dimension);
            self.layouts.insert(dimension.clone(), strays.layout);
            self.regions.extend(
                strays.files.into_iter().map(|file| RegionFile { dimension: dimension.clone(), ..file }),
            );
        }
        sort(&mut self.regions);
        Ok(())
    }

    /// Leaves out all but the overworld, and makes another dimension of that.
    ///
    /// # Errors
    /// [`SaveError::DimensionName`] and [`SaveError::NoOverworld`].
    pub fn as_dimension(&mut self, dimension: &str) -> Result<(), SaveError> {
        let to = dimension_folder(dimension, Layout::Dimensions)
            .ok_or_else(|| SaveError::DimensionName(dimension.to_owned()))?;
        if !self.regions.iter().any(|file| file.dimension == OVERWORLD) {
            return Err(SaveError::NoOverworld(self.path.clone()));
        }
        let layout = self.layouts.get(OVERWORLD).copied();
        self.only(OVERWORLD);
        for file in &mut self.regions {
            dimension.clone_into(&mut file.dimension);
        }
        self.layouts = layout.map(|layout| (dimension.to_owned(), layout)).into_iter().collect();
        if let Some(taken) = &mut self.taken {
            taken.to = format!("{}/", to.display());
        }
        Ok(())
    }

    /// Leaves out all but a dimension with its strays, and the files in a folder of its own.
    pub fn only(&mut self, dimension: &str) {
        let has_taken_strays = self.has_taken_strays;
        let is_of = |name: &str| name == dimension || has_taken_strays && name == stray_name(dimension);
        for file in &self.regions {
            if !is_of(&file.dimension) {
                *self.left_out.entry(file.dimension.clone()).or_default() += 1;
            }
        }
        let (regions, dropped): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.regions).into_iter().partition(|file| is_of(&file.dimension));
        self.regions = regions;
        let (strays, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.strays).into_iter().partition(|strays| strays.dimension == dimension);
        self.strays = strays;
        let dropped = dropped.into_iter().chain(others.into_iter().flat_map(|strays| strays.files));
        self.dropped.extend(dropped.map(|file| file.path));
        self.other_forms.retain(|other| other.dimension == dimension);
        self.layouts.retain(|met, _| is_of(met));
        let folder = self.layouts.get(dimension).and_then(|layout| dimension_folder(dimension, *layout));
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        // The files of a dimension's own folder are called by that already.
        if let Some(taken) = self.taken.as_mut().filter(|taken| taken.to.is_empty()) {
            taken.from = folder.map(|folder| format!("{}/", folder.display()));
            taken.to = taken.from.clone().unwrap_or_default();
        }
    }

    /// The only dimension, if that is the nether or the end of a save of its own: servers keep each in a save beside the
    /// overworld's. Strays are of the dimension that they were met beside.
    pub fn only_nether_or_end(&self) -> Option<String> {
        let of = |file: &RegionFile| {
            let of = if self.has_taken_strays { stray_of(&file.dimension) } else { None };
            of.unwrap_or_else(|| file.dimension.clone())
        };
        let only = of(self.regions.first()?);
        let is_only = self.regions.iter().all(|file| of(file) == only);
        (is_only && is_moved(&only) && only != OVERWORLD && self.has_level()).then_some(only)
    }

    /// Whether nothing was left out or refused of it that may hold columns.
    pub fn is_all(&self) -> bool {
        self.left_out.is_empty() && self.strays.is_empty() && self.other_forms.is_empty()
    }

    /// Whether the save has a `level.dat` of its own.
    pub fn has_level(&self) -> bool {
        self.path.join(LEVEL).is_file()
    }
}

/// The dimension whose own folder is a folder, or the folder around `region/`.
fn own_dimension(folder: &Path) -> Option<(String, Layout)> {
    let absolute = regions::absolute(folder).ok()?;
    let is_part = |name| REGION_FOLDERS.iter().any(|(part, _)| *part == name);
    let own = match absolute.file_name()?.to_str() {
        Some(name) if is_part(name) => absolute.parent()?,
        _ => &absolute,
    };
    // A save may have any name, and a dimension that of a part.
    if [own, &absolute].iter().any(|folder| folder.join(LEVEL).is_file()) {
        return None;
    }
    regions::dimension_of(own).or_else(|| regions::dimension_of(&absolute))
}

/// Reads a save's `level.dat`, or `level.dat_old` where that cannot be read.
pub(crate) fn level(save: &Path) -> Result<Option<Level>, SaveError> {
    for name in [LEVEL, "level.dat_old"] {
        let path = save.join(name);
        if !path.is_file() {
            continue;
        }
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).and_then(|file| file.take(MAX_LEVEL_BYTES).read_to_end(&mut bytes));
        file.map_err(|source| SaveError::Io { path, source })?;
        if let Some(level) = Level::read(&bytes) {
            return Ok(Some(level));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
