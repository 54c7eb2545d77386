//! Faults of what a host gives: columns, packed cells and bindings.

use cg_format::{BlockPos, EntityId};

use crate::place::ColumnAt;

/// The fault of a column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnProblem {
    /// Too many heights, or none.
    #[error("it has {heights} heights, allowed are 1 to {}", ColumnAt::MAX_HEIGHTS)]
    Heights {
        /// The heights.
        heights: i64,
    },
    /// A section outside of the column's heights.
    #[error("section {y} is not within its heights {min_y} to {max_y}")]
    Height {
        /// The section.
        y: i32,
        /// The lowest height.
        min_y: i32,
        /// The highest height.
        max_y: i32,
    },
    /// Sections that do not ascend.
    #[error("section {y} follows one of the same height or above")]
    SectionOrder {
        /// The section.
        y: i32,
    },
    /// Light of another length.
    #[error("light of section {y} has {found} bytes instead of 2048")]
    Light {
        /// The section.
        y: i32,
        /// The length found.
        found: usize,
    },
    /// More layers than the binding has.
    #[error("section {y} has {found} layers, the binding has {most}")]
    Layers {
        /// The section.
        y: i32,
        /// The layers found.
        found: usize,
        /// Those of the binding.
        most: u8,
    },
    /// Cells that cannot be unpacked.
    #[error("{part} of section {y}: {problem}")]
    Cells {
        /// The section.
        y: i32,
        /// Blocks or biomes.
        part: &'static str,
        /// The fault.
        problem: CellsProblem,
    },
    /// A number that the binding does not have.
    #[error("{part} {number} is not in the binding, which has {count}")]
    Number {
        /// A block, biome or kind of entity.
        part: &'static str,
        /// The number.
        number: u32,
        /// The count of numbers.
        count: usize,
    },
    /// A number without a name in the world, which is open for reading.
    #[error("{part} {number} has no name in the world")]
    NoName {
        /// A block or kind of entity.
        part: &'static str,
        /// The number.
        number: u32,
    },
    /// Something that is in no chunk of the column.
    #[error("{what} is at ({}, {}, {}), outside of the column", .block.x, .block.y, .block.z)]
    Outside {
        /// The thing.
        what: &'static str,
        /// Its block.
        block: BlockPos,
    },
    /// Two block entities of one block.
    #[error("two block entities are at ({}, {}, {})", .block.x, .block.y, .block.z)]
    BlockTwice {
        /// The block.
        block: BlockPos,
    },
    /// An entity of another dimension.
    #[error("entity {} is in dimension {dimension}", .id.get())]
    OtherDimension {
        /// The entity.
        id: EntityId,
        /// Its dimension.
        dimension: u64,
    },
    /// Two entities of one id.
    #[error("entity {} is in it twice", .id.get())]
    EntityTwice {
        /// The id.
        id: EntityId,
    },
    /// Entities without a section that could own them.
    #[error("it has entities and no section that could own them")]
    NoSection,
}

/// The fault of packed cells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellsProblem {
    /// A width of words that is not 16, 32 or 64.
    #[error("its words have {found} bits, allowed are 16, 32 and 64")]
    WordBits {
        /// The width.
        found: u8,
    },
    /// Neither 4,096 cells nor 64.
    #[error("its side is 2^{found}, allowed are 2^2 and 2^4")]
    Side {
        /// The logarithm.
        found: u8,
    },
    /// A value wider than allowed.
    #[error("its values have {found} bits, at most {most} are allowed")]
    Bits {
        /// The width.
        found: u8,
        /// The maximum.
        most: u8,
    },
    /// Cells of width 0 without a palette.
    #[error("values of 0 bits need a palette")]
    NoPalette,
    /// A palette without entries, or with more than values can name.
    #[error("its palette has {found} entries, allowed are 1 to 65536")]
    PaletteLength {
        /// The entries.
        found: usize,
    },
    /// Words of another length than width and count ask for.
    #[error("its words have {found} bytes instead of {expected}")]
    Length {
        /// The bytes found.
        found: usize,
        /// The bytes expected.
        expected: usize,
    },
    /// A value past the palette.
    #[error("cell {cell} has index {index} in a palette of {palette}")]
    PastPalette {
        /// The cell, in the order of the cells.
        cell: usize,
        /// The index.
        index: u32,
        /// Entries of the palette.
        palette: usize,
    },
}

/// The fault of a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindingProblem {
    /// A text that is no name.
    #[error("{list} {number}, {name:?}: {problem}")]
    Name {
        /// Blocks, biomes or entities.
        list: &'static str,
        /// The host's number.
        number: u32,
        /// The text.
        name: String,
        /// The fault.
        problem: String,
    },
    /// Two numbers of one name.
    #[error("{list} {first} and {second} are both named `{name}`")]
    Twice {
        /// Blocks, biomes or entities.
        list: &'static str,
        /// The first number.
        first: u32,
        /// The second number.
        second: u32,
        /// The name.
        name: String,
    },
    /// Two biomes of one number.
    #[error("two biomes have the number {number}")]
    BiomeTwice {
        /// The number.
        number: u32,
    },
    /// A number that is not in the list.
    #[error("{what} is {number}, and there are {count}")]
    Number {
        /// Placeholder, air or the biome's placeholder.
        what: &'static str,
        /// The number.
        number: u32,
        /// The length of the list.
        count: usize,
    },
    /// A form that is none.
    #[error("{what} is {found}, allowed are {allowed}")]
    Form {
        /// The field.
        what: &'static str,
        /// The value found.
        found: u32,
        /// Those allowed.
        allowed: &'static str,
    },
}
