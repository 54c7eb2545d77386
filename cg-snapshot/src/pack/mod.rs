//! A pack: a box of chunks with its records, properties and objects in one file, for transfer between worlds.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 19 | signature: the line `cherrygrove pack 1`, or 2 with records or properties |
//! | 19 | 14 + n | the box, if there is one: a [snapshot file](crate::file) of whole chunks with all their content |
//! | … | 14 + n each | records of the box ascending by UUID, compressed |
//! | … | 14 + n each | properties ascending by name, compressed |
//! | … | 14 + n each | objects ascending by key, compressed, about 256 KiB in a part |
//! | … | 14 + 16 | the end: the number of parts and objects before it, and a checksum over their checksums |
//!
//! Before every part its kind, its lengths and a checksum are stored. A file without the end part is invalid, so a
//! truncated file is always refused. A file with a missing, repeated or misplaced part is refused too.
//! `docs/format/pack.md` describes every field.
//!
//! Reader and writer work from front to back and hold one part in memory; the writer holds the box until the next part
//! is written. A pack stores objects as keys and bytes, and properties as names and bytes. The caller
//! decides what to do with them in a world, and with the result of [`RestoreJob`](crate::RestoreJob) for the box.
//!
//! # Untrusted bytes
//! Any input gives a value or an error with its place and cause. A reader never reads more than the file holds. The
//! decompressed bytes of one part are charged to the caller's [`Limits`].
//!
//! ```
//! use cg_format::{Limits, codec::Codec};
//! use cg_snapshot::pack::{PackReader, PackWriter, PackedObject, Part};
//!
//! let mut pack = PackWriter::new(Vec::new(), Codec::Lz4)?;
//! pack.object(PackedObject { key: b"avatar/7/hat", version: 3, bytes: b"red" })?;
//! let (bytes, info) = pack.finish()?;
//! assert_eq!((info.object_count, info.region), (1, None));
//!
//! let mut pack = PackReader::open(&bytes[..], Limits::default())?;
//! while let Some(part) = pack.next_part()? {
//!     let Part::Objects(objects) = part else { continue };
//!     let keys: Vec<_> = objects.iter().map(|object| object.key).collect();
//!     assert_eq!(keys, [b"avatar/7/hat"]);
//! }
//! # Ok::<(), cg_snapshot::SnapshotError>(())
//! ```

mod object;
mod property;
mod read;
mod record;
mod write;

use cg_format::Limits;
use cg_format::wire::{Span, Trace};

pub use object::{ObjectPage, PackedObject};
pub use property::PropertyPage;
pub use read::{PackReader, Part, check};
pub use record::RecordPage;
pub use write::PackWriter;

use crate::error::SnapshotError;
use crate::section::Contents;
use crate::snapshot::{Snapshot, SnapshotInfo};

/// The first line. Its last digit is the layout's version.
const SIGNATURE: &[u8; 19] = b"cherrygrove pack 1\n";
/// That of a pack with records or properties. Packs without any keep version 1.
const WITH_VALUES: &[u8; 19] = b"cherrygrove pack 2\n";
/// The newest layout that this release reads.
const VERSION: u64 = 2;

/// The kind of a part. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Region = 1,
    Objects = 2,
    End = 3,
    Records = 4,
    Properties = 5,
}

impl Kind {
    /// Its place in the order of a file.
    const fn place(self) -> u8 {
        match self {
            Self::Region => 0,
            Self::Records => 1,
            Self::Properties => 2,
            Self::Objects => 3,
            Self::End => 4,
        }
    }
}

/// Records or properties of a pack, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// The number of values.
    pub count: u64,
    /// The bytes of all values, without their names.
    pub len_bytes: u64,
    /// The length of the longest value.
    pub longest_bytes: u64,
}

impl Amount {
    fn add(&mut self, len_bytes: usize) {
        self.count += 1;
        self.len_bytes += len_bytes as u64;
        self.longest_bytes = self.longest_bytes.max(len_bytes as u64);
    }
}

/// The content of a pack, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackInfo {
    /// The box, if there is one.
    pub region: Option<SnapshotInfo>,
    /// The records in the box.
    pub records: Amount,
    /// The properties.
    pub properties: Amount,
    /// The number of objects.
    pub object_count: u64,
    /// The bytes of all objects, without their keys.
    pub object_bytes: u64,
    /// The length of the longest object.
    pub longest_object_bytes: u64,
    /// The number of parts before the end part.
    pub part_count: u32,
    /// The file's length.
    pub len_bytes: u64,
    /// A checksum over the checksums of all parts before the end part. Packs with different checksums have different
    /// content.
    pub checksum: u32,
}

impl PackInfo {
    fn count_object(&mut self, object: &PackedObject<'_>) {
        let len_bytes = object.bytes.len() as u64;
        self.object_count += 1;
        self.object_bytes += len_bytes;
        self.longest_object_bytes = self.longest_object_bytes.max(len_bytes);
    }

    fn count_part(&mut self, checksum: u32) {
        self.part_count += 1;
        self.checksum = crc32c::crc32c_append(self.checksum, &checksum.to_le_bytes());
    }
}

/// Whether a pack can hold a snapshot.
fn check_whole(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    if snapshot.info().contents != Contents::ALL {
        return Err(SnapshotError::NotWhole { found: "of blocks alone, or lacks one of the others" });
    }
    if !snapshot.region().is_whole_chunks() {
        return Err(SnapshotError::NotWhole { found: "not aligned to chunks" });
    }
    Ok(())
}

/// Explains the bytes of a pack: the fields that a reader reads, up to the first error, and the result.
/// [`file::explain`](crate::file::explain) explains the box. Offsets in compressed parts count from the start of the
/// decompressed bytes.
pub fn explain(bytes: &[u8], limits: Limits) -> (Vec<Span>, Result<PackInfo, SnapshotError>) {
    let trace = Trace::default();
    let info = read::explain(bytes, limits, &trace);
    (trace.take(), info)
}
