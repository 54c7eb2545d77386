//! The frame: 24 bytes before every stored value, which describe it and detect damage.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 1 | frame version | 1 |
//! | 1 | 1 | kind | a [`FrameKind`] |
//! | 2 | 1 | codec | a [`Codec`] |
//! | 3 | 1 | reserved byte | 0 |
//! | 4 | 4 | checksum | CRC-32C, see below |
//! | 8 | 8 | version | the commit that last changed the value |
//! | 16 | 4 | schema generation | what the payload's ids and columns mean |
//! | 20 | 4 | lineage | the low 32 bits of the number of the opening that made the commit; 0 in worlds of earlier drafts |
//! | 24 | … | payload | the value; if compressed, `u32` raw length and then the block |
//!
//! The checksum covers the payload, then the [`Space`]'s byte, the row's key and the header with a checksum of zero.
//! Key and space make a row at a wrong place read as damaged. The payload comes first, so that a worker computes its
//! part before the version is known. So sealing under the commit lock has the same cost for every length. For a cluster
//! only the directory of the payload is covered. The directory contains a checksum for every group, so that damage
//! costs one group.

pub(crate) mod head;

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::cell::RefCell;

pub use crate::codec::Codec;
use crate::codec::{Effort, compress, decompress};
use crate::wire::{Reader, Span, Trace};
use crate::{DecodeError, Limits, Problem, Section, Space};

use head::Head;

/// The length of a frame's header.
pub const LEN_BYTES: usize = 24;
/// The newest frame version, and the one that is written.
pub const FRAME_VERSION: u8 = 1;

/// The content of a frame. The number is stored, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// One value.
    Plain = 1,
    /// A directory and groups of chunks, see [`cluster`](crate::cluster).
    Cluster = 2,
    /// The tombstone of a deleted value; its version is that of the deletion. No payload.
    Tombstone = 3,
    /// Changes to a value since its last full save.
    Deltas = 4,
}

impl FrameKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Cluster, Self::Tombstone, Self::Deltas];

    /// The byte that identifies the kind.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The inverse of [`byte`](Self::byte).
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// The version that a row gets when it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stamp {
    /// The sequence number of the commit: the value changed. Also for cluster rows, whose slots have their own
    /// versions.
    #[default]
    Commit,
    /// This version: the value was only moved or upgraded, and did not change.
    Keep(u64),
}

impl Stamp {
    /// The version in a commit with this sequence number.
    pub const fn version(self, commit_seq: u64) -> u64 {
        match self {
            Self::Commit => commit_seq,
            Self::Keep(version) => version,
        }
    }
}

/// A commit of one history: what a row's frame says of the commit that last changed the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    /// The commit's sequence number.
    pub commit: u64,
    /// The low 32 bits of the number of the opening that made it, see [`lineage`](crate::lineage); 0 if that is unknown.
    pub lineage: u32,
}

impl From<u64> for Version {
    /// A commit of an unknown history.
    fn from(commit: u64) -> Self {
        Self { commit, lineage: 0 }
    }
}

/// The content of the header, without the checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameHeader {
    /// The kind of the payload.
    pub kind: FrameKind,
    /// The compression of the payload, or of each group of a cluster.
    pub codec: Codec,
    /// The commit that last changed the value.
    pub version: u64,
    /// The schema generation of the payload; 0 for clusters, whose slots have their own.
    pub schema_generation: u32,
    /// The low 32 bits of the number of the opening that made that commit; 0 in rows of earlier drafts.
    pub lineage: u32,
}

/// A stored value whose frame was checked: version, kind, codec, reserved bytes and checksum.
///
/// ```
/// use cg_format::frame::{Codec, Draft, FrameView};
/// use cg_format::{Limits, Space};
/// let draft = Draft::plain(Codec::None, 1, |payload| payload.extend(b"hello"));
/// let row = draft.seal(Space::Object, b"greeting", 42);
///
/// let frame = FrameView::open(Space::Object, b"greeting", &row)?;
/// assert_eq!(frame.header().version, 42);
/// assert_eq!(*frame.raw_payload(&mut Limits::default())?, *b"hello");
/// assert!(FrameView::open(Space::Object, b"elsewhere", &row).is_err());
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameView<'a> {
    header: FrameHeader,
    payload: &'a [u8],
}

impl<'a> FrameView<'a> {
    /// Checks a row's frame. Computes the checksum of the payload once (for a cluster only of the directory) and copies
    /// nothing.
    ///
    /// # Errors
    /// [`Problem::Newer`] for a newer frame or directory version. [`Problem::Checksum`] if the bytes were damaged or
    /// belong to another key. Any other problem names a field that no writer produces like this.
    pub fn open(space: Space, key: &[u8], bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse(space, key, Reader::new(bytes, Section::Frame))
    }

    /// The content of the header.
    pub const fn header(&self) -> FrameHeader {
        self.header
    }

    /// The payload as stored: compressed, if the header names a codec.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The payload decompressed, or borrowed if it is not compressed.
    ///
    /// A cluster's payload is returned as stored, because its groups are compressed separately.
    ///
    /// # Errors
    /// [`Problem::LimitExceeded`] before anything is allocated, [`Problem::Decompress`] or [`Problem::Truncated`].
    pub fn raw_payload(&self, limits: &mut Limits) -> Result<Cow<'a, [u8]>, DecodeError> {
        if !self.is_compressed() {
            return Ok(Cow::Borrowed(self.payload));
        }
        let mut raw = Vec::new();
        self.decompress_into(limits, &mut raw)?;
        Ok(Cow::Owned(raw))
    }

    /// As [`raw_payload`](Self::raw_payload), decompressed into a buffer, whose content is replaced. A caller that reads
    /// many rows allocates once.
    ///
    /// # Errors
    /// As [`raw_payload`](Self::raw_payload).
    pub fn raw_payload_in<'b>(
        &self,
        limits: &mut Limits,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], DecodeError>
    where
        'a: 'b,
    {
        if !self.is_compressed() {
            return Ok(self.payload);
        }
        buffer.clear();
        self.decompress_into(limits, buffer)?;
        Ok(buffer)
    }

    /// Whether the payload is one compressed block.
    fn is_compressed(&self) -> bool {
        self.header.codec != Codec::None && self.header.kind != FrameKind::Cluster
    }

    /// Appends the payload of a compressed row.
    fn decompress_into(&self, limits: &mut Limits, raw: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut reader = Reader::at_offset(self.payload, LEN_BYTES as u64, Section::Frame);
        let at = reader.offset_bytes();
        let raw_len_bytes = reader.u32("raw length")?;
        limits.spend(Section::Frame, at, "raw length", raw_len_bytes.into())?;
        let block_at = reader.offset_bytes();
        decompress(self.header.codec, reader.rest(), raw_len_bytes as usize, raw)
            .map_err(|problem| DecodeError::new(Section::Frame, block_at, problem))
    }

    fn parse(space: Space, key: &[u8], mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let (header, checksum) = parse_header(&mut reader)?;
        let payload_reader = reader.clone();
        let payload = match header.kind {
            FrameKind::Plain | FrameKind::Deltas if header.codec != Codec::None => {
                let all = reader.clone().rest();
                reader.u32("raw length")?;
                reader.take("block", reader.left_bytes())?;
                all
            }
            FrameKind::Plain | FrameKind::Deltas => reader.take("payload", reader.left_bytes())?,
            FrameKind::Tombstone => {
                reader.end("bytes after a tombstone")?;
                &[]
            }
            FrameKind::Cluster => reader.rest(),
        };
        let summed = match header.kind {
            FrameKind::Cluster => {
                let mut head = payload_reader.clone().traced(None);
                let len_bytes = Head::parse(&mut head)?.directory_len_bytes();
                payload_reader.traced(None).take("directory", len_bytes)?
            }
            _ => payload,
        };
        let expected = checksum_of(crc32c::crc32c(summed), space, key, header);
        if checksum != expected {
            let problem = Problem::Checksum { found: checksum, expected };
            return Err(DecodeError::new(Section::Frame, CHECKSUM_OFFSET_BYTES, problem));
        }
        Ok(Self { header, payload })
    }
}

/// A frame whose version is not known yet.
///
/// The payload is encoded, compressed and summed when the draft is created. The cost of [`seal`](Self::seal) does not
/// depend on its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// 24 bytes for the header, then the payload.
    bytes: Vec<u8>,
    kind: FrameKind,
    codec: Codec,
    schema_generation: u32,
    /// The checksum of the payload, or of a cluster's directory.
    payload_sum: u32,
}

impl Draft {
    /// One value, which `write` appends to its buffer. Stored uncompressed if that is not longer.
    pub fn plain(codec: Codec, schema_generation: u32, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::compressed(FrameKind::Plain, codec, schema_generation, write)
    }

    /// Changes since the last full save, as [`plain`](Self::plain).
    pub fn deltas(codec: Codec, schema_generation: u32, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::compressed(FrameKind::Deltas, codec, schema_generation, write)
    }

    /// The tombstone of a deleted value.
    pub fn tombstone(schema_generation: u32) -> Self {
        Self::summed(FrameKind::Tombstone, Codec::None, schema_generation, reserved(), LEN_BYTES)
    }

    /// A cluster: `write` appends directory and groups and returns the directory's length.
    pub(crate) fn cluster(codec: Codec, write: impl FnOnce(&mut Vec<u8>) -> usize) -> Self {
        let mut bytes = reserved();
        let directory_len_bytes = write(&mut bytes);
        Self::summed(FrameKind::Cluster, codec, 0, bytes, LEN_BYTES + directory_len_bytes)
    }

    /// A complete row as a draft, and its version. Sealed with that version under the same key, it gives the same
    /// bytes.
    ///
    /// # Errors
    /// As [`FrameView::open`].
    pub fn of_row(space: Space, key: &[u8], row: &[u8]) -> Result<(Self, Version), DecodeError> {
        let FrameView { header, payload } = FrameView::open(space, key, row)?;
        let summed_len_bytes = match header.kind {
            FrameKind::Cluster => {
                let mut head = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
                Head::parse(&mut head)?.directory_len_bytes()
            }
            FrameKind::Plain | FrameKind::Deltas | FrameKind::Tombstone => payload.len(),
        };
        let FrameHeader { kind, codec, version, schema_generation, lineage } = header;
        let end = LEN_BYTES + summed_len_bytes;
        let draft = Self::summed(kind, codec, schema_generation, row.to_vec(), end);
        Ok((draft, Version { commit: version, lineage }))
    }

    /// The kind of the payload.
    pub const fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The compression of the payload: the requested codec, or none if that gives fewer bytes.
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// The payload's schema generation.
    pub const fn schema_generation(&self) -> u32 {
        self.schema_generation
    }

    /// The payload as it will be stored.
    pub fn payload(&self) -> &[u8] {
        self.bytes.split_at_checked(LEN_BYTES).map_or(&[], |(_, payload)| payload)
    }

    /// The length of the complete row, including the frame.
    pub const fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the complete value of a row. Costs one checksum over the key and 24 bytes, independent of the payload's
    /// length.
    #[must_use]
    pub fn seal(mut self, space: Space, key: &[u8], version: impl Into<Version>) -> Vec<u8> {
        let Version { commit: version, lineage } = version.into();
        let Self { kind, codec, schema_generation, .. } = self;
        let header = FrameHeader { kind, codec, version, schema_generation, lineage };
        let checksum = checksum_of(self.payload_sum, space, key, header);
        let reserved: &mut [u8; LEN_BYTES] =
            self.bytes.first_chunk_mut().expect("every constructor reserves the header");
        *reserved = header_bytes(header, checksum);
        self.bytes
    }

    fn compressed(
        kind: FrameKind,
        codec: Codec,
        schema_generation: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let mut plain = reserved();
        write(&mut plain);
        let raw = plain.split_at_checked(LEN_BYTES).map_or(&[][..], |(_, raw)| raw);
        if let (Codec::Lz4 | Codec::Zstd, Ok(raw_len_bytes)) = (codec, u32::try_from(raw.len())) {
            let mut bytes = reserved();
            bytes.extend_from_slice(&raw_len_bytes.to_le_bytes());
            compress(codec, Effort::Fast, raw, &mut bytes);
            if bytes.len() < plain.len() {
                let end = bytes.len();
                return Self::summed(kind, codec, schema_generation, bytes, end);
            }
        }
        let end = plain.len();
        Self::summed(kind, Codec::None, schema_generation, plain, end)
    }

    fn summed(
        kind: FrameKind,
        codec: Codec,
        schema_generation: u32,
        bytes: Vec<u8>,
        summed_end_bytes: usize,
    ) -> Self {
        let summed = bytes.get(LEN_BYTES..summed_end_bytes).expect("a payload lies after the header");
        let payload_sum = crc32c::crc32c(summed);
        Self { bytes, kind, codec, schema_generation, payload_sum }
    }
}

/// The version in a frame, unchecked. Guards compare it.
///
/// `None` if the bytes are too few.
pub fn version_of(bytes: &[u8]) -> Option<u64> {
    let version: &[u8; 8] = bytes.get(8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*version))
}

/// The checksum in a frame, unchecked. It distinguishes two rows of one version.
///
/// `None` if the bytes are too few.
pub fn stored_checksum_of(bytes: &[u8]) -> Option<u32> {
    let checksum: &[u8; 4] = bytes.get(CHECKSUM_OFFSET_BYTES as usize..)?.first_chunk()?;
    Some(u32::from_le_bytes(*checksum))
}

/// The kind in a frame, unchecked. For counting rows.
///
/// `None` if the bytes are too few, or the kind is unknown to this release.
pub fn kind_of(bytes: &[u8]) -> Option<FrameKind> {
    let kind = *bytes.get(KIND_OFFSET_BYTES)?;
    [FrameKind::Plain, FrameKind::Cluster, FrameKind::Tombstone, FrameKind::Deltas]
        .into_iter()
        .find(|known| known.byte() == kind)
}

/// Checks a frame and lists the fields read, up to the first error. The modules of a plain payload and of a cluster
/// list the fields inside.
pub fn trace(space: Space, key: &[u8], bytes: &[u8]) -> (Vec<Span>, Result<FrameHeader, DecodeError>) {
    let trace: Trace = RefCell::default();
    let reader = Reader::new(bytes, Section::Frame).traced(Some(&trace));
    let answer = FrameView::parse(space, key, reader).map(|frame| frame.header);
    (trace.into_inner(), answer)
}

const KIND_OFFSET_BYTES: usize = 1;
const CHECKSUM_OFFSET_BYTES: u64 = 4;

/// A buffer that begins with space for the header.
fn reserved() -> Vec<u8> {
    [0; LEN_BYTES].to_vec()
}

fn parse_header(reader: &mut Reader<'_>) -> Result<(FrameHeader, u32), DecodeError> {
    reader.version_u8("frame version", FRAME_VERSION)?;
    let here = reader.clone();
    let byte = reader.u8("kind")?;
    let Some(kind) = FrameKind::from_byte(byte) else {
        let problem = Problem::OutOfRange { field: "kind", found: byte.into(), allowed: "1 to 4" };
        return Err(here.error(problem));
    };
    let here = reader.clone();
    let byte = reader.u8("codec")?;
    let codec = match Codec::from_byte(byte) {
        Some(codec) if codec == Codec::None || kind != FrameKind::Tombstone => codec,
        found => {
            let allowed = if found.is_some() { "0 for a tombstone" } else { "0, 1 or 2" };
            return Err(here.error(Problem::OutOfRange { field: "codec", found: byte.into(), allowed }));
        }
    };
    reader.expect_u8("reserved byte", 0)?;
    let checksum = reader.u32("checksum")?;
    let version = reader.u64("version")?;
    let here = reader.clone();
    let schema_generation = reader.u32("schema generation")?;
    if kind == FrameKind::Cluster && schema_generation != 0 {
        let (field, found) = ("schema generation", schema_generation.into());
        return Err(here.error(Problem::NotZero { field, found }));
    }
    let lineage = reader.u32("lineage")?;
    Ok((FrameHeader { kind, codec, version, schema_generation, lineage }, checksum))
}

/// The bytes of a header.
fn header_bytes(header: FrameHeader, checksum: u32) -> [u8; LEN_BYTES] {
    let start = u32::from_le_bytes([FRAME_VERSION, header.kind.byte(), header.codec.byte(), 0]);
    let word = |first: u32, then: u32| u64::from(first) | u64::from(then) << 32;
    // Three words: a chain of single bytes costs some hundred instructions.
    let words = [word(start, checksum), header.version, word(header.schema_generation, header.lineage)];
    let mut bytes = [0; LEN_BYTES];
    for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

fn checksum_of(payload_sum: u32, space: Space, key: &[u8], header: FrameHeader) -> u32 {
    let sum = crc32c::crc32c_append(payload_sum, &[space.byte()]);
    let sum = crc32c::crc32c_append(sum, key);
    crc32c::crc32c_append(sum, &header_bytes(header, 0))
}

#[cfg(test)]
mod tests;
