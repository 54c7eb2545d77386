//! The stored section at each place of a snapshot. A place takes only as many bits as the number of stored sections
//! needs.

use std::sync::Arc;

/// The value for a section that was not readable.
pub(crate) const LOST: u32 = u32::MAX;

const WORD_BITS: usize = u64::BITS as usize;

/// By section, in the order of [`Region::sections`](crate::Region::sections): 0 if absent, [`LOST`], or one more than
/// the number of a stored section. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The numbers without gaps, lowest bit first. A number may cross the end of a word.
    words: Arc<[u64]>,
    bits: u32,
    count: usize,
    /// The encoding of [`LOST`]: one more than all other numbers.
    lost: u32,
}

impl Places {
    pub(crate) fn new(places: &[u32]) -> Self {
        let most = places.iter().copied().filter(|place| *place != LOST).max().unwrap_or_default();
        let lost = most + 1;
        let bits = u32::BITS - lost.leading_zeros();
        let mut words = vec![0_u64; (places.len() * bits as usize).div_ceil(WORD_BITS)];
        for (index, place) in places.iter().enumerate() {
            let number = u64::from(if *place == LOST { lost } else { *place });
            let (word, shift) = spot(index, bits);
            if let Some(word) = words.get_mut(word) {
                *word |= number << shift;
            }
            // The bits that do not fit into a word continue in the next.
            if let Some(next) = words.get_mut(word + 1)
                && shift + bits as usize > WORD_BITS
            {
                *next |= number >> (WORD_BITS - shift);
            }
        }
        Self { words: words.into(), bits, count: places.len(), lost }
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        if index >= self.count {
            return None;
        }
        let (word, shift) = spot(index, self.bits);
        let mut number = self.words.get(word)? >> shift;
        if shift + self.bits as usize > WORD_BITS {
            number |= self.words.get(word + 1)? << (WORD_BITS - shift);
        }
        let number = (number & ((1 << self.bits) - 1)) as u32;
        Some(if number == self.lost { LOST } else { number })
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or(LOST))
    }

    /// The memory that it takes in addition to this value.
    pub(crate) fn memory_bytes(&self) -> usize {
        2 * size_of::<usize>() + size_of_val(&*self.words)
    }
}

/// The word in which a number begins, and its first bit there.
const fn spot(index: usize, bits: u32) -> (usize, usize) {
    let at = index * bits as usize;
    (at / WORD_BITS, at % WORD_BITS)
}

impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_come_out_as_they_went_in_in_as_few_bits_as_they_need(
            bits in 0..32_u32,
            seeds in prop::collection::vec(any::<u32>(), 0..300),
        ) {
            let most = (1_u32 << bits) - 1;
            let place = |seed: &u32| if seed.is_multiple_of(5) { LOST } else { seed % most.max(1) };
            let places: Vec<u32> = seeds.iter().map(place).collect();
            let kept = Places::new(&places);
            prop_assert_eq!(kept.iter().collect::<Vec<_>>(), &places[..]);
            prop_assert_eq!((kept.len(), kept.get(places.len())), (places.len(), None));
            let words = (places.len() * bits.max(1) as usize).div_ceil(WORD_BITS);
            prop_assert!(kept.memory_bytes() <= 16 + 8 * words);
        }
    }

    #[test]
    fn how_many_bits_they_take_makes_no_difference() {
        let [few, many] = [&[0, 1, LOST][..], &[0, 1, LOST, 1 << 24]].map(Places::new);
        assert_eq!((few.memory_bytes(), few.bits), (16 + 8, 2));
        assert_eq!((many.memory_bytes(), many.bits), (16 + 16, 25));
        assert!(many.iter().take(3).eq(few.iter()) && few != many);
    }
}
