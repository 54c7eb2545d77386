//! Entries in byte planes: byte 0 of all entries, then byte 1 of all, up to the last byte.
//!
//! Most bytes of neighbouring entries are equal. In planes they are long runs, which compress to few sequences. A plane
//! of equal bytes may be stored as one byte, which also saves the time to write the run.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::SlotInfo;
use crate::frame::head::{Head, SLOT_LEN_BYTES};

/// The planes whose bytes are equal, of entries that are one after another: bit b is plane b.
pub(super) fn equal_planes(rows: &[u8], len_bytes: usize) -> u64 {
    let is_equal = |plane: &usize| {
        let mut bytes = rows.iter().skip(*plane).step_by(len_bytes);
        let first = bytes.next();
        bytes.all(|byte| Some(byte) == first)
    };
    (0..len_bytes).filter(is_equal).fold(0, |planes, plane| planes | 1 << plane)
}

/// Appends entries of a length, which are one after another, in planes. Those in `equal` become one byte.
pub(super) fn of_rows(rows: &[u8], len_bytes: usize, equal: u64, out: &mut Vec<u8>) {
    for plane in 0..len_bytes {
        let count = if is_in(equal, plane) { 1 } else { rows.len() / len_bytes };
        out.extend(rows.iter().skip(plane).step_by(len_bytes).take(count));
    }
}

/// Appends entries of a length, which are in planes, one after another.
pub(super) fn to_rows(planes: &[u8], (count, len_bytes): (usize, usize), equal: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + count * len_bytes, 0);
    let (_, rows) = out.split_at_mut(start);
    let mut rest = planes;
    for index in 0..len_bytes {
        let is_short = is_in(equal, index);
        let (plane, after) = rest.split_at_checked(if is_short { 1 } else { count }).unwrap_or_default();
        let at_byte = rows.iter_mut().skip(index).step_by(len_bytes);
        match plane {
            [0] => {}
            [byte] => at_byte.for_each(|at| *at = *byte),
            bytes => at_byte.zip(bytes).for_each(|(at, byte)| *at = *byte),
        }
        rest = after;
    }
}

const fn is_in(planes: u64, plane: usize) -> bool {
    planes >> plane & 1 == 1
}

/// The entries of the present chunks, as they are in a directory, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotEntries<'a> {
    bytes: Cow<'a, [u8]>,
    count: usize,
    /// Where each byte of the first entry is.
    starts: [u16; SLOT_LEN_BYTES],
    /// How far that byte of the next entry is from it: 0 if the bytes are equal and one is stored.
    steps: [u8; SLOT_LEN_BYTES],
}

impl<'a> SlotEntries<'a> {
    /// Entries one after another.
    pub(super) fn of_rows(bytes: &'a [u8]) -> Self {
        Self::one_after_another(Cow::Borrowed(bytes), 0, bytes.len() / SLOT_LEN_BYTES)
    }

    /// Entries one after another from a place on.
    fn one_after_another(bytes: Cow<'a, [u8]>, start: u16, count: usize) -> Self {
        let starts = core::array::from_fn(|byte| start + byte as u16);
        Self { bytes, count, starts, steps: [SLOT_LEN_BYTES as u8; _] }
    }

    /// Those that follow the entries of groups.
    pub(super) fn after_groups(bytes: Cow<'a, [u8]>, head: Head) -> Self {
        let (start, count) = (head.groups_len_bytes() as u16, head.present_count as usize);
        if !head.is_in_planes() {
            return Self::one_after_another(bytes, start, count);
        }
        let (mut starts, mut steps) = ([0; SLOT_LEN_BYTES], [0; SLOT_LEN_BYTES]);
        // At most 52,224, the decompressed length of all entries.
        let mut end = start;
        for (byte, (start, step)) in starts.iter_mut().zip(&mut steps).enumerate() {
            let is_short = is_in(head.equal_planes_of_slots(), byte);
            (*start, *step) = (end, u8::from(!is_short));
            end += if is_short { 1 } else { count as u16 };
        }
        Self { bytes, count, starts, steps }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// One entry, whose bytes are gathered from their planes.
    pub(super) fn get(&self, index: usize) -> Option<SlotInfo> {
        if index >= self.count {
            return None;
        }
        let mut entry = [0; SLOT_LEN_BYTES];
        for (byte, (start, step)) in entry.iter_mut().zip(self.starts.iter().zip(&self.steps)) {
            *byte = *self.bytes.get(usize::from(*start) + index * usize::from(*step))?;
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
