//! The stored sections of a snapshot: their bytes, concatenated in pieces that snapshots can share.
//!
//! A piece ends before the section that would make it longer than 32 KiB. So a section takes its bytes and 12 more. Two
//! snapshots share at most one piece more than the content that is equal in them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum length of a piece that holds more than one section. It is below 2^16, so that an offset in a piece takes
/// two bytes.
const PIECE_BYTES: usize = 32 << 10;
/// The two counters that `Arc` stores before its bytes.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// The bytes of a section with their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSection<'s> {
    bytes: &'s [u8],
    checksum: u32,
}

impl<'s> KeptSection<'s> {
    pub(crate) const fn new(bytes: &'s [u8], checksum: u32) -> Self {
        Self { bytes, checksum }
    }

    /// The canonical bytes of a chunk (see `docs/format/chunk.md`), with the ids that the snapshot's names define.
    pub const fn bytes(&self) -> &'s [u8] {
        self.bytes
    }

    /// The CRC-32C of the bytes when they were captured. It is also their hash.
    pub const fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The checksum of the present bytes.
    pub(crate) fn computed(&self) -> u32 {
        crc32c::crc32c(self.bytes)
    }
}

/// The place of a section's bytes, and their checksum.
#[derive(Debug, Clone, Copy)]
struct Spot {
    piece: u32,
    checksum: u32,
    offset: u16,
    /// 0 for the whole piece: the section is longer than a piece of several sections may be.
    len: u16,
}

impl Spot {
    fn in_piece(self, piece: &[u8]) -> Option<KeptSection<'_>> {
        let from = usize::from(self.offset);
        let to = if self.len == 0 { piece.len() } else { from + usize::from(self.len) };
        Some(KeptSection::new(piece.get(from..to)?, self.checksum))
    }
}

/// Sections in order. Cheap to clone: the bytes are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pieces: Arc<[Arc<[u8]>]>,
    spots: Arc<[Spot]>,
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<KeptSection<'_>> {
        let spot = self.spots.get(index)?;
        spot.in_piece(self.pieces.get(spot.piece as usize)?)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = KeptSection<'_>> + Clone {
        (0..self.len()).map(|index| self.get(index).expect("a section lies in its piece"))
    }

    /// The memory that it takes in addition to this value, including pieces that other values share.
    pub(crate) fn memory_bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.len() + ARC_BYTES).sum();
        pieces + size_of_val(&*self.pieces) + size_of_val(&*self.spots) + 2 * ARC_BYTES
    }

    /// The memory of the pieces that both values share.
    pub(crate) fn shared_bytes(&self, others: &Self) -> usize {
        let theirs: HashSet<*const u8> = others.pieces.iter().map(|piece| piece.as_ptr()).collect();
        let shared = self.pieces.iter().filter(|piece| theirs.contains(&piece.as_ptr()));
        shared.map(|piece| piece.len() + ARC_BYTES).sum()
    }

    /// Shares the memory of sections that `others` also has, and returns their length in bytes. Pieces that lose a
    /// section are written again without it.
    pub(crate) fn share_with(&mut self, others: &Self) -> u64 {
        let theirs: HashMap<&[u8], &Spot> =
            others.iter().map(|section| section.bytes()).zip(others.spots.iter()).collect();
        let mut held = Held::default();
        let mut shared_bytes = 0;
        let mut is_broken = vec![false; self.pieces.len()];
        let mut same = Vec::with_capacity(self.len());
        for (section, spot) in self.iter().zip(self.spots.iter()) {
            let there = theirs.get(section.bytes()).copied();
            let piece = there.and_then(|there| others.pieces.get(there.piece as usize));
            let mine = self.pieces.get(spot.piece as usize);
            if piece.zip(mine).is_some_and(|(piece, mine)| !Arc::ptr_eq(piece, mine)) {
                shared_bytes += section.bytes().len() as u64;
                if let Some(is_broken) = is_broken.get_mut(spot.piece as usize) {
                    *is_broken = true;
                }
            }
            same.push(there.zip(piece));
        }
        let mut rest = KeptWriter::default();
        let mut spots = Vec::with_capacity(self.len());
        let mut of_rest = Vec::new();
        for ((section, spot), same) in self.iter().zip(self.spots.iter()).zip(same) {
            let piece = self.pieces.get(spot.piece as usize);
            let is_broken = is_broken.get(spot.piece as usize).copied().unwrap_or_default();
            spots.push(match (same, piece) {
                (Some((there, piece)), _) => Spot { piece: held.number(piece), ..*there },
                (None, Some(piece)) if !is_broken => Spot { piece: held.number(piece), ..*spot },
                _ => {
                    rest.push(section.bytes(), section.checksum());
                    of_rest.push(spots.len());
                    *spot
                }
            });
        }
        let rest = rest.finish();
        let first = held.pieces.len() as u32;
        for (index, spot) in of_rest.into_iter().zip(rest.spots.iter()) {
            if let Some(to) = spots.get_mut(index) {
                *to = Spot { piece: spot.piece + first, ..*spot };
            }
        }
        held.pieces.extend(rest.pieces.iter().cloned());
        *self = Self { pieces: held.pieces.into(), spots: spots.into() };
        shared_bytes
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// Pieces, each once.
#[derive(Default)]
struct Held {
    pieces: Vec<Arc<[u8]>>,
    numbers: HashMap<*const u8, u32>,
}

impl Held {
    fn number(&mut self, piece: &Arc<[u8]>) -> u32 {
        *self.numbers.entry(piece.as_ptr()).or_insert_with(|| {
            self.pieces.push(Arc::clone(piece));
            self.pieces.len() as u32 - 1
        })
    }
}

/// Concatenates sections.
#[derive(Debug, Default)]
pub(crate) struct KeptWriter {
    pieces: Vec<Arc<[u8]>>,
    spots: Vec<Spot>,
    /// The current piece, to which sections are appended.
    open: Vec<u8>,
}

impl KeptWriter {
    pub(crate) const fn len(&self) -> usize {
        self.spots.len()
    }

    /// Appends a section.
    pub(crate) fn push(&mut self, bytes: &[u8], checksum: u32) {
        if !self.open.is_empty() && self.open.len() + bytes.len() > PIECE_BYTES {
            self.close();
        }
        let (piece, offset) = (self.pieces.len() as u32, self.open.len() as u16);
        let len = if bytes.len() > PIECE_BYTES { 0 } else { bytes.len() as u16 };
        self.open.extend_from_slice(bytes);
        self.spots.push(Spot { piece, checksum, offset, len });
    }

    pub(crate) fn get(&self, index: usize) -> Option<KeptSection<'_>> {
        let spot = self.spots.get(index)?;
        spot.in_piece(self.pieces.get(spot.piece as usize).map_or(&self.open[..], |piece| piece))
    }

    pub(crate) fn finish(mut self) -> Kept {
        if !self.open.is_empty() {
            self.close();
        }
        Kept { pieces: self.pieces.into(), spots: self.spots.into() }
    }

    fn close(&mut self) {
        self.pieces.push(self.open.as_slice().into());
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section that differs from those with other numbers.
    fn section(number: usize, len: usize) -> Vec<u8> {
        (0..len).map(|at| (number * 31 + at / 7) as u8).collect()
    }

    fn kept(numbers: impl IntoIterator<Item = usize>, len: usize) -> Kept {
        let mut writer = KeptWriter::default();
        for number in numbers {
            let bytes = section(number, len);
            writer.push(&bytes, number as u32);
            assert_eq!(writer.get(writer.len() - 1), Some(KeptSection::new(&bytes, number as u32)));
        }
        writer.finish()
    }

    #[test]
    fn sections_come_out_as_they_went_in_whatever_their_length() {
        for len in [1, 700, PIECE_BYTES, PIECE_BYTES + 1] {
            let all = kept(0..100, len);
            for (number, found) in all.iter().enumerate() {
                assert_eq!((found.bytes(), found.checksum()), (&section(number, len)[..], number as u32));
            }
            assert_eq!((all.len(), all.get(100)), (100, None));
            // The memory in addition to the bytes.
            let beside = all.memory_bytes() - 100 * len;
            assert!(beside <= 100 * (12 + 32) + 32, "{beside}");
        }
    }

    #[test]
    fn what_others_hold_is_taken_from_there_and_nothing_is_lost() {
        let first = kept(0..200, 900);
        let mut second =
            kept((0..200).map(|number| if number % 10 == 3 { number + 40 } else { number }), 900);
        let copy = second.clone();
        let alone = second.memory_bytes();
        assert_eq!(second.share_with(&first), 196 * 900, "but for 203, 213, 223 and 233");
        assert!(second == copy);
        let own: usize = second
            .pieces
            .iter()
            .filter(|piece| !first.pieces.iter().any(|theirs| Arc::ptr_eq(piece, theirs)))
            .map(|piece| piece.len())
            .sum();
        assert_eq!(own, 4 * 900, "nothing is held twice");
        let beside = second.memory_bytes() - second.shared_bytes(&first);
        assert!((own..own + 200 * 16 + 32 * 16).contains(&beside), "{beside}");
        assert!(alone > 196 * 900);
        assert_eq!(second.share_with(&first), 0, "it is shared already");
        assert!(second == copy);

        // The second snapshot shares sections with the first, so the third shares them with the first as well.
        let mut third = kept(0..210, 900);
        assert_eq!(third.share_with(&second), 197 * 900, "what the second has");
        assert!(third == kept(0..210, 900));
    }
}
