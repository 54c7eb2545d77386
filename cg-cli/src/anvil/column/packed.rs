//! Palette indices packed into 64-bit words.

use super::{CELLS, Fault};
use crate::anvil::nbt::Longs;

/// How indices lie in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// One after the other; an index may begin in one word and end in the next (until 20w16a).
    Spanning,
    /// As many as fit whole in each word, the rest of it zero (since 20w17a).
    Padded,
}

/// Bits of an index into a palette of this many entries: at least 4, as in every version.
pub(crate) const fn bits_for(states: usize) -> u32 {
    let bits = usize::BITS - states.saturating_sub(1).leading_zeros();
    if bits < 4 { 4 } else { bits }
}

impl Packing {
    /// Words of 4,096 indices of 4 … 16 bits.
    pub(crate) const fn words(self, bits: u32) -> usize {
        match self {
            Self::Spanning => (CELLS * bits as usize).div_ceil(64),
            Self::Padded => CELLS.div_ceil((64 / bits) as usize),
        }
    }

    /// The indices of a section whose palette has this many entries, at most 65,536.
    pub(crate) fn unpack(self, words: Longs<'_>, states: usize) -> Result<Box<[u16; CELLS]>, Fault> {
        let bits = bits_for(states);
        let expected = self.words(bits);
        if words.len() != expected {
            return Err(Fault::IndicesLength { found: words.len(), expected, bits });
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
                Err(Fault::IndexPastPalette { cell: cell as u16, index, states })
            }
        }
    }

    /// The words of indices that all are below 2^bits.
    pub(crate) fn pack(self, indices: &[u16; CELLS], bits: u32) -> Vec<i64> {
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
