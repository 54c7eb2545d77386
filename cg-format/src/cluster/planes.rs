//! Entries in byte planes: byte 0 of all entries, then byte 1 of all, up to the last byte.
//!
//! Most bytes of neighbouring entries are equal. In planes they are long runs, which compress to few sequences.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::SlotInfo;
use crate::frame::head::{Head, SLOT_LEN_BYTES};

/// Appends entries of a length, which are one after another, in planes.
pub(super) fn of_rows(rows: &[u8], len_bytes: usize, out: &mut Vec<u8>) {
    for plane in 0..len_bytes {
        out.extend(rows.iter().skip(plane).step_by(len_bytes));
    }
}

/// Appends entries of a length, which are in planes, one after another.
pub(super) fn to_rows(planes: &[u8], len_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + planes.len(), 0);
    let (_, rows) = out.split_at_mut(start);
    let count = (planes.len() / len_bytes).max(1);
    for (index, plane) in planes.chunks_exact(count).enumerate() {
        for (at, byte) in rows.iter_mut().skip(index).step_by(len_bytes).zip(plane) {
            *at = *byte;
        }
    }
}

/// The entries of the present chunks, as they are in a directory, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotEntries<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where they start in the bytes.
    start: usize,
    count: usize,
    is_in_planes: bool,
}

impl<'a> SlotEntries<'a> {
    /// Entries one after another.
    pub(super) const fn of_rows(bytes: &'a [u8]) -> Self {
        let count = bytes.len() / SLOT_LEN_BYTES;
        Self { bytes: Cow::Borrowed(bytes), start: 0, count, is_in_planes: false }
    }

    /// Those that follow the entries of groups.
    pub(super) fn after_groups(bytes: Cow<'a, [u8]>, head: Head) -> Self {
        let (start, count) = (head.groups_len_bytes(), head.present_count as usize);
        Self { bytes, start, count, is_in_planes: head.is_in_planes() }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// One entry, whose bytes are gathered from their planes.
    pub(super) fn get(&self, index: usize) -> Option<SlotInfo> {
        if index >= self.count {
            return None;
        }
        let (first, step) = if self.is_in_planes { (index, self.count) } else { (index * SLOT_LEN_BYTES, 1) };
        let mut entry = [0; SLOT_LEN_BYTES];
        for (byte, plane) in entry.iter_mut().zip(0..) {
            *byte = *self.bytes.get(self.start + first + plane * step)?;
        }
        let [v0, v1, v2, v3, v4, v5, v6, v7, generation @ ..] = entry;
        Some(SlotInfo {
            version: u64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7]),
            schema_generation: u32::from_le_bytes(generation),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = SlotInfo> + use<'_, 'a> {
        (0..self.count).map_while(|index| self.get(index))
    }
}
