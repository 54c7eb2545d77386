//! Why a column, or a part of one, cannot be read.

use cg_minecraft::packed::IndicesError;
use cg_minecraft::state::StateError;

use crate::nbt::NbtError;
use crate::region::ColumnPos;

/// Why a slot's NBT is no column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// The bytes are no NBT.
    #[error(transparent)]
    Nbt(#[from] NbtError),
    /// A layout with numeric block ids.
    #[error(
        "Minecraft 1.12.2 and older (here data version {data_version}) number their blocks, which are not read; the game upgrades a column when it loads it, all of them with --forceUpgrade"
    )]
    TooOld {
        /// 0 when the column has none, as before 1.9.
        data_version: i32,
        /// Where the column says that it is.
        pos: Option<ColumnPos>,
    },
    /// NBT that is neither a column, nor entities, nor points of interest.
    #[error("the NBT is no column: it has neither Level nor sections, Entities or Sections")]
    NotAColumn,
    /// A slot of `entities/` whose entities are not a list of compounds.
    #[error("its Entities are no list of compounds")]
    NoEntities,
    /// A slot of `entities/` with two fields of one name.
    #[error("its field {name:?} is there twice")]
    Doubled {
        /// The name.
        name: String,
    },
    /// A slot of `entities/` with more than a root without a name.
    #[error("{what}: it is not as the game writes it")]
    Beside {
        /// The part that no game writes, in words.
        what: &'static str,
    },
    /// A slot of another folder: columns are in `region/`, entities in `entities/`, points of interest in `poi/`.
    #[error("the slot holds {found}, which is of another folder")]
    OtherFolder {
        /// Contents of the slot, in words.
        found: &'static str,
    },
    /// The column does not say where it is.
    #[error("the column has no xPos and zPos")]
    NoPosition,
    /// The column says that it is where no region file can be.
    #[error("no region can hold column {column}")]
    NoRegion {
        /// Its place.
        column: ColumnPos,
    },
    /// The slot shows another slot's column, whose own slot has it too: to take it twice would double it.
    #[error("the slot of column {slot} shows column {column}")]
    WrongPlace {
        /// The column's own place.
        column: ColumnPos,
        /// The slot's column: of the world when the region's place is known, else x and z are 0 … 31.
        slot: ColumnPos,
    },
    /// The column is in its slot, but of a region with another name: the file was renamed. What it states of its place
    /// agrees with its block entities and entities, so it can be taken there if nothing else is.
    #[error("column {column} lies in a file that is named {file}: it was renamed")]
    OtherRegion {
        /// The column's own place.
        column: ColumnPos,
        /// The name of the file by its place.
        file: String,
    },
}

/// A part of a column that is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("section {}: {fault}", y.map_or_else(|| "?".to_owned(), |y| y.to_string()))]
pub struct ColumnProblem {
    /// The section, when it is known.
    pub y: Option<i32>,
    /// Fault of the part.
    pub fault: Fault,
}

/// Fault in a section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No `Y`, or one outside −128 … 127.
    #[error("it has no Y from -128 to 127")]
    NoY,
    /// A second section of the same y; the first is kept.
    #[error("it is there twice")]
    Doubled,
    /// Blocks in the form of versions before or since 21w37a, in a column of another. They are read.
    #[error("its blocks are in the form of another version")]
    OtherForm,
    /// Block states without a palette.
    #[error("its blocks have no palette")]
    NoPalette,
    /// More states than indices can tell apart.
    #[error("its palette has {0} states, more than 65,536")]
    PaletteTooLong(usize),
    /// A palette entry that is no state.
    #[error("{0}")]
    State(#[from] StateError),
    /// Several states and nothing that says where each is.
    #[error("its palette has {states} states, but it has no indices")]
    NoIndices {
        /// Entries of the palette.
        states: usize,
    },
    /// Packed indices that do not fit the palette.
    #[error(transparent)]
    Indices(#[from] IndicesError),
    /// Light of another length than 2,048 bytes. Only that light is lost.
    #[error("its {field} has {found} bytes where 2,048 are needed")]
    LightLength {
        /// `BlockLight` or `SkyLight`.
        field: &'static str,
        /// Bytes that are there.
        found: usize,
    },
}
