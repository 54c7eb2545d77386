//! Errors of decoders.

use core::fmt;

/// Bytes that do not decode: the section, the offset and the problem with the value found.
///
/// The offset counts from the first byte that the decoder gets. The message is one sentence, for example `component
/// section: 9000000000 items of 8 bytes exceed the 312 bytes left (at byte 88)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{section}: {problem} (at byte {offset_bytes})")]
pub struct DecodeError {
    /// The part of the layout that was being read.
    pub section: Section,
    /// The offset of the invalid field.
    pub offset_bytes: u64,
    /// The problem.
    pub problem: Problem,
}

impl DecodeError {
    /// An error at a byte offset of a section.
    pub const fn new(section: Section, offset_bytes: u64, problem: Problem) -> Self {
        Self { section, offset_bytes, problem }
    }
}

/// The part of a layout that a decoder was reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Section {
    /// The frame: the 24 bytes before every stored value.
    Frame,
    /// The fixed 40 bytes at the start of a chunk.
    ChunkHeader,
    /// The global ids of a chunk's block kinds.
    Palette,
    /// The packed local ids of layer 0.
    Blocks,
    /// The packed entries of layers 1 and up.
    Layers,
    /// The component columns of a chunk or of an entity.
    Components,
    /// The entity references of a chunk.
    Entities,
    /// The side data after a chunk.
    SideData,
    /// The header of a cluster: version, scale and offsets.
    ClusterHeader,
    /// The directory between frame and groups of a stored cluster.
    ClusterDirectory,
    /// One compressed group of a stored cluster.
    ClusterGroup,
    /// A decompressed group of a cold cluster whose chunks are stored by field.
    ClusterFields,
    /// A delta: block sets and entity moves since the last full save.
    Delta,
    /// A 64×64 opacity tile.
    OpacityTile,
    /// One chunk's share of an opacity tile.
    OpacityPatch,
    /// An entity's stored value.
    Entity,
    /// A row key.
    Key,
    /// A list of names of the registry.
    NameList,
    /// A list of records of the registry.
    Records,
    /// One record of such a list.
    Record,
    /// The last access of a cube.
    Heat,
    /// A recorded trace of accesses.
    TierTrace,
    /// The head of a snapshot file: its box and sizes.
    SnapshotHead,
    /// The frame around a part of a snapshot file.
    SnapshotPart,
    /// The names of a snapshot file's ids.
    SnapshotNames,
    /// The index of a snapshot file: the places of its sections.
    SnapshotIndex,
    /// The entities of a snapshot file.
    SnapshotEntities,
    /// A group of compressed sections of a snapshot file, or one section.
    SnapshotGroup,
    /// The signature of a pack file.
    PackHead,
    /// The frame around a part of a pack file.
    PackPart,
    /// The objects of a pack file.
    PackObjects,
    /// The spatial records of a pack file's box.
    PackRecords,
    /// The properties of a pack file.
    PackProperties,
    /// The end of a pack file: the number of parts and objects before it.
    PackEnd,
    /// The first line of an archive.
    ArchiveLine,
    /// The head of an archive: its world, and the layouts of its rows.
    ArchiveHead,
    /// The frame around a part of an archive.
    ArchivePart,
    /// The rows of an archive.
    ArchiveRows,
    /// The place of a segment in an archive of a segmented world.
    ArchiveSegment,
    /// The end of an archive: the number of parts and rows before it, or of parts and worlds.
    ArchiveEnd,
    /// A versioned object.
    Object,
    /// A spatial record at a position in the world.
    SpatialRecord,
    /// A row of an overlay, without its value.
    Overlay,
    /// An intent, or a part that it rolls forward.
    Intent,
    /// A row with openings of a world.
    Lineage,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "frame",
            Self::ChunkHeader => "chunk header",
            Self::Palette => "block palette",
            Self::Blocks => "layer 0",
            Self::Layers => "upper layers",
            Self::Components => "component section",
            Self::Entities => "entity section",
            Self::SideData => "side data",
            Self::ClusterHeader => "cluster header",
            Self::ClusterDirectory => "cluster directory",
            Self::ClusterGroup => "cluster group",
            Self::ClusterFields => "cluster group by field",
            Self::Delta => "delta",
            Self::OpacityTile => "opacity tile",
            Self::OpacityPatch => "opacity patch",
            Self::Entity => "entity",
            Self::Key => "key",
            Self::NameList => "name list",
            Self::Records => "records",
            Self::Record => "record",
            Self::Heat => "heat",
            Self::TierTrace => "tier trace",
            Self::SnapshotHead => "snapshot head",
            Self::SnapshotPart => "snapshot part",
            Self::SnapshotNames => "snapshot names",
            Self::SnapshotIndex => "snapshot index",
            Self::SnapshotEntities => "snapshot entities",
            Self::SnapshotGroup => "snapshot group",
            Self::PackHead => "pack head",
            Self::PackPart => "pack part",
            Self::PackObjects => "pack objects",
            Self::PackRecords => "pack records",
            Self::PackProperties => "pack properties",
            Self::PackEnd => "pack end",
            Self::ArchiveLine => "archive line",
            Self::ArchiveHead => "archive head",
            Self::ArchivePart => "archive part",
            Self::ArchiveRows => "archive rows",
            Self::ArchiveSegment => "archive segment",
            Self::ArchiveEnd => "archive end",
            Self::Object => "object",
            Self::SpatialRecord => "spatial record",
            Self::Overlay => "overlay row",
            Self::Intent => "intent",
            Self::Lineage => "lineage",
        })
    }
}

/// The problem with a field. Every variant contains the value found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("{field} needs {needed} bytes and {left} are left")]
    Truncated {
        /// The field's name in the layout table.
        field: &'static str,
        /// The length of the field.
        needed: u64,
        /// The bytes that remain.
        left: u64,
    },
    /// A count exceeds what the remaining bytes can hold.
    #[error("{count} {field} of {width} bytes exceed the {left} bytes left")]
    CountExceedsInput {
        /// The counted items.
        field: &'static str,
        /// The count found.
        count: u64,
        /// The width of one item, in bytes.
        width: u64,
        /// The bytes that remain.
        left: u64,
    },
    /// The layout does not allow a field's value.
    #[error("{field} is {found}, allowed is {allowed}")]
    OutOfRange {
        /// The field's name in the layout table.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The allowed values, in words.
        allowed: &'static str,
    },
    /// A field contradicts the rest of the value.
    #[error("{field} is {found}, but the rest of the value implies {expected}")]
    Disagrees {
        /// The field's name in the layout table.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The value that follows from the other fields.
        expected: u64,
    },
    /// The layout is newer than this code. Open the world with a newer release; nothing was changed.
    #[error("{field} is {found}, and this release reads up to {newest}; use a newer release")]
    Newer {
        /// The version field's name.
        field: &'static str,
        /// The version found.
        found: u64,
        /// The newest version that this code reads.
        newest: u64,
    },
    /// The checksum does not match: the bytes are damaged, or they belong to another key.
    #[error(
        "checksum is {found:#010x}, the bytes give {expected:#010x}: damaged, or stored under a wrong key"
    )]
    Checksum {
        /// The stored checksum.
        found: u32,
        /// The checksum computed from the bytes.
        expected: u32,
    },
    /// Bytes that must be zero are not, or bytes follow the end.
    #[error("{field} must be zero or absent, found {found}")]
    NotZero {
        /// The field's name in the layout table.
        field: &'static str,
        /// The value found.
        found: u64,
    },
    /// Two entries that must differ are equal.
    #[error("{field} {found} appears twice")]
    Duplicate {
        /// The field's name in the layout table.
        field: &'static str,
        /// The repeated value.
        found: u64,
    },
    /// A coordinate is outside the world.
    #[error("{field} is {found}, the world runs from {min} to {max}")]
    OutsideWorld {
        /// The field's name in the layout table.
        field: &'static str,
        /// The coordinate found.
        found: i64,
        /// The smallest allowed coordinate.
        min: i64,
        /// The largest allowed coordinate.
        max: i64,
    },
    /// A number is not above the previous one.
    #[error("{field} is {found}, not above the {before} before it")]
    NotAscending {
        /// The field's name in the layout table.
        field: &'static str,
        /// The value found.
        found: i64,
        /// The previous value.
        before: i64,
    },
    /// A fraction of a block is negative, negative zero, not below 1, or NaN.
    #[error("{field} is {:?}, allowed is 0.0 to below 1.0", f32::from_bits(*.found_bits))]
    NotAFraction {
        /// The field's name in the layout table.
        field: &'static str,
        /// The bits of the `f32` found.
        found_bits: u32,
    },
    /// Text is not UTF-8.
    #[error("{field} is not UTF-8 from byte {found:#04x} on")]
    NotUtf8 {
        /// The field's name in the layout table.
        field: &'static str,
        /// The first invalid byte.
        found: u8,
    },
    /// Decoding would need more memory than the caller allows.
    #[error("{field} needs {needed} bytes of memory, the limit leaves {left}")]
    LimitExceeded {
        /// The field that would be allocated.
        field: &'static str,
        /// The length of the allocation.
        needed: u64,
        /// The bytes that the caller's [`Limits`](crate::Limits) still allow.
        left: u64,
    },
    /// A compressed block does not decompress to the length in its header.
    #[error("{codec} block of {stored} bytes does not decompress to {raw} bytes")]
    Decompress {
        /// The codec's name.
        codec: &'static str,
        /// The stored length.
        stored: u64,
        /// The length in the header.
        raw: u64,
    },
}

/// A coordinate is outside the world: chunk coordinates run from −2^59 to 2^59 − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{axis} is {found}, the world's {unit} coordinates run from {min} to {max}")]
pub struct OutOfRange {
    /// `x`, `y` or `z`.
    pub axis: char,
    /// The unit of the coordinate: chunks or clusters.
    pub unit: &'static str,
    /// The coordinate found.
    pub found: i64,
    /// The smallest allowed coordinate.
    pub min: i64,
    /// The largest allowed coordinate.
    pub max: i64,
}
