//! The physical records of a log, one after the other as their lengths say.
//!
//! The table in [`log_scan`](super::log_scan) has their layout.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The size of a block.
pub(super) const BLOCK_BYTES: usize = 32 << 10;
/// The size of a record's header.
pub(super) const HEADER_BYTES: usize = 7;

/// A physical record: a whole logical one or a part of it.
pub(super) struct Part<'a> {
    offset_bytes: u64,
    /// One of the types in the table.
    pub(super) kind: u8,
    pub(super) data: &'a [u8],
    crc: u32,
}

impl Part<'_> {
    fn matches_checksum(&self) -> bool {
        crc32c::crc32c_append(crc32c::crc32c(&[self.kind]), self.data) == self.crc
    }
}

/// Where [`for_each_part`] goes on.
pub(super) enum Next {
    Part,
    /// The next block: in this one nothing says where a record begins.
    Block,
    /// Nowhere.
    End,
}

/// Visits the physical records of a log as their lengths say, without a check. After a length that does not fit into its
/// block it goes on with the next block.
pub(super) fn for_each_part(log: &mut impl Read, mut visit: impl FnMut(Part<'_>) -> Next) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = 0;
    loop {
        let len_bytes = fill(log, &mut block)?;
        let mut rest = &block[..len_bytes];
        while let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let [c0, c1, c2, c3, l0, l1, kind] = *header;
            let offset_bytes = at + (len_bytes - rest.len()) as u64;
            let data = body.split_at_checked(u16::from_le_bytes([l0, l1]).into());
            let Some((data, next)) = data.filter(|_| kind != 0) else { break };
            let crc = unmask(u32::from_le_bytes([c0, c1, c2, c3]));
            match visit(Part { offset_bytes, kind, data, crc }) {
                Next::Part => rest = next,
                Next::Block => break,
                Next::End => return Ok(()),
            }
        }
        if len_bytes < BLOCK_BYTES {
            return Ok(());
        }
        at += len_bytes as u64;
    }
}

/// RocksDB's sequence number of the first batch in a log; `None` if it has none that can be read.
pub(super) fn first_sequence(path: &Path) -> Option<u64> {
    let mut first = None;
    let read = for_each_part(&mut File::open(path).ok()?, |part| {
        // Records of other types describe the log.
        if !matches!(part.kind, 1 | 2) {
            return Next::Part;
        }
        first = part.data.first_chunk().map(|sequence| u64::from_le_bytes(*sequence));
        Next::End
    });
    read.ok().and(first)
}

/// The number of records that begin after an offset and whose first part matches its checksum: those of a torn end, for a
/// message. 0 if the file cannot be read.
pub(super) fn whole_records_after(path: &Path, offset_bytes: u64) -> u64 {
    let mut count = 0;
    let read = File::open(path).and_then(|mut file| {
        for_each_part(&mut file, |part| {
            let is_whole = part.matches_checksum();
            count += u64::from(is_whole && matches!(part.kind, 1 | 2) && part.offset_bytes >= offset_bytes);
            if is_whole { Next::Part } else { Next::Block }
        })
    });
    read.map_or(0, |()| count)
}

/// Reads until the block is full or the log ends. Returns the number of bytes.
pub(super) fn fill(log: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
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

/// Checksums are stored rotated and shifted. So a log inside a log does not match by accident.
pub(super) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_left(15)
}
