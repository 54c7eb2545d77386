//! Numbers from a seed: `SplitMix64`, the same on every machine.

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to below `count`. Some values are slightly more frequent, which does not matter here.
    pub(super) const fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    /// A number from `-reach` to `reach`.
    pub(super) const fn around(&mut self, reach: i64) -> i64 {
        self.below(reach as u64 * 2 + 1) as i64 - reach
    }
}

/// Mixes the bits of a number.
pub(super) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
