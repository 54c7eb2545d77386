//! A fast hash for maps keyed by cubes. Every access of a chunk does such a lookup.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::CubeAt;

/// A map keyed by cubes. Its order is unspecified.
pub(crate) type CubeMap<V> = HashMap<CubeAt, V, BuildHasherDefault<CubeHasher>>;

/// Multiplies and folds each coordinate.
///
/// It does not resist keys that are chosen to collide. Cubes cannot be chosen freely: each is a place where chunks are
/// loaded. Loading costs more than any search among equal hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CubeHasher(u64);

impl Hasher for CubeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product =
            u128::from(self.0.rotate_left(23) ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::Dimension;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_fall_into_different_places() {
        let build = BuildHasherDefault::<CubeHasher>::default();
        let (mut low, mut high) = (HashSet::new(), HashSet::new());
        for x in -16..16 {
            for y in -16..16 {
                for z in -16..16 {
                    let hash = build.hash_one(CubeAt::within(Dimension::new(0), [x, y, z]));
                    low.insert(hash as u16);
                    high.insert(hash >> 48);
                }
            }
        }
        // 32,768 balls thrown at random into 65,536 bins fill 25,786 of them.
        assert!(low.len() > 25_000 && high.len() > 25_000, "{} and {}", low.len(), high.len());
    }

    /// A table finds a cube by the low bits of its hash. If they were those of the coordinates, every cube of this test
    /// would be in the same place, and a search among them would pass half of the others.
    #[test]
    fn a_million_cubes_that_share_their_low_bits_fall_into_different_places() {
        const PLACES: usize = 1 << 20;
        let build = BuildHasherDefault::<CubeHasher>::default();
        let (mut cubes, mut filled) = (vec![0_u32; PLACES], 0);
        for n in 0..1_000_000_i64 {
            let pos = [n % 100, n / 100 % 100, n / 10_000].map(|coordinate| coordinate << 40);
            let hash = build.hash_one(CubeAt::within(Dimension::new(0), pos));
            let here = &mut cubes[hash as usize % PLACES];
            filled += usize::from(*here == 0);
            *here += 1;
        }
        // A million balls thrown at random into these places fill 644,527 of them, and hardly ever put twelve into one.
        let most = cubes.iter().max().copied().unwrap_or_default();
        assert!(filled > 640_000 && most < 16, "{filled} places, one with {most}");
    }
}
