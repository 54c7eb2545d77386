//! Tells a log that was cut off from a log that was damaged, before RocksDB opens it.
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
//! Fewer than seven bytes left in a block are zero. Logs that are written over older ones use further types; ours
//! never are, so those types count as damage.
//!
//! A crash leaves a *prefix* of what was written, and a power cut may leave the file longer than what of it reached the
//! disk: then the rest reads as zeros, from a border between two of the disk's sectors on. RocksDB drops a prefix's last
//! part without a word, and rightly. But it drops as much when the damaged length of an older record points after the
//! end of the file, and it steps over a zeroed page in silence; and a record that ends in such zeros it takes for damage.
//! So those are told apart here: a record that reaches after the end is damaged, not cut off, if some shorter length fits
//! its checksum; and zeros must reach to the end of the file.
//!
//! What cannot be told: a damaged last record whose own bytes are all zero after the last border inside it. It looks
//! like one that was being written. Only the floor can say that it was promised.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a block.
const BLOCK_BYTES: usize = 32 << 10;
/// Bytes in front of a record's data.
const HEADER_BYTES: usize = 7;
/// The least that a disk writes at once. File systems write in multiples of it.
const SECTOR_BYTES: usize = 512;

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogEnd {
    /// Whole records before the end.
    pub record_count: u64,
    /// Where the last whole record ends.
    pub whole_bytes: u64,
    /// What follows it: the start of a record that was being written, or zeros.
    pub torn_bytes: u64,
    /// How the record that was being written breaks off; `None` if there is none.
    pub tear: Option<Tear>,
    /// Whether a whole record holds a batch with operations.
    pub holds_commits: bool,
}

/// How a record that was not written to its end breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// The file ends.
    Cut,
    /// It reads as zeros from some point on. RocksDB takes that for damage unless it is told to read up to it.
    Zeros,
}

/// A log that no crash leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where the damaged record or filling starts.
    pub offset_bytes: u64,
    /// What is wrong with it.
    pub problem: LogProblem,
}

/// What is wrong with a record of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogProblem {
    /// The data does not have the stored checksum.
    Checksum,
    /// The record reaches after the log's end, yet its checksum fits with this length.
    Length {
        /// The length stored.
        found: u16,
        /// The length that fits.
        fits: u16,
    },
    /// The record reaches after its block.
    CrossesBlock,
    /// No record of ours has this type.
    Type(u8),
    /// A part without the parts before it, or a new record before the last one ended.
    Order(u8),
    /// Data follows where nothing was written.
    DataBehindZeros,
    /// The last record reads as zeros from some point on, in a file that is synced before anything relies on it.
    Zeros,
    /// A later log goes on although the last record of this one was not written to its end.
    CommitsBehindTear,
    /// The filling at the end of a block is not zero.
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

/// Reads a log to its end: the file's size once, in blocks.
///
/// # Errors
/// The outer for what the system refuses, the inner for a damaged log.
pub fn scan_file(path: &Path) -> io::Result<Result<LogEnd, Damage>> {
    scan(&mut File::open(path)?)
}

/// Reads a log of bytes to its end.
///
/// # Errors
/// As [`scan_file`].
pub fn scan(log: &mut impl Read) -> io::Result<Result<LogEnd, Damage>> {
    let mut scanner = Scanner::default();
    let mut block = vec![0; BLOCK_BYTES];
    let mut len_bytes = fill(log, &mut block)?;
    let mut next = vec![0; BLOCK_BYTES];
    loop {
        // Only the block before the end may hold a record that was cut off.
        let next_len_bytes = if len_bytes == BLOCK_BYTES { fill(log, &mut next)? } else { 0 };
        if let Err(damage) = scanner.block(&block[..len_bytes], next_len_bytes == 0) {
            return Ok(Err(damage));
        }
        if next_len_bytes == 0 {
            return Ok(Ok(scanner.end()));
        }
        std::mem::swap(&mut block, &mut next);
        len_bytes = next_len_bytes;
    }
}

fn fill(log: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match log.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[derive(Default)]
struct Scanner {
    /// Where the block being read starts.
    at: u64,
    end: LogEnd,
    /// A record has begun and not ended.
    inside: bool,
    /// Zeros were met where a record would start or inside of one; nothing else may follow.
    zeros: bool,
    /// What is wrong with the record inside of which zeros were met, if anything else follows.
    wiped: Option<Damage>,
    /// The record that has begun holds a batch with operations.
    is_commit: bool,
}

impl Scanner {
    /// Checks one block. `last`: the file ends with it.
    fn block(&mut self, block: &[u8], last: bool) -> Result<(), Damage> {
        let mut rest = block;
        while !rest.is_empty() {
            let offset_bytes = self.at + (block.len() - rest.len()) as u64;
            let damage = |problem| Damage { offset_bytes, problem };
            if self.zeros || rest.iter().all(|byte| *byte == 0) {
                if rest.iter().any(|byte| *byte != 0) {
                    return Err(self.wiped.unwrap_or(damage(LogProblem::DataBehindZeros)));
                }
                // Up to six zeros fill a block that is followed by another.
                self.zeros |= rest.len() >= HEADER_BYTES;
                break;
            }
            let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                // Too short for a header: the filling of a whole block, or a header that was cut off.
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
                self.end.record_count += 1;
                self.end.holds_commits |= self.is_commit;
                self.end.whole_bytes = self.at + (block.len() - rest.len()) as u64;
            }
        }
        self.at += block.len() as u64;
        Ok(())
    }

    /// Checks one record and gives what follows it, or `None` if it was cut off at the end of the file.
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
            // Zeros with data after them are no record type but a part that was wiped.
            let wiped = header == [0; HEADER_BYTES];
            return Err(if wiped { LogProblem::DataBehindZeros } else { LogProblem::Type(kind) });
        }
        if usize::from(len) > behind.len() {
            // A length after the end of the file is a cut, one after the block is not; but a shorter length
            // that fits the checksum shows that all of the record is there and the length is wrong.
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
            // A batch begins with its sequence and how many operations it has. After a torn tail RocksDB writes one without.
            1 | 2 => self.is_commit = data.get(8..12).is_none_or(|count| count.iter().any(|byte| *byte != 0)),
            3 | 4 => {}
            _ => self.is_commit = false,
        }
        self.inside = match (kind, self.inside) {
            // What describes the log stands between records, as whole ones do.
            (1 | 9 | 10 | 130, false) | (4, true) => false,
            (2, false) | (3, true) => true,
            _ => return Err(LogProblem::Order(kind)),
        };
        Ok(Some(behind))
    }

    fn end(self) -> LogEnd {
        // A border between two parts of a record is a place to break off like any other.
        let between = self.inside.then_some(Tear::Cut);
        let zeros = self.zeros && (self.inside || self.wiped.is_some());
        let tear = if zeros { Some(Tear::Zeros) } else { self.end.tear.or(between) };
        LogEnd { torn_bytes: self.at - self.end.whole_bytes, tear, ..self.end }
    }
}

/// Whether what is wrong with a record is that it reads as zeros from a border between two sectors on. `rest` begins with
/// the record and ends with its block; that the zeros go on after it is for the caller to see.
fn is_wiped(rest: &[u8], offset_bytes: u64, problem: LogProblem) -> bool {
    let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return false };
    // Blocks are whole sectors, so a border of the file is one of the block.
    let into_sector = (offset_bytes % SECTOR_BYTES as u64) as usize;
    let border = (into_sector + last + 1).next_multiple_of(SECTOR_BYTES) - into_sector;
    if border < HEADER_BYTES {
        return border < rest.len();
    }
    let len = rest.get(4..6).and_then(|len| len.try_into().ok()).map_or(0, u16::from_le_bytes);
    problem == LogProblem::Checksum && border < HEADER_BYTES + usize::from(len)
}

/// The length, up to all that is there, with which the record's checksum fits.
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

/// Checksums are stored rotated and shifted, so that a log stored in a log does not check by accident.
fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}

#[cfg(test)]
mod tests;
