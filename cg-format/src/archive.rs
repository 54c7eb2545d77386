//! An archive: all rows of one state of a world, as one stream of bytes.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 22 | signature: the line `cherrygrove archive 1` |
//! | 22 | 14 + n | the head: versions of the layouts of the rows, the world, its newest commit |
//! | … | 14 + n each | rows, ascending by family and key, compressed, about 1 MiB in a part |
//! | … | 14 + 24 | the end: the number of parts and rows before it, and the bytes of the rows |
//!
//! Before every part its kind, its lengths and a checksum are stored. The checksum of a part continues that of the part
//! before it. So a part that is changed, missing, repeated, moved, or from another archive is refused where it stands,
//! and the last checksum covers the whole archive. A stream without its end is refused. `docs/format/archive.md`
//! describes every field.
//!
//! A segmented world is archived in an archive of archives: [`SegmentsReader`] reads it, and [`is_of_segments`] says which of both
//! it is.
//!
//! Reader and writer go from front to back and hold one part in memory. Rows are stored with their frames, as a world has
//! them: frames are opened by the caller.
//!
//! ```
//! use cg_format::archive::{ArchiveReader, ArchiveWriter, Head};
//! use cg_format::{Limits, codec::Codec, key::Family};
//!
//! let head = Head { uuid: [1; 16], incarnation: [2; 16], signature: None, commit_row: vec![0; 24] };
//! let mut stream = Vec::new();
//! let mut archive = ArchiveWriter::new(Codec::Lz4, &head, &mut stream)?;
//! archive.row(Family::Object, b"avatar/7", b"a row with its frame", &mut stream)?;
//! archive.finish(&mut stream)?;
//!
//! let mut archive = ArchiveReader::open(&stream[..], Limits::default())?;
//! assert_eq!(archive.head(), &head);
//! while let Some(page) = archive.next_page()? {
//!     assert!(page.iter().eq([(Family::Object, &b"avatar/7"[..], &b"a row with its frame"[..])]));
//! }
//! assert_eq!(archive.totals().row_count, 1);
//! # Ok::<(), cg_format::archive::Fault>(())
//! ```

mod fault;
mod head;
mod part;
mod read;
mod rows;
mod segments;
mod write;

pub use fault::Fault;
pub use head::{Head, LINE_BYTES, is_of_segments};
pub use part::Totals;
pub use read::{ArchiveReader, Source, explain};
pub use rows::RowPage;
pub use segments::{Piece, SegmentAt, SegmentsReader, SegmentsWriter};
pub use write::ArchiveWriter;
