//! The memory budget of a decoder.

use crate::{DecodeError, Problem, Section};

/// A budget of memory for decoding, so that no input costs more than the caller allows.
///
/// Decoders of plain values allocate at most a small multiple of their input and need no budget. Those that decompress
/// charge the stated length before they allocate it.
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

    /// The remaining bytes.
    pub const fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Charges bytes before they are allocated.
    ///
    /// # Errors
    /// [`Problem::LimitExceeded`] if fewer are left; then nothing is charged.
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
    /// 256 MiB: the largest L2 cluster that is written, decompressed.
    fn default() -> Self {
        Self::new(256 << 20)
    }
}
