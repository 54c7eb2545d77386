//! An archive of a segmented world: the archive of its root, then that of each segment, in one stream.
//!
//! | part | its bytes |
//! |---|---|
//! | 4 root | none: the parts that follow are the root's |
//! | 5 segment | its [place](SegmentAt), above that of the segment before; the parts that follow are its |
//! | 6 bytes | a piece of the archive of the root or of the segment |
//! | 3 end | the number of parts and worlds before it, and the bytes of their archives |

use alloc::vec::Vec;

use super::fault::Fault;
use super::head::{LINE_BYTES, OF_SEGMENTS, read_line};
use super::part::{self, Allowed, HEAD_LEN_BYTES, Kind, PartHead};
use super::read::{Source, take};
use crate::codec::Codec;
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Dimension, Limits, Problem, Section};

/// A writer ends a piece at this length.
const PIECE_BYTES: usize = 1 << 20;

const IN_WORDS: &str = "4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes";
/// The first part, the one after the beginning of a world, and the one after bytes of it.
const FIRST: Allowed = (&[Kind::Root], IN_WORDS);
const IN_NEW: Allowed = (&[Kind::Bytes], IN_WORDS);
const IN_BEGUN: Allowed = (&[Kind::Bytes, Kind::Segment, Kind::End], IN_WORDS);

/// The place of a segment among those of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentAt {
    /// The dimension.
    pub dimension: Dimension,
    /// Its place along x, y and z, in segments.
    pub at: [i64; 3],
}

/// What a [`SegmentsReader`] reads next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The archive of the root begins. It is the first.
    Root,
    /// The archive of a segment begins, and the one before it is over.
    Segment(SegmentAt),
    /// The next bytes of the archive that has begun, at least one.
    Bytes(Vec<u8>),
}

/// What is counted, and the checksum of the last part.
#[derive(Debug)]
struct State {
    checksum: u32,
    /// The length of the stream.
    len_bytes: u64,
    last: Option<SegmentAt>,
    end: End,
}

/// The content of the end.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    part_count: u64,
    world_count: u64,
    /// Of the archives of the worlds.
    archive_bytes: u64,
}

impl State {
    fn begun() -> Self {
        let len_bytes = LINE_BYTES as u64;
        Self { checksum: crc32c::crc32c(OF_SEGMENTS), len_bytes, last: None, end: End::default() }
    }
}

/// Writes an archive of a segmented world: the bytes of the root's [archive](super::ArchiveWriter), then each segment
/// with those of its archive, then the [end](Self::finish).
///
/// Every call appends to a buffer of the caller, who writes it somewhere and clears it. Without the end, every reader
/// refuses the archive.
#[derive(Debug)]
pub struct SegmentsWriter {
    state: State,
}

impl SegmentsWriter {
    /// Begins an archive, and with it the root's.
    ///
    /// # Errors
    /// None.
    pub fn new(out: &mut Vec<u8>) -> Result<Self, Fault> {
        out.extend_from_slice(OF_SEGMENTS);
        let mut archive = Self { state: State::begun() };
        archive.part(Kind::Root, &[], out)?;
        archive.state.end.world_count += 1;
        Ok(archive)
    }

    /// Begins the archive of a segment.
    ///
    /// # Errors
    /// Unless it is above the segment before.
    pub fn segment(&mut self, segment: SegmentAt, out: &mut Vec<u8>) -> Result<(), Fault> {
        let raw = segment.encode();
        SegmentAt::decode(&raw, self.state.last, None)?;
        self.part(Kind::Segment, &raw, out)?;
        self.state.last = Some(segment);
        self.state.end.world_count += 1;
        Ok(())
    }

    /// Adds bytes of the archive that was begun last, one and up.
    ///
    /// # Errors
    /// None.
    pub fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.part(Kind::Bytes, piece, out)?;
            self.state.end.archive_bytes += piece.len() as u64;
        }
        Ok(())
    }

    /// Ends the archive. Returns its length.
    ///
    /// # Errors
    /// None.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<u64, Fault> {
        let end = self.state.end.encode();
        self.part(Kind::End, &end, out)?;
        Ok(self.state.len_bytes)
    }

    fn part(&mut self, kind: Kind, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let before = out.len();
        let state = &mut self.state;
        state.checksum = part::write(kind, Codec::None, raw, state.checksum, out).ok_or_else(|| {
            let (field, found) = ("raw len", raw.len() as u64);
            let problem = Problem::OutOfRange { field, found, allowed: "below 4 GiB" };
            DecodeError::new(Section::ArchivePart, state.len_bytes, problem)
        })?;
        state.end.part_count += 1;
        state.len_bytes += (out.len() - before) as u64;
        Ok(())
    }
}

/// Reads an archive of a segmented world piece by piece. One piece is in memory at a time.
///
/// ```
/// use cg_format::archive::{Piece, SegmentAt, SegmentsReader, SegmentsWriter};
/// use cg_format::{Dimension, Limits};
///
/// let mut stream = Vec::new();
/// let mut archive = SegmentsWriter::new(&mut stream)?;
/// archive.bytes(b"the archive of the root", &mut stream)?;
/// let segment = SegmentAt { dimension: Dimension::new(0), at: [3, 0, -1] };
/// archive.segment(segment, &mut stream)?;
/// archive.bytes(b"that of the segment", &mut stream)?;
/// archive.finish(&mut stream)?;
///
/// let mut archive = SegmentsReader::open(&stream[..], Limits::default())?;
/// assert_eq!(archive.next_piece()?, Some(Piece::Root));
/// assert_eq!(archive.next_piece()?, Some(Piece::Bytes(b"the archive of the root".to_vec())));
/// assert_eq!(archive.next_piece()?, Some(Piece::Segment(segment)));
/// assert_eq!(archive.next_piece()?, Some(Piece::Bytes(b"that of the segment".to_vec())));
/// assert_eq!(archive.next_piece()?, None);
/// # Ok::<(), cg_format::archive::Fault>(())
/// ```
#[derive(Debug)]
pub struct SegmentsReader<S> {
    source: S,
    limits: Limits,
    state: State,
    /// What may follow.
    allowed: Allowed,
    is_over: bool,
}

impl<'b> SegmentsReader<&'b [u8]> {
    /// Explains the bytes of an archive, as [`explain`](super::explain) does it for that of one world. Returns the number of
    /// worlds.
    pub fn explain(bytes: &'b [u8], limits: Limits) -> (Vec<Span>, Result<u64, Fault>) {
        let trace = Trace::default();
        let read = || {
            let mut archive = Self::open_traced(bytes, limits, Some(&trace))?;
            while archive.next_traced(Some(&trace))?.is_some() {}
            Ok(archive.state.end.world_count)
        };
        let worlds = read();
        (trace.take(), worlds)
    }
}

impl<S: Source> SegmentsReader<S> {
    /// Reads the line of an archive. Each piece may take the memory that `limits` allow.
    ///
    /// # Errors
    /// If it is no archive of a segmented world, or one of a newer release; those of the source.
    pub fn open(source: S, limits: Limits) -> Result<Self, S::Error> {
        Self::open_traced(source, limits, None)
    }

    fn open_traced(mut source: S, limits: Limits, trace: Option<&Trace>) -> Result<Self, S::Error> {
        let line = take(&mut source, (0, Section::ArchiveLine), "line", LINE_BYTES)?;
        read_line(&line, OF_SEGMENTS, trace).map_err(Fault::from)?;
        Ok(Self { source, limits, state: State::begun(), allowed: FIRST, is_over: false })
    }

    /// Returns the next piece, checked; `None` after the last. Then the end was read and agrees, and nothing follows it.
    ///
    /// # Errors
    /// What is wrong, and where; those of the source.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, S::Error> {
        self.next_traced(None)
    }

    fn next_traced(&mut self, trace: Option<&Trace>) -> Result<Option<Piece>, S::Error> {
        if self.is_over {
            return Ok(None);
        }
        let (kind, at, raw) = self.part(trace)?;
        let in_part = |error| Fault { part_at: Some(at), error };
        match kind {
            Kind::Bytes => {
                if raw.is_empty() {
                    let problem =
                        Problem::OutOfRange { field: "raw len", found: 0, allowed: "1 and up for bytes" };
                    return Err(Fault::from(DecodeError::new(Section::ArchivePart, at + 2, problem)).into());
                }
                self.state.end.archive_bytes += raw.len() as u64;
                self.allowed = IN_BEGUN;
                Ok(Some(Piece::Bytes(raw)))
            }
            Kind::Segment => {
                let segment = SegmentAt::decode(&raw, self.state.last, trace).map_err(in_part)?;
                self.state.last = Some(segment);
                self.state.end.world_count += 1;
                self.allowed = IN_NEW;
                Ok(Some(Piece::Segment(segment)))
            }
            Kind::End => {
                // The end is no part before itself.
                self.state.end.part_count -= 1;
                self.state.end.check(&raw, trace).map_err(in_part)?;
                if let Some(found) = self.source.take(1)?.first() {
                    let problem = Problem::NotZero { field: "bytes after the end", found: (*found).into() };
                    let error = DecodeError::new(Section::ArchiveEnd, self.state.len_bytes, problem);
                    return Err(Fault::from(error).into());
                }
                self.is_over = true;
                Ok(None)
            }
            Kind::Root | Kind::Head | Kind::Rows => {
                let reader = Reader::new(&raw, Section::ArchivePart).traced(trace);
                reader.end("bytes of the part of the root").map_err(in_part)?;
                self.state.end.world_count += 1;
                self.allowed = IN_NEW;
                Ok(Some(Piece::Root))
            }
        }
    }

    /// Reads a part: its kind, where it begins, and its decompressed bytes.
    fn part(&mut self, trace: Option<&Trace>) -> Result<(Kind, u64, Vec<u8>), S::Error> {
        let (at, mut limits) = (self.state.len_bytes, self.limits);
        let head = take(&mut self.source, (at, Section::ArchivePart), "part head", HEAD_LEN_BYTES)?;
        let head = PartHead::read(&head, (at, self.state.checksum), self.allowed, &mut limits, trace)
            .map_err(Fault::from)?;
        let after = at + HEAD_LEN_BYTES as u64;
        let stored = take(&mut self.source, (after, Section::ArchivePart), "stored", head.stored_len_bytes)?;
        let raw = head.open(&stored).map_err(Fault::from)?;
        self.state.checksum = head.checksum;
        self.state.end.part_count += 1;
        self.state.len_bytes = after + stored.len() as u64;
        Ok((head.kind, at, raw))
    }
}

impl SegmentAt {
    fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.u64(self.dimension.get());
        for place in self.at {
            writer.i64(place);
        }
        out
    }

    fn decode(raw: &[u8], before: Option<Self>, trace: Option<&Trace>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(raw, Section::ArchiveSegment).traced(trace);
        let here = reader.clone();
        let dimension = Dimension::new(reader.u64("dimension")?);
        let at = [reader.i64("x")?, reader.i64("y")?, reader.i64("z")?];
        reader.end("bytes after the place")?;
        let segment = Self { dimension, at };
        if before.is_some_and(|before| before >= segment) {
            let allowed = "a segment above the one before, by dimension, x, y and z";
            let (field, found) = ("dimension", dimension.get());
            return Err(here.error(Problem::OutOfRange { field, found, allowed }));
        }
        Ok(segment)
    }
}

impl End {
    const fn fields(&self) -> [(&'static str, u64); 3] {
        [("parts", self.part_count), ("worlds", self.world_count), ("archive bytes", self.archive_bytes)]
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        for (_, number) in self.fields() {
            writer.u64(number);
        }
        out
    }

    /// Checks the end against what was read before it.
    fn check(&self, raw: &[u8], trace: Option<&Trace>) -> Result<(), DecodeError> {
        part::check_numbers(self.fields(), raw, trace)
    }
}
