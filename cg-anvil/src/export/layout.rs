//! Into which folders an export puts the dimensions of a world.

use std::ops::ControlFlow;
use std::path::PathBuf;

use cg_store::{Error, ErrorKind, World};
use serde::{Deserialize, Serialize};

use crate::Level;
use crate::mapping::StoredLevel;
use crate::mapping::key::FILE_PREFIX;
use crate::mapping::layout::{LevelDigest, MetLayout, digest_of_level, layout_key};
use crate::save::{
    FOLDERS_OF_26, Layout, dimension_folder, found_folder, is_found, is_moved, only_layout, stray_of,
};

/// The layout that is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayoutChoice {
    /// That in which each dimension was imported, beside the same `level.dat`; else that in which the game of the
    /// `level.dat` looks; of a world without one, the old layout.
    #[default]
    AsImported,
    /// `region/`, `DIM-1/` and `DIM1/`, for Minecraft up to 1.21.11.
    Old,
    /// `dimensions/minecraft/overworld/` and so on, for Minecraft from 26.1 on.
    New,
}

/// Layout of a world's save, as the world tells it.
#[derive(Debug)]
pub struct Layouts<'a> {
    world: &'a World,
    /// The layout in which the game of the stored `level.dat` looks, if there is one.
    looks: Option<Layout>,
    /// Whether the world holds files that only saves of the newer layout have.
    has_files_of_26: bool,
    level: Option<Level>,
    digest: Option<LevelDigest>,
}

/// A dimension's layout and folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Placed {
    /// The layout.
    pub layout: Layout,
    /// The folder, from the save's on.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl<'a> Layouts<'a> {
    /// Reads the stored `level.dat`. Where that cannot be read, `level.dat_old` tells, then the names of other files.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn read(world: &'a World) -> Result<Self, Error> {
        let StoredLevel { bytes, level } = StoredLevel::read(world)?;
        let has_files_of_26 = has_files_of_26(world)?;
        let looks = match &level {
            Some(level) => Some(Layout::of_level(level, has_files_of_26)),
            // There is one, which cannot be read.
            None if bytes.is_some() => Some(of_files(has_files_of_26)),
            None => None,
        };
        Ok(Self { world, looks, has_files_of_26, level, digest: bytes.as_deref().map(digest_of_level) })
    }

    /// The layout in which a dimension is exported.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn of(&self, dimension: &str, choice: LayoutChoice) -> Result<Option<Placed>, Error> {
        let met = self.met(dimension)?;
        if let (Some(met), Some(of)) = (met.filter(|met| met.is_stray), stray_of(dimension)) {
            let folder = dimension_folder(&of, met.layout);
            return Ok(folder.map(|folder| Placed { layout: met.layout, folder }));
        }
        let layout = match (only_layout(dimension), choice) {
            (Some(layout), _) => layout,
            (None, LayoutChoice::Old) => Layout::Old,
            (None, LayoutChoice::New) => Layout::Dimensions,
            (None, LayoutChoice::AsImported) => {
                let met = met.filter(|met| met.level == self.digest).map(|met| met.layout);
                met.or(self.looks).unwrap_or(Layout::Old)
            }
        };
        Ok(found_folder(dimension, layout).map(|folder| Placed { layout, folder }))
    }

    /// The layout in which the game of the stored `level.dat` looks for dimensions, if a `level.dat` is stored.
    pub const fn looks(&self) -> Option<Layout> {
        self.looks
    }

    /// The layout in which the game looks for players, as an import of these files takes it.
    pub(super) fn of_players(&self) -> Layout {
        self.looks.unwrap_or_else(|| of_files(self.has_files_of_26))
    }

    /// Why a dimension in a layout does not fit the stored `level.dat`, or is not imported again; `None` if it does, or
    /// `level.dat` cannot be read.
    pub(super) fn misfit(&self, dimension: &str, placed: &Placed) -> Option<String> {
        if !is_found(dimension) {
            return Some(format!(
                "{dimension} is in {}/, where an import of the whole save does not look; import that folder by itself",
                placed.folder.display()
            ));
        }
        // Where no `level.dat` can be read, nothing says where a game looks.
        let level = self.level.as_ref()?;
        let looks = self.looks.filter(|looks| is_moved(dimension) && *looks != placed.layout)?;
        let folder = match placed.folder.to_str() {
            None | Some("") => "region".to_owned(),
            Some(folder) => folder.to_owned(),
        };
        let level = match level.data_version {
            Some(version) => format!("level.dat of DataVersion {version}"),
            None => "level.dat without a DataVersion".to_owned(),
        };
        let expected = dimension_folder(dimension, looks).unwrap_or_default().join("region");
        Some(format!(
            "{dimension} is in {folder}/, where {} looks; the {level} beside it is for {}, which looks in {}/ and makes the \
             dimension anew; no game converts new to old",
            placed.layout.versions(),
            looks.versions(),
            expected.display(),
        ))
    }

    /// The name that the stored `level.dat` gives the save.
    pub fn save_name(&self) -> Option<&str> {
        self.level.as_ref().map(|level| level.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The version of the game that wrote the stored `level.dat`.
    pub fn data_version(&self) -> Option<i32> {
        self.level.as_ref()?.data_version
    }

    fn met(&self, dimension: &str) -> Result<Option<MetLayout>, Error> {
        // A dimension whose name is too long for a key has one folder.
        let Ok(key) = layout_key(dimension) else { return Ok(None) };
        match self.world.objects().get(key) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
            found => Ok(found?.and_then(|object| MetLayout::decode(&object.bytes))),
        }
    }
}

/// The layout of a save whose `level.dat` does not tell.
const fn of_files(has_files_of_26: bool) -> Layout {
    if has_files_of_26 { Layout::Dimensions } else { Layout::Old }
}

/// Whether a world holds files that only saves of the newer layout have.
fn has_files_of_26(world: &World) -> Result<bool, Error> {
    for folder in FOLDERS_OF_26 {
        let found =
            world.objects().for_each(format!("{FILE_PREFIX}{folder}/"), |_| ControlFlow::Break(()))?;
        if found.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
