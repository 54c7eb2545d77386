//! What is wrong with an archive.

use core::fmt;

use crate::DecodeError;

/// What is wrong with an archive, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Where the part begins whose checksum is valid and whose content is not: offsets of the error count from the start
    /// of its decompressed bytes. `None` if they count from the start of the archive.
    pub part_at: Option<u64>,
    /// The error.
    pub error: DecodeError,
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self { part_at: None, error }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part_at {
            Some(at) => write!(f, "in the part at byte {at}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl core::error::Error for Fault {}
