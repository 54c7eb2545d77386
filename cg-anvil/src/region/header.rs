//! The 8 KiB in front of a region's sectors.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

use super::Slot;

/// Bytes of a sector.
pub(super) const SECTOR_BYTES: u64 = 4096;
/// Sectors that the header takes.
pub(super) const HEADER_SECTORS: u32 = 2;
/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 8192;
/// Sectors that an entry can count; a larger column lies in a file of its own.
pub(super) const MAX_SECTORS: u32 = 255;
/// Set in the compression byte of a column that lies in a file of its own.
pub(super) const EXTERNAL_BIT: u8 = 0x80;
/// Bytes of a slot before its payload: u32 length, u8 compression.
pub(super) const SLOT_HEAD_BYTES: u64 = 5;

/// Where a slot's sectors lie; all zero = nothing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) first_sector: u32,
    pub(super) sectors: u32,
    pub(super) timestamp: u32,
}

impl Entry {
    pub(super) const fn is_absent(self) -> bool {
        self.first_sector == 0 && self.sectors == 0
    }
}

/// Reads as many entries as the bytes hold; the others are absent.
pub(super) fn read(bytes: &[u8]) -> Vec<Entry> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_be_bytes)
    };
    (0..usize::from(Slot::COUNT))
        .map(|index| {
            let place = word(index * 4);
            Entry { first_sector: place >> 8, sectors: place & 0xFF, timestamp: word(4096 + index * 4) }
        })
        .collect()
}

/// The header's bytes.
pub(super) fn write(entries: &[Entry]) -> Vec<u8> {
    let places = entries.iter().map(|entry| entry.first_sector << 8 | entry.sectors);
    let timestamps = entries.iter().map(|entry| entry.timestamp);
    places.chain(timestamps).flat_map(u32::to_be_bytes).collect()
}

/// The stored length and compression byte at the start of a slot.
pub(super) fn slot_head(bytes: [u8; SLOT_HEAD_BYTES as usize]) -> (u32, u8) {
    let [a, b, c, d, compression] = bytes;
    (u32::from_be_bytes([a, b, c, d]), compression)
}

/// The bytes of a slot's head.
pub(super) fn write_slot_head(len_bytes: u32, compression: u8) -> [u8; SLOT_HEAD_BYTES as usize] {
    let [a, b, c, d] = len_bytes.to_be_bytes();
    [a, b, c, d, compression]
}
