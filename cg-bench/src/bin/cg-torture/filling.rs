//! The content of what a world keeps as mere bytes.

use crate::rng::Rng;

/// Bytes that a seed and a length stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filling {
    /// Where they come from.
    pub(crate) seed: u64,
    /// How many there are.
    pub(crate) len_bytes: u32,
}

impl Filling {
    /// The bytes.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut rng = Rng::new(self.seed);
        let mut bytes: Vec<u8> =
            (0..self.len_bytes.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).collect();
        bytes.truncate(self.len_bytes as usize);
        bytes
    }
}
