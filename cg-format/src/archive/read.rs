//! Reads an archive from front to back.

use alloc::vec::Vec;

use super::fault::Fault;
use super::head::{Head, MAX_HEAD_BYTES, SIGNATURE, read_line};
use super::part::{Allowed, HEAD_LEN_BYTES, Kind, PartHead, Totals};
use super::rows::RowPage;
use crate::key::Family;
use crate::wire::{Span, Trace};
use crate::{DecodeError, Limits, Problem, Section};

/// Bytes that are read from front to back.
pub trait Source {
    /// What can go wrong.
    type Error: From<Fault>;

    /// The next bytes: as many as are asked for, or all that are left if these are fewer. Memory should grow with the
    /// bytes that are there, not with the number that is asked for.
    ///
    /// # Errors
    /// What the source says.
    fn take(&mut self, len_bytes: usize) -> Result<Vec<u8>, Self::Error>;
}

impl Source for &[u8] {
    type Error = Fault;

    fn take(&mut self, len_bytes: usize) -> Result<Vec<u8>, Fault> {
        let (taken, left) = self.split_at(len_bytes.min(self.len()));
        *self = left;
        Ok(taken.to_vec())
    }
}

const IN_WORDS: &str = "1 for the head, in the first place alone, then 2 for rows or 3 for the end";
/// The first part, and those after it.
const FIRST: Allowed = (&[Kind::Head], IN_WORDS);
const LATER: Allowed = (&[Kind::Rows, Kind::End], IN_WORDS);

/// Reads an archive part by part. One part is in memory at a time.
#[derive(Debug)]
pub struct ArchiveReader<S> {
    source: S,
    limits: Limits,
    head: Head,
    /// The checksum of the last part.
    checksum: u32,
    last: Option<(Family, Vec<u8>)>,
    totals: Totals,
    is_over: bool,
}

/// Explains the bytes of an archive: the fields that a reader reads, up to the first error, and the result. Offsets in
/// parts count from the start of their decompressed bytes.
pub fn explain(bytes: &[u8], limits: Limits) -> (Vec<Span>, Result<Totals, Fault>) {
    let trace = Trace::default();
    let read = || {
        let mut archive = ArchiveReader::open_traced(bytes, limits, Some(&trace))?;
        while archive.next_traced(Some(&trace))?.is_some() {}
        Ok(archive.totals)
    };
    let totals = read();
    (trace.take(), totals)
}

impl<S: Source> ArchiveReader<S> {
    /// Reads the head of an archive. Each part may take the memory that `limits` allow, twice while it is decompressed.
    ///
    /// # Errors
    /// If it is no archive, or one of a newer release; those of the source.
    pub fn open(source: S, limits: Limits) -> Result<Self, S::Error> {
        Self::open_traced(source, limits, None)
    }

    fn open_traced(mut source: S, limits: Limits, trace: Option<&Trace>) -> Result<Self, S::Error> {
        let line = take(&mut source, (0, Section::ArchiveLine), "line", SIGNATURE.len())?;
        read_line(&line, SIGNATURE, trace).map_err(Fault::from)?;
        let head = Head { uuid: [0; 16], incarnation: [0; 16], signature: None, commit_row: Vec::new() };
        let checksum = crc32c::crc32c(SIGNATURE);
        let totals = Totals { len_bytes: SIGNATURE.len() as u64, ..Totals::default() };
        let mut archive = Self { source, limits, head, checksum, last: None, totals, is_over: false };
        let of_head = Limits::new(MAX_HEAD_BYTES.min(limits.left_bytes()));
        let (_, at, raw) = archive.part(of_head, trace)?;
        archive.head = Head::decode(&raw, trace).map_err(|error| Fault { part_at: Some(at), error })?;
        Ok(archive)
    }

    /// The head.
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// The numbers of what was read so far. After the last page they are those of the archive.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the next rows, checked; `None` after the last. Then the end was read and agrees, and nothing follows it.
    ///
    /// # Errors
    /// What is wrong, and where; those of the source.
    pub fn next_page(&mut self) -> Result<Option<RowPage>, S::Error> {
        self.next_traced(None)
    }

    fn next_traced(&mut self, trace: Option<&Trace>) -> Result<Option<RowPage>, S::Error> {
        if self.is_over {
            return Ok(None);
        }
        let (kind, at, raw) = self.part(self.limits, trace)?;
        let in_part = |error| Fault { part_at: Some(at), error };
        if kind == Kind::End {
            // The end is no part before itself.
            self.totals.part_count -= 1;
            self.totals.check_end(&raw, trace).map_err(in_part)?;
            let end = self.totals.len_bytes;
            if let Some(found) = self.source.take(1)?.first() {
                let problem = Problem::NotZero { field: "bytes after the end", found: (*found).into() };
                return Err(Fault::from(DecodeError::new(Section::ArchiveEnd, end, problem)).into());
            }
            self.is_over = true;
            return Ok(None);
        }
        let before = self.last.as_ref().map(|(family, key)| (*family, key.as_slice()));
        let page = RowPage::decode(raw, at, before, trace).map_err(in_part)?;
        for (_, key, row) in page.iter() {
            self.totals.row_count += 1;
            self.totals.row_bytes += (key.len() + row.len()) as u64;
        }
        self.last = page.iter().last().map(|(family, key, _)| (family, key.to_vec()));
        Ok(Some(page))
    }

    /// Reads a part: its kind, where it begins, and its decompressed bytes.
    fn part(&mut self, mut limits: Limits, trace: Option<&Trace>) -> Result<(Kind, u64, Vec<u8>), S::Error> {
        let at = self.totals.len_bytes;
        let head = take(&mut self.source, (at, Section::ArchivePart), "part head", HEAD_LEN_BYTES)?;
        let is_first = self.totals.part_count == 0;
        let allowed = if is_first { FIRST } else { LATER };
        let head =
            PartHead::read(&head, (at, self.checksum), allowed, &mut limits, trace).map_err(Fault::from)?;
        let after = at + HEAD_LEN_BYTES as u64;
        let stored = take(&mut self.source, (after, Section::ArchivePart), "stored", head.stored_len_bytes)?;
        let raw = head.open(&stored).map_err(Fault::from)?;
        self.checksum = head.checksum;
        self.totals.part_count += 1;
        self.totals.len_bytes = after + stored.len() as u64;
        Ok((head.kind, at, raw))
    }
}

/// The next bytes of a source, all of them.
pub(super) fn take<S: Source>(
    source: &mut S,
    (at, section): (u64, Section),
    field: &'static str,
    len_bytes: usize,
) -> Result<Vec<u8>, S::Error> {
    let bytes = source.take(len_bytes)?;
    let (needed, left) = (len_bytes as u64, bytes.len() as u64);
    if left < needed {
        let problem = Problem::Truncated { field, needed, left };
        return Err(Fault::from(DecodeError::new(section, at, problem)).into());
    }
    Ok(bytes)
}
