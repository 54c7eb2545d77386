//! Distinguishes a log that was cut off from a damaged one, before RocksDB opens it.
//!
//! The manifest and the write-ahead logs are sequences of 32 KiB blocks; a physical record never crosses one.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 4 | checksum | masked CRC-32C over type and data |
//! | 4 | 2 | length | bytes of data |
//! | 6 | 1 | type | 1 whole, 2 first, 3 middle or 4 last part of a record; 9, 10, 130 describe the log |
//! | 7 | … | data | |
//!
//! If fewer than seven bytes are left in a block, they are zero. Reused log files have further record types. Our logs
//! are never reused, so those types are damage.
//!
//! A crash leaves a *prefix* of what was written. A power cut may leave a file that is longer than what reached the
//! disk. The rest then reads as zeros, beginning at a sector boundary of the disk. RocksDB silently drops an
//! incomplete record at the end of a prefix, which is correct. But RocksDB is wrong in three cases:
//!
//! - It also drops an older record whose damaged length points past the end of the file.
//! - It skips a zeroed page without an error.
//! - It treats a record that ends in such zeros as damage.
//!
//! So this module checks those cases. A record that extends past the end is damaged, not cut off, if a shorter length
//! matches its checksum. Zeros must extend to the end of the file.
//!
//! Where the synced length of a file is known, this holds up to there. A power cut may leave anything after it: a later
//! page without an earlier one, or a part of each. The first record after it that is not whole ends the log.
//!
//! One case cannot be detected: a damaged last record whose own bytes are all zero after the last sector boundary
//! inside it. It looks like an incomplete write. Only the floor can show that it was synced.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cg_format::Space;
use cg_format::frame::{self, FrameView, Version};

use super::super::COMMIT_SEQUENCE_KEY;
use super::log_parts::{BLOCK_BYTES, HEADER_BYTES, fill, unmask};

/// The smallest unit that a disk writes. File systems write multiples of it.
const SECTOR_BYTES: usize = 512;
/// The bytes at the end of a commit's batch that put the row of its sequence: the length of the key, the key, the length of the
/// value, and a frame without a payload.
const SEQUENCE_BYTES: usize = 2 + COMMIT_SEQUENCE_KEY.len() + frame::LEN_BYTES;

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogEnd {
    /// The number of whole records before the end.
    pub record_count: u64,
    /// The offset at which the last whole record ends.
    pub whole_bytes: u64,
    /// The bytes after it: an incomplete record, or zeros.
    pub torn_bytes: u64,
    /// How the incomplete record ends; `None` if there is none.
    pub tear: Option<Tear>,
    /// Whether a whole record holds a batch with operations.
    pub holds_commits: bool,
    /// The first and the last commit that it holds. Batches that move rows are no commits.
    pub commits: Option<(Version, Version)>,
}

/// How an incomplete record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// The file ends.
    Cut,
    /// The record reads as zeros from some point on. RocksDB treats that as damage.
    Zeros,
    /// The record is not whole, and neither it nor what follows was synced.
    Unsynced(LogProblem),
}

/// Damage that no crash can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the damaged record or block padding.
    pub offset_bytes: u64,
    /// The kind of damage.
    pub problem: LogProblem,
}

/// A kind of damage in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogProblem {
    /// The data does not match the stored checksum.
    Checksum,
    /// The record extends past the end of the log, but a shorter length matches its checksum.
    Length {
        /// The stored length.
        found: u16,
        /// The length that matches.
        fits: u16,
    },
    /// The record extends past its block.
    CrossesBlock,
    /// Our logs have no records of this type.
    Type(u8),
    /// A part without the parts before it, or a new record before the last one ended.
    Order(u8),
    /// Data follows a zeroed part.
    DataBehindZeros,
    /// The last record reads as zeros from some point on, in a file that is synced before anything relies on it.
    Zeros,
    /// The last record is incomplete, but a later log holds commits.
    CommitsBehindTear,
    /// The padding at the end of a block is not zero.
    Filling,
}

impl fmt::Display for LogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("a record does not match its checksum"),
            Self::Length { found, fits } => {
                write!(f, "a record's length is {found}, but its checksum fits {fits} bytes")
            }
            Self::CrossesBlock => f.write_str("a record reaches after its block"),
            Self::Type(found) => write!(f, "a record has the unknown type {found}"),
            Self::Order(found) => write!(f, "a record part of type {found} is out of order"),
            Self::DataBehindZeros => f.write_str("data follows a zeroed part"),
            Self::Zeros => f.write_str("the last record is zeroed from some point on"),
            Self::CommitsBehindTear => {
                f.write_str("the last record was not written to its end, yet a later log goes on")
            }
            Self::Filling => f.write_str("the filling of a block is not zero"),
        }
    }
}

/// Reads a log file to its end, block by block. Its first `synced_bytes` are known to be synced. Reads every byte once.
///
/// # Errors
/// The outer error comes from the operating system, the inner one is damage.
pub fn scan_file(path: &Path, synced_bytes: u64) -> io::Result<Result<LogEnd, Damage>> {
    scan(&mut File::open(path)?, synced_bytes)
}

/// Reads a log to its end. Its first `synced_bytes` are known to be synced: the first record after them that is not whole
/// ends the log.
///
/// # Errors
/// As [`scan_file`].
pub fn scan(log: &mut impl Read, synced_bytes: u64) -> io::Result<Result<LogEnd, Damage>> {
    let mut scanner = Scanner { synced_bytes, ..Scanner::default() };
    let mut block = vec![0; BLOCK_BYTES];
    let mut len_bytes = fill(log, &mut block)?;
    let mut next = vec![0; BLOCK_BYTES];
    loop {
        // Only the last block may hold a record that was cut off.
        let next_len_bytes = if len_bytes == BLOCK_BYTES { fill(log, &mut next)? } else { 0 };
        if let Err(damage) = scanner.block(&block[..len_bytes], next_len_bytes == 0) {
            let unread_bytes = (len_bytes + next_len_bytes) as u64 + io::copy(log, &mut io::sink())?;
            return Ok(scanner.stopped_by(damage, unread_bytes));
        }
        if next_len_bytes == 0 {
            return Ok(Ok(scanner.end()));
        }
        std::mem::swap(&mut block, &mut next);
        len_bytes = next_len_bytes;
    }
}

/// The offsets at which the whole records of a file begin, from one offset on.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn record_starts(path: &Path, from_bytes: u64) -> io::Result<Vec<u64>> {
    let mut file = File::open(path)?;
    let mut scanner = Scanner { synced_bytes: from_bytes, starts: Some(Vec::new()), ..Scanner::default() };
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let len_bytes = fill(&mut file, &mut block)?;
        if len_bytes == 0 || scanner.block(&block[..len_bytes], len_bytes < BLOCK_BYTES).is_err() {
            return Ok(scanner.starts.unwrap_or_default());
        }
    }
}

#[derive(Default)]
struct Scanner {
    /// The offset of the current block.
    at: u64,
    end: LogEnd,
    /// Whether a record has begun and not ended.
    inside: bool,
    /// Whether zeros were found at the start of a record or inside one. Only zeros may follow.
    zeros: bool,
    /// The damage to report for the record with the zeros, if anything else follows.
    wiped: Option<Damage>,
    /// Whether the record that has begun holds a batch with operations.
    is_commit: bool,
    /// The last bytes of the record that has begun.
    tail: Vec<u8>,
    /// How much of the log is known to be synced.
    synced_bytes: u64,
    /// Where the records after the synced bytes begin, if that is asked for.
    starts: Option<Vec<u64>>,
}

impl Scanner {
    /// Checks one block. `last`: it is the last block of the file.
    fn block(&mut self, block: &[u8], last: bool) -> Result<(), Damage> {
        let mut rest = block;
        while !rest.is_empty() {
            let offset_bytes = self.at + (block.len() - rest.len()) as u64;
            let damage = |problem| Damage { offset_bytes, problem };
            if self.zeros || rest.iter().all(|byte| *byte == 0) {
                if rest.iter().any(|byte| *byte != 0) {
                    return Err(self.wiped.unwrap_or(damage(LogProblem::DataBehindZeros)));
                }
                // Up to six zeros fill the end of a block that another one follows.
                self.zeros |= rest.len() >= HEADER_BYTES;
                break;
            }
            let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                // Too short for a header: the padding of a whole block, or a header that was cut off.
                if block.len() == BLOCK_BYTES {
                    return Err(damage(LogProblem::Filling));
                }
                self.end.tear = Some(Tear::Cut);
                break;
            };
            match self.record(*header, behind, BLOCK_BYTES - (block.len() - behind.len()), last) {
                Ok(Some(behind)) => rest = behind,
                Ok(None) => {
                    self.end.tear = Some(Tear::Cut);
                    break;
                }
                Err(problem) if is_wiped(rest, offset_bytes, problem) => {
                    (self.zeros, self.wiped) = (true, Some(damage(problem)));
                    break;
                }
                Err(problem) => return Err(damage(problem)),
            }
            if !self.inside {
                let start = self.end.whole_bytes;
                if let Some(starts) = self.starts.as_mut().filter(|_| start >= self.synced_bytes) {
                    starts.push(start);
                }
                self.end.record_count += 1;
                self.end.holds_commits |= self.is_commit;
                if let Some(commit) = sequence_at_end(&self.tail).filter(|_| self.is_commit) {
                    let first = self.end.commits.map_or(commit, |(first, _)| first);
                    self.end.commits = Some((first, commit));
                }
                self.end.whole_bytes = self.at + (block.len() - rest.len()) as u64;
            }
        }
        self.at += block.len() as u64;
        Ok(())
    }

    /// Checks one record. Returns what follows it, or `None` if the record was cut off at the end of the file.
    fn record<'a>(
        &mut self,
        header: [u8; HEADER_BYTES],
        behind: &'a [u8],
        room: usize,
        last: bool,
    ) -> Result<Option<&'a [u8]>, LogProblem> {
        let [c0, c1, c2, c3, l0, l1, kind] = header;
        let crc = unmask(u32::from_le_bytes([c0, c1, c2, c3]));
        let len = u16::from_le_bytes([l0, l1]);
        if !matches!(kind, 1..=4 | 9 | 10 | 130) {
            // Zeros with data after them are a wiped part, not a record type.
            let wiped = header == [0; HEADER_BYTES];
            return Err(if wiped { LogProblem::DataBehindZeros } else { LogProblem::Type(kind) });
        }
        if usize::from(len) > behind.len() {
            // A length past the end of the file is a cut. A length past the block is damage. If a shorter length
            // matches the checksum, the whole record is in the file and its length is damaged.
            let fits = shorter_fit(crc, kind, behind);
            return match fits {
                Some(fits) => Err(LogProblem::Length { found: len, fits }),
                None if usize::from(len) > room || !last => Err(LogProblem::CrossesBlock),
                None => Ok(None),
            };
        }
        let (data, behind) = behind.split_at(len.into());
        if crc32c::crc32c_append(crc32c::crc32c(&[kind]), data) != crc {
            return Err(LogProblem::Checksum);
        }
        match kind {
            // A batch begins with its sequence and its operation count. After a torn tail RocksDB writes a batch
            // without operations.
            1 | 2 => {
                self.is_commit = data.get(8..12).is_none_or(|count| count.iter().any(|byte| *byte != 0));
                self.tail.clear();
                self.keep_tail(data);
            }
            3 | 4 => self.keep_tail(data),
            _ => self.is_commit = false,
        }
        self.inside = match (kind, self.inside) {
            // Records that describe the log may only be between other records, like whole records.
            (1 | 9 | 10 | 130, false) | (4, true) => false,
            (2, false) | (3, true) => true,
            _ => return Err(LogProblem::Order(kind)),
        };
        Ok(Some(behind))
    }

    /// Notes the last bytes of a record. `data` is its next part.
    fn keep_tail(&mut self, data: &[u8]) {
        self.tail
            .extend_from_slice(data.get(data.len().saturating_sub(SEQUENCE_BYTES)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(SEQUENCE_BYTES));
    }

    /// The end of a log at a record that is not whole: damage, unless all that was synced is before it. `unread_bytes` follow
    /// the last block that was whole.
    fn stopped_by(self, damage: Damage, unread_bytes: u64) -> Result<LogEnd, Damage> {
        // A first sector is there or reads as zeros, so that a file which begins with something else is no log.
        let is_no_log = damage.offset_bytes == 0 && matches!(damage.problem, LogProblem::Type(_));
        if self.end.whole_bytes < self.synced_bytes || is_no_log {
            return Err(damage);
        }
        let torn_bytes = self.at + unread_bytes - self.end.whole_bytes;
        Ok(LogEnd { torn_bytes, tear: Some(Tear::Unsynced(damage.problem)), ..self.end })
    }

    fn end(self) -> LogEnd {
        // The log may also end between two parts of a record.
        let between = self.inside.then_some(Tear::Cut);
        let zeros = self.zeros && (self.inside || self.wiped.is_some());
        let tear = if zeros { Some(Tear::Zeros) } else { self.end.tear.or(between) };
        LogEnd { torn_bytes: self.at - self.end.whole_bytes, tear, ..self.end }
    }
}

/// Whether the problem of a record is that it reads as zeros from a sector boundary on. `rest` begins with the record
/// and ends with its block. The caller checks that only zeros follow.
fn is_wiped(rest: &[u8], offset_bytes: u64, problem: LogProblem) -> bool {
    let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return false };
    // A block is a whole number of sectors, so sector boundaries of the file are sector boundaries of the block.
    let into_sector = (offset_bytes % SECTOR_BYTES as u64) as usize;
    let border = (into_sector + last + 1).next_multiple_of(SECTOR_BYTES) - into_sector;
    if border < HEADER_BYTES {
        return border < rest.len();
    }
    let len = rest.get(4..6).and_then(|len| len.try_into().ok()).map_or(0, u16::from_le_bytes);
    problem == LogProblem::Checksum && border < HEADER_BYTES + usize::from(len)
}

/// The commit whose sequence the last operation of a batch stores; `None` if the batch is none of a commit.
fn sequence_at_end(batch: &[u8]) -> Option<Version> {
    let (key, row) = batch.split_at_checked(batch.len().checked_sub(frame::LEN_BYTES)?)?;
    let key = key.strip_suffix(&[frame::LEN_BYTES as u8])?;
    let ends_so = key.strip_suffix(COMMIT_SEQUENCE_KEY)?.ends_with(&[COMMIT_SEQUENCE_KEY.len() as u8]);
    let frame = FrameView::open(Space::WorldMeta, COMMIT_SEQUENCE_KEY, row).ok().filter(|_| ends_so)?;
    let header = frame.header();
    Some(Version { commit: header.version, lineage: header.lineage })
}

/// Finds a length, at most that of `data`, that matches the record's checksum.
fn shorter_fit(crc: u32, kind: u8, data: &[u8]) -> Option<u16> {
    let mut sum = crc32c::crc32c(&[kind]);
    if sum == crc {
        return Some(0);
    }
    for (index, byte) in data.iter().enumerate() {
        sum = crc32c::crc32c_append(sum, std::slice::from_ref(byte));
        if sum == crc {
            return Some(index as u16 + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests;
