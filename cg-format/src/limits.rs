//! What a decoder may allocate, spent as it goes.

use crate::{DecodeError, Problem, Section};

/// A budget of memory for decoding, so that no input costs more than the caller allows.
///
/// Decoders of plain values allocate at most a small multiple of their input and take no budget. Those that
/// decompress spend the promised length here before they allocate it.
///
/// ```
/// use cg_format::{Limits, Section};
/// let mut limits = Limits::new(100);
/// assert!(limits.spend(Section::ClusterGroup, 8, "group", 60).is_ok());
/// assert!(limits.spend(Section::ClusterGroup, 8, "group", 60).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    left_bytes: u64,
}

impl Limits {
    /// A budget in bytes.
    pub const fn new(memory_bytes: u64) -> Self {
        Self { left_bytes: memory_bytes }
    }

    /// What is left.
    pub const fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Takes bytes from the budget before they are allocated.
    ///
    /// # Errors
    /// [`Problem::LimitExceeded`] if less than that is left; nothing is taken then.
    pub const fn spend(
        &mut self,
        section: Section,
        offset_bytes: u64,
        field: &'static str,
        needed: u64,
    ) -> Result<(), DecodeError> {
        if needed > self.left_bytes {
            let problem = Problem::LimitExceeded { field, needed, left: self.left_bytes };
            return Err(DecodeError::new(section, offset_bytes, problem));
        }
        self.left_bytes -= needed;
        Ok(())
    }
}

impl Default for Limits {
    /// 256 MiB: a full L2 cluster of the largest size that is formed, decompressed.
    fn default() -> Self {
        Self::new(256 << 20)
    }
}
