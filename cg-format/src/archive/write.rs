//! Writes an archive from front to back.

use alloc::vec::Vec;

use super::fault::Fault;
use super::head::{Head, SIGNATURE};
use super::part::{self, Kind, Totals};
use super::rows;
use crate::codec::Codec;
use crate::key::Family;
use crate::{DecodeError, Problem, Section};

/// A part of rows ends before the row that would make it longer than this.
const PAGE_BYTES: usize = 1 << 20;
/// The bytes of a row beside its key and its frame.
const ROW_HEAD_BYTES: u64 = 9;

/// Writes an archive: the head, then rows ascending by family and key, then the [end](Self::finish).
///
/// Every call appends the parts that are complete to a buffer of the caller, who writes it somewhere and clears it. Of one
/// row, memory has three copies at most. Without the end, every reader refuses the archive.
#[derive(Debug)]
pub struct ArchiveWriter {
    codec: Codec,
    /// The checksum of the last part.
    checksum: u32,
    /// The rows of the part that is not complete.
    page: Vec<u8>,
    last: Option<(u8, Vec<u8>)>,
    totals: Totals,
}

impl ArchiveWriter {
    /// The longest part, decompressed: 256 MiB. A longer row is refused.
    pub const MAX_PART_BYTES: u64 = 256 << 20;

    /// Begins an archive.
    ///
    /// # Errors
    /// If no reader would take the head.
    pub fn new(codec: Codec, head: &Head, out: &mut Vec<u8>) -> Result<Self, Fault> {
        let raw = head.encode()?;
        out.extend_from_slice(SIGNATURE);
        let totals = Totals { len_bytes: SIGNATURE.len() as u64, ..Totals::default() };
        let checksum = crc32c::crc32c(SIGNATURE);
        let mut archive = Self { codec, checksum, page: Vec::new(), last: None, totals };
        archive.part(Kind::Head, Codec::None, &raw, out)?;
        Ok(archive)
    }

    /// Adds a row with its frame.
    ///
    /// # Errors
    /// Unless it is above the row before, has a key, and fits into a part.
    pub fn row(&mut self, family: Family, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let refused = |field, found, allowed| {
            let problem = Problem::OutOfRange { field, found, allowed };
            Fault::from(DecodeError::new(Section::ArchiveRows, 0, problem))
        };
        if key.is_empty() {
            return Err(refused("key len", 0, "1 and up"));
        }
        let is_above = self
            .last
            .as_ref()
            .is_none_or(|(last, before)| (*last, before.as_slice()) < (family.number(), key));
        if !is_above {
            let allowed = "one whose family and key lie above those of the row before";
            return Err(refused("row", self.totals.row_count, allowed));
        }
        let row_bytes = (key.len() as u64).saturating_add(row.len() as u64);
        let len_bytes = row_bytes.saturating_add(ROW_HEAD_BYTES);
        if len_bytes > Self::MAX_PART_BYTES {
            return Err(refused("row", len_bytes, "at most 256 MiB with its key"));
        }
        if self.page.len() as u64 + len_bytes > PAGE_BYTES as u64 {
            self.complete(out)?;
        }
        rows::write((family, key, row), &mut self.page);
        self.totals.row_count += 1;
        self.totals.row_bytes += row_bytes;
        let (number, last) = self.last.get_or_insert_default();
        *number = family.number();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    /// Ends the archive. Returns its numbers.
    ///
    /// # Errors
    /// None for rows that were taken.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Totals, Fault> {
        self.complete(out)?;
        let end = self.totals.encode_end();
        let Totals { part_count, .. } = self.totals;
        self.part(Kind::End, Codec::None, &end, out)?;
        Ok(Totals { part_count, ..self.totals })
    }

    fn complete(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.page.is_empty() {
            return Ok(());
        }
        let page = core::mem::take(&mut self.page);
        self.part(Kind::Rows, self.codec, &page, out)
    }

    fn part(&mut self, kind: Kind, codec: Codec, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let before = out.len();
        let written = part::write(kind, codec, raw, self.checksum, out);
        self.checksum = written.ok_or_else(|| {
            let (field, found) = ("raw len", raw.len() as u64);
            let problem = Problem::OutOfRange { field, found, allowed: "below 4 GiB" };
            DecodeError::new(Section::ArchivePart, self.totals.len_bytes, problem)
        })?;
        self.totals.part_count += 1;
        self.totals.len_bytes += (out.len() - before) as u64;
        Ok(())
    }
}
