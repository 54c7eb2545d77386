//! Palette indices packed into 64-bit words.

use cg_snapshot::nbt::Longs;

use crate::section::CELLS;

/// How indices lie in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One after the other; an index may begin in one word and end in the next (until 20w16a).
    Spanning,
    /// As many as fit whole in each word, the rest of it zero (since 20w17a).
    Padded,
}

/// Why packed indices are not those of a section with its palette.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndicesError {
    /// Packed indices of another length than the palette asks for.
    #[error("its indices take {found} words where {bits} bits each take {expected}")]
    Length {
        /// 64-bit words that are there.
        found: usize,
        /// 64-bit words of 4,096 indices.
        expected: usize,
        /// Bits of an index.
        bits: u32,
    },
    /// An index without a palette entry.
    #[error("cell {cell} has index {index} past a palette of {states}")]
    PastPalette {
        /// The cell, y·256+z·16+x.
        cell: u16,
        /// Its index.
        index: u16,
        /// Entries of the palette.
        states: usize,
    },
}

/// Bits of an index into a palette of this many entries: at least 4, as in every version.
pub const fn bits_for(states: usize) -> u32 {
    let bits = usize::BITS - states.saturating_sub(1).leading_zeros();
    if bits < 4 { 4 } else { bits }
}

impl Packing {
    /// Words of 4,096 indices of 4 … 16 bits.
    pub const fn words(self, bits: u32) -> usize {
        match self {
            Self::Spanning => (CELLS * bits as usize).div_ceil(64),
            Self::Padded => CELLS.div_ceil((64 / bits) as usize),
        }
    }

    /// The indices of a section whose palette has this many entries, at most 65,536.
    ///
    /// # Errors
    /// [`IndicesError`].
    pub fn unpack(self, words: Longs<'_>, states: usize) -> Result<Box<[u16; CELLS]>, IndicesError> {
        let bits = bits_for(states);
        let expected = self.words(bits);
        if words.len() != expected {
            return Err(IndicesError::Length { found: words.len(), expected, bits });
        }
        let mut out: Box<[u16; CELLS]> = vec![0; CELLS].try_into().expect("the length is that of the array");
        let words = words.values().map(i64::cast_unsigned);
        match self {
            Self::Padded => unpack_padded(words, bits, &mut out[..]),
            Self::Spanning => unpack_spanning(words, bits, &mut out[..]),
        }
        match out.iter().position(|&index| usize::from(index) >= states) {
            None => Ok(out),
            Some(cell) => {
                let index = out.get(cell).copied().unwrap_or_default();
                Err(IndicesError::PastPalette { cell: cell as u16, index, states })
            }
        }
    }

    /// The words of indices that all are below 2^bits.
    pub fn pack(self, indices: &[u16; CELLS], bits: u32) -> Vec<i64> {
        let mut words = Vec::with_capacity(self.words(bits));
        let (mut held, mut held_bits) = (0u128, 0);
        for &index in indices {
            if self == Self::Padded && held_bits + bits > 64 {
                words.push(held as i64);
                (held, held_bits) = (0, 0);
            }
            held |= u128::from(index) << held_bits;
            held_bits += bits;
            if held_bits >= 64 {
                words.push(held as i64);
                held >>= 64;
                held_bits -= 64;
            }
        }
        if held_bits > 0 {
            words.push(held as i64);
        }
        words
    }
}

fn unpack_padded(words: impl Iterator<Item = u64>, bits: u32, out: &mut [u16]) {
    let mask = (1u64 << bits) - 1;
    for (mut word, cells) in words.zip(out.chunks_mut((64 / bits) as usize)) {
        for cell in cells {
            *cell = (word & mask) as u16;
            word >>= bits;
        }
    }
}

fn unpack_spanning(mut words: impl Iterator<Item = u64>, bits: u32, out: &mut [u16]) {
    let mask = (1u128 << bits) - 1;
    let (mut held, mut held_bits) = (0u128, 0);
    for cell in out {
        if held_bits < bits {
            held |= u128::from(words.next().unwrap_or(0)) << held_bits;
            held_bits += 64;
        }
        *cell = (held & mask) as u16;
        held >>= bits;
        held_bits -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_packings_are_as_the_wiki_has_them() {
        // 5 bits: 12 indices and 4 spare bits a word; or one after the other.
        let mut indices = [0; CELLS];
        for (cell, index) in indices.iter_mut().enumerate() {
            *index = (cell % 32) as u16;
        }
        let padded = Packing::Padded.pack(&indices, 5);
        let spanning = Packing::Spanning.pack(&indices, 5);
        assert_eq!((padded.len(), spanning.len()), (342, 320));
        assert_eq!(padded[1] & 31, 12);
        // The 13th index has its low four bits at the end of the first word, its high bit at the start of the second.
        assert_eq!((spanning[0].cast_unsigned() >> 60, spanning[1] & 1), (12, 0));
        assert_eq!(spanning[1] >> 1 & 31, 13);
    }
}
