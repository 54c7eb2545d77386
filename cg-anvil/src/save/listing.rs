//! What a save has, and taking a part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::SaveError;
use super::file::{LEVEL, RegionFile, RegionKind};
use super::forms::OtherForm;
use super::layout::{Layout, OVERWORLD, dimension_folder, is_moved};
use super::strays::{Strays, stray_name, stray_of};
use crate::Level;
use crate::region::RegionPos;

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
    pub(super) dropped: Vec<PathBuf>,
    /// `None` where there are only region files.
    pub(super) taken: Option<Taken>,
    /// Whether dimensions were made of the strays.
    pub(super) has_taken_strays: bool,
}

/// The files of a save that are no regions: which are taken, and what they are called in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// How the paths begin of those that are taken; `None` if none is.
    pub(super) from: Option<String>,
    /// Prefix that takes the place of that.
    pub(super) to: String,
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
    pub(super) fn of(path: &Path, mut regions: Vec<RegionFile>, taken: Option<Taken>) -> Self {
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
