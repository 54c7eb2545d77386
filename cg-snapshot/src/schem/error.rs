//! Why a file is no schematic that can be read or written.

use std::io;

use super::limits::MAX_STATES;
use super::varint::VarintProblem;
use crate::nbt::{NbtError, NbtProblem, Tag, TooLong};

/// Why a file is no schematic that can be read or written: what, where, the value found, and what to do.
///
/// Offsets count bytes of the NBT, after the compression. The caller knows the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemError {
    /// The system could not read or write.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// Text where compressed bytes have to be.
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
    /// The compressed bytes end in the middle.
    #[error(
        "{field}: the file ends in the middle, after {at_bytes} bytes of NBT: it is cut off, copy or download it again"
    )]
    CutOff {
        /// What was being read.
        field: &'static str,
        /// Bytes of NBT that could be read.
        at_bytes: u64,
    },
    /// The compressed bytes are damaged.
    #[error(
        "{field}: damaged gzip ({source}) after {at_bytes} bytes of NBT: copy or download the file again"
    )]
    Gzip {
        /// What was being read.
        field: &'static str,
        /// Bytes of NBT that could be read.
        at_bytes: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// The NBT is damaged.
    #[error("{field}: NBT: {problem} (at byte {at_bytes})")]
    Nbt {
        /// What was being read.
        field: &'static str,
        /// Where.
        at_bytes: u64,
        /// What is wrong there.
        problem: NbtProblem,
    },
    /// Bytes after the end.
    #[error("bytes follow the end of the {what} at byte {at_bytes}: it is no schematic, or two files in one")]
    Trailing {
        /// `NBT` or `gzip`.
        what: &'static str,
        /// Bytes of NBT before.
        at_bytes: u64,
    },
    /// A limit of [`SchemLimits`](super::SchemLimits).
    #[error("{field}: more than the {limit} {what} that are allowed (at byte {at_bytes})")]
    TooMuch {
        /// What was being read.
        field: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
        /// Where.
        at_bytes: u64,
    },
    /// Version 1.
    #[error(
        "it is a Sponge schematic of version 1, which is not read: load it in WorldEdit 7 or newer and save it again"
    )]
    Version1,
    /// A version that is not known.
    #[error("Version is {0}, where 2 and 3 are read: save it in one of these")]
    Version(i64),
    /// The layout before Sponge's.
    #[error(
        "it is an MCEdit .schematic of numbered blocks (before 1.13), which is not read: load it in WorldEdit 7 or newer and save it again as .schem"
    )]
    McEdit,
    /// NBT of something else.
    #[error("it is NBT without Version, so no Sponge schematic; its fields: {}", fields.join(", "))]
    NotASchematic {
        /// The names of the fields, some of them if there are many.
        fields: Vec<String>,
    },
    /// A field that has to be there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field that is there twice.
    #[error("{field} is there twice (at byte {at_bytes})")]
    Twice {
        /// The field.
        field: &'static str,
        /// Where the second one is.
        at_bytes: u64,
    },
    /// A field of another kind of NBT.
    #[error("{field} is of kind {found:?} where {needed} is needed (at byte {at_bytes})")]
    Kind {
        /// The field.
        field: &'static str,
        /// Its kind.
        found: Tag,
        /// What it has to be.
        needed: &'static str,
        /// Where it is.
        at_bytes: u64,
    },
    /// A field of the right kind that says something else than it should.
    #[error("{field} is not {needed}")]
    Form {
        /// The field.
        field: &'static str,
        /// What it has to be.
        needed: &'static str,
    },
    /// A number that cannot be.
    #[error("{field} is {found}, where {allowed} is allowed")]
    Range {
        /// The field.
        field: &'static str,
        /// The number.
        found: i64,
        /// What it may be.
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
        /// All of them.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// An entry of a palette.
    #[error("{field}: {state:?} has index {found}, where 0 to {} is allowed", MAX_STATES - 1)]
    PaletteIndex {
        /// The palette.
        field: &'static str,
        /// The entry.
        state: String,
        /// Its index, or its kind when it is no whole number.
        found: String,
    },
    /// Two entries of a palette.
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
    /// A name that is no text.
    #[error("{field}: a name is no modified UTF-8: {lossy:?}")]
    Text8 {
        /// Where it stands.
        field: &'static str,
        /// The name, as far as it can be shown.
        lossy: String,
    },
    /// An index that is no number.
    #[error("{field}: {problem} in entry {cell} (at byte {at_bytes})")]
    Varint {
        /// The array.
        field: &'static str,
        /// Which entry.
        cell: u64,
        /// Where.
        at_bytes: u64,
        /// What is wrong.
        problem: VarintProblem,
    },
    /// An index that the palette does not have.
    #[error("{field}: index {index} at ({}, {}, {}) is not in the palette of {states} entries", at[0], at[1], at[2])]
    Index {
        /// The array.
        field: &'static str,
        /// The index.
        index: u16,
        /// Where it stands first: x, y, z from the lowest corner.
        at: [u64; 3],
        /// Entries of the palette.
        states: usize,
    },
    /// Dimensions and data contradict each other.
    #[error(
        "{field} has {found} entries, where {width} × {height} × {length} (Width, Height, Length) are {expected}"
    )]
    Count {
        /// The array.
        field: &'static str,
        /// Entries that are there.
        found: u64,
        /// Blocks along x.
        width: u16,
        /// Blocks along y, or 1 where only columns count.
        height: u16,
        /// Blocks along z.
        length: u16,
        /// Entries that have to be there.
        expected: u64,
    },
    /// A block entity or entity.
    #[error("{field}[{index}]: {problem}")]
    Thing {
        /// The list.
        field: &'static str,
        /// Which of the list, from 0.
        index: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The second time it was read, the file was another one.
    #[error("{0}: the file changed while it was read; read it again")]
    Changed(&'static str),
    /// What is to be written does not fit the format.
    #[error("{what} is {found}, and a schematic can hold {limit} at most")]
    DoesNotFit {
        /// What.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much fits.
        limit: u64,
    },
    /// Text that NBT cannot hold.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Bytes that are to be written as they stand, and are no compound.
    #[error("{what}: {error}")]
    NotNbt {
        /// Which bytes.
        what: &'static str,
        /// What is wrong with them.
        error: NbtError,
    },
}
