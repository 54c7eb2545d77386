//! Errors of reading and writing schematics.

use std::io;

use super::limits::MAX_STATES;
use super::varint::VarintProblem;
use crate::nbt::{NbtError, NbtProblem, Tag, TooLong};

/// Why a schematic cannot be read or written: the problem, the place, the value found, and what to do.
///
/// Offsets count bytes of the decompressed NBT. The caller knows the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemError {
    /// An I/O error.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// Text instead of compressed bytes.
    #[error(
        "it is text, beginning with {beginning:?}, and no gzip: if it is base64 or JSON, find the tool that wrote it and save it there as .schem"
    )]
    Text {
        /// The first characters.
        beginning: String,
    },
    /// Neither text nor gzip.
    #[error("it begins with the bytes {found:02x?} where gzip begins with [1f, 8b]: it is no .schem file")]
    NotGzip {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// The compressed bytes are truncated.
    #[error(
        "{field}: the file ends in the middle, after {at_bytes} bytes of NBT: it is cut off, copy or download it again"
    )]
    CutOff {
        /// The field that was being read.
        field: &'static str,
        /// Bytes of NBT that were read.
        at_bytes: u64,
    },
    /// The compressed bytes are damaged.
    #[error(
        "{field}: damaged gzip ({source}) after {at_bytes} bytes of NBT: copy or download the file again"
    )]
    Gzip {
        /// The field that was being read.
        field: &'static str,
        /// Bytes of NBT that were read.
        at_bytes: u64,
        /// The decompressor's error.
        source: io::Error,
    },
    /// The NBT is damaged.
    #[error("{field}: NBT: {problem} (at byte {at_bytes})")]
    Nbt {
        /// The field that was being read.
        field: &'static str,
        /// The offset.
        at_bytes: u64,
        /// The problem there.
        problem: NbtProblem,
    },
    /// Bytes after the end.
    #[error("bytes follow the end of the {what} at byte {at_bytes}: it is no schematic, or two files in one")]
    Trailing {
        /// `NBT` or `gzip`.
        what: &'static str,
        /// Bytes of NBT before them.
        at_bytes: u64,
    },
    /// A limit of [`SchemLimits`](super::SchemLimits) is exceeded.
    #[error("{field}: more than the {limit} {what} that are allowed (at byte {at_bytes})")]
    TooMuch {
        /// The field that was being read.
        field: &'static str,
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The offset.
        at_bytes: u64,
    },
    /// The file has version 1.
    #[error(
        "it is a Sponge schematic of version 1, which is not read: load it in WorldEdit 7 or newer and save it again"
    )]
    Version1,
    /// The version is not known.
    #[error("Version is {0}, where 2 and 3 are read: save it in one of these")]
    Version(i64),
    /// The layout before Sponge's.
    #[error(
        "it is an MCEdit .schematic of numbered blocks (before 1.13), which is not read: load it in WorldEdit 7 or newer and save it again as .schem"
    )]
    McEdit,
    /// NBT that is not a schematic.
    #[error("it is NBT without Version, so no Sponge schematic; its fields: {}", fields.join(", "))]
    NotASchematic {
        /// The names of its fields; only some if there are many.
        fields: Vec<String>,
    },
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field occurs twice.
    #[error("{field} is there twice (at byte {at_bytes})")]
    Twice {
        /// The field.
        field: &'static str,
        /// The offset of the second one.
        at_bytes: u64,
    },
    /// A field has the wrong kind of NBT value.
    #[error("{field} is of kind {found:?} where {needed} is needed (at byte {at_bytes})")]
    Kind {
        /// The field.
        field: &'static str,
        /// Its kind.
        found: Tag,
        /// The required kind.
        needed: &'static str,
        /// Its offset.
        at_bytes: u64,
    },
    /// A field has the right kind and invalid content.
    #[error("{field} is not {needed}")]
    Form {
        /// The field.
        field: &'static str,
        /// The required form.
        needed: &'static str,
    },
    /// A number is out of range.
    #[error("{field} is {found}, where {allowed} is allowed")]
    Range {
        /// The field.
        field: &'static str,
        /// The number.
        found: i64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// More cells than allowed.
    #[error("{width} × {height} × {length} are {found} blocks, more than the {limit} that are allowed")]
    TooLarge {
        /// Blocks along x.
        width: u16,
        /// Blocks along y.
        height: u16,
        /// Blocks along z.
        length: u16,
        /// The product.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// The index of a palette entry is invalid.
    #[error("{field}: {state:?} has index {found}, where 0 to {} is allowed", MAX_STATES - 1)]
    PaletteIndex {
        /// The palette.
        field: &'static str,
        /// The entry.
        state: String,
        /// Its index, or its kind if it is not an integer.
        found: String,
    },
    /// Two palette entries have the same index.
    #[error("{field}: {first:?} and {second:?} both have index {index}")]
    PaletteTwice {
        /// The palette.
        field: &'static str,
        /// The index.
        index: u16,
        /// The first entry.
        first: String,
        /// The other entry.
        second: String,
    },
    /// A name is not valid text.
    #[error("{field}: a name is no modified UTF-8: {lossy:?}")]
    Text8 {
        /// The field with the name.
        field: &'static str,
        /// The name, with invalid sequences replaced.
        lossy: String,
    },
    /// An index is not a valid number.
    #[error("{field}: {problem} in entry {cell} (at byte {at_bytes})")]
    Varint {
        /// The array.
        field: &'static str,
        /// The position of the entry.
        cell: u64,
        /// The offset.
        at_bytes: u64,
        /// The problem.
        problem: VarintProblem,
    },
    /// An index is not in the palette.
    #[error("{field}: index {index} at ({}, {}, {}) is not in the palette of {states} entries", at[0], at[1], at[2])]
    Index {
        /// The array.
        field: &'static str,
        /// The index.
        index: u16,
        /// The first cell with it: x, y, z from the lowest corner.
        at: [u64; 3],
        /// The number of palette entries.
        states: usize,
    },
    /// The size and the number of entries disagree.
    #[error(
        "{field} has {found} entries, where {width} × {height} × {length} (Width, Height, Length) are {expected}"
    )]
    Count {
        /// The array.
        field: &'static str,
        /// The number of entries found.
        found: u64,
        /// Blocks along x.
        width: u16,
        /// Blocks along y; 1 for an array of columns.
        height: u16,
        /// Blocks along z.
        length: u16,
        /// The number of entries required.
        expected: u64,
    },
    /// A block entity or entity is invalid.
    #[error("{field}[{index}]: {problem}")]
    Thing {
        /// The list.
        field: &'static str,
        /// Its index in the list, from 0.
        index: usize,
        /// The problem.
        problem: &'static str,
    },
    /// The file changed between the two reads.
    #[error("{0}: the file changed while it was read; read it again")]
    Changed(&'static str),
    /// A value does not fit into the format.
    #[error("{what} is {found}, and a schematic can hold {limit} at most")]
    DoesNotFit {
        /// The quantity.
        what: &'static str,
        /// The value.
        found: u64,
        /// The maximum.
        limit: u64,
    },
    /// Text is too long for NBT.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Bytes that would be written unchanged are not a compound.
    #[error("{what}: {error}")]
    NotNbt {
        /// Which bytes.
        what: &'static str,
        /// The problem.
        error: NbtError,
    },
}
