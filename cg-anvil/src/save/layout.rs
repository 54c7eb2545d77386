//! In which folders a save keeps the dimensions of the game.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Level;
use crate::region::number;

/// The dimension of everything that does not say another.
pub const OVERWORLD: &str = "minecraft:overworld";

/// The dimensions that have another folder in each layout, with their folder in [`Layout::Old`].
const MOVED: [(&str, &str); 3] =
    [(OVERWORLD, ""), ("minecraft:the_nether", "DIM-1"), ("minecraft:the_end", "DIM1")];

/// Folders that only saves of [`Layout::Dimensions`] have.
pub const FOLDERS_OF_26: [&str; 2] = ["players/data", "data/minecraft"];

/// The folder of dimensions by namespace.
pub(super) const DIMENSIONS: &str = "dimensions";

/// The longest name that systems give a file or folder.
pub(super) const MAX_NAME_BYTES: usize = 255;

/// The namespace of dimensions whose folders have a number.
const NUMBERED: &str = "dim";

/// The first version that may use [`Layout::Dimensions`]: the first that the game's file fixer knows.
const FIRST_MOVED: i32 = 4772;
/// The first version that always does: 26.1.
const ALWAYS_MOVED: i32 = 4786;

/// In which folders a save keeps the overworld, the nether and the end. All other dimensions have one folder.
///
/// The versions and folders are those of the game's file fixer of 26.1 snapshot 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Until 1.21.11: the save's own folder, `DIM-1/` and `DIM1/`.
    Old,
    /// Since 26.1: `dimensions/minecraft/overworld/` and so on.
    Dimensions,
}

impl Layout {
    /// The layout in which a game looks for the dimensions of a save with this `level.dat`.
    ///
    /// Snapshots between 1.21.11 and 26.1 do not tell: then it counts whether the save has a file in one of
    /// [`FOLDERS_OF_26`].
    pub fn of_level(level: &Level, files_of_26: bool) -> Self {
        match level.data_version {
            Some(ALWAYS_MOVED..) => Self::Dimensions,
            Some(FIRST_MOVED..) if files_of_26 => Self::Dimensions,
            _ => Self::Old,
        }
    }

    /// The versions of the game that look for dimensions here, in words.
    pub const fn versions(self) -> &'static str {
        match self {
            Self::Old => "Minecraft up to 1.21.11",
            Self::Dimensions => "Minecraft from 26.1 on",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Old => "old",
            Self::Dimensions => "dimensions",
        })
    }
}

/// Whether the layouts have different folders for a dimension.
pub fn is_moved(dimension: &str) -> bool {
    MOVED.iter().any(|(moved, _)| *moved == dimension)
}

/// The folder of a dimension inside a save, relative to it: empty for the overworld in [`Layout::Old`].
///
/// `None` for a name that cannot be a path of the game's: only `a-z 0-9 _ . -` between slashes, at most 255 bytes, no `.` or
/// `..`.
///
/// ```
/// use cg_anvil::save::{Layout, dimension_folder};
/// let folder = |dimension, layout| dimension_folder(dimension, layout).unwrap().display().to_string();
/// assert_eq!(folder("minecraft:the_end", Layout::Old), "DIM1");
/// assert_eq!(folder("minecraft:the_end", Layout::Dimensions), "dimensions/minecraft/the_end");
/// assert_eq!(folder("a:b", Layout::Old), "dimensions/a/b");
/// ```
pub fn dimension_folder(dimension: &str, layout: Layout) -> Option<PathBuf> {
    if let Some((_, folder)) = MOVED.iter().find(|(moved, _)| layout == Layout::Old && *moved == dimension) {
        return Some(folder.into());
    }
    let (namespace, name) = dimension.split_once(':')?;
    // As mods number them. Two of the numbers are the game's own.
    if let Some(number) = number(name).filter(|number| namespace == NUMBERED && ![-1, 1].contains(number)) {
        return Some(format!("DIM{number}").into());
    }
    let mut folder = PathBuf::from(DIMENSIONS);
    for part in std::iter::once(namespace).chain(name.split('/')) {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
        if part.is_empty()
            || part.len() > MAX_NAME_BYTES
            || part.bytes().all(|byte| byte == b'.')
            || !part.bytes().all(allowed)
        {
            return None;
        }
        folder.push(part);
    }
    Some(folder)
}

/// The folder of a dimension by whatever name: that of [`dimension_folder`], or one below `dimensions/` that the game cannot
/// name, such as `dimensions/My Mod/Deep`, and that an import finds all the same.
///
/// `None` for a name that leads elsewhere or is no path.
pub fn found_folder(dimension: &str, layout: Layout) -> Option<PathBuf> {
    if let Some(folder) = dimension_folder(dimension, layout) {
        return Some(folder);
    }
    let (namespace, name) = dimension.split_once(':')?;
    let mut folder = PathBuf::from(DIMENSIONS);
    for part in std::iter::once(namespace).chain(name.split('/')) {
        let is_name = !part.bytes().all(|byte| byte == b'.') && part.len() <= MAX_NAME_BYTES;
        if !is_name || part.contains(['\0', '\\', '/']) {
            return None;
        }
        folder.push(part);
    }
    Some(folder)
}

/// The layout that a dimension's only folder is of; `None` for one that each layout keeps elsewhere, or that has none.
pub fn only_layout(dimension: &str) -> Option<Layout> {
    if is_moved(dimension) {
        return None;
    }
    let folder = found_folder(dimension, Layout::Dimensions)?;
    Some(if folder.starts_with(DIMENSIONS) { Layout::Dimensions } else { Layout::Old })
}

/// The dimension of a folder `DIM<number>`.
pub(super) fn numbered(folder: &str) -> Option<String> {
    if let Some((dimension, _)) = MOVED.iter().find(|(_, old)| !old.is_empty() && *old == folder) {
        return Some((*dimension).to_owned());
    }
    Some(format!("{NUMBERED}:{}", number(folder.strip_prefix("DIM")?)?))
}
