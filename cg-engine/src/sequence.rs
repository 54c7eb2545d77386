//! The numbers of commits.

use std::fmt;

/// The key, in [`Space::WorldMeta`](cg_format::Space::WorldMeta), of the row that holds the newest commit's sequence.
///
/// The row's payload is empty; the version in its frame is the sequence. Every commit writes the row last, so no
/// batch can set another value.
pub const COMMIT_SEQUENCE_KEY: &[u8] = b"commitSequence";

/// The number of a commit: strictly increasing over the life of a world, starting with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitSeq(u64);

impl CommitSeq {
    /// The number before the first commit.
    pub const NONE: Self = Self(0);

    /// The commit with this number.
    pub const fn new(seq: u64) -> Self {
        Self(seq)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The commit after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for CommitSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
