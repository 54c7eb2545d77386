//! The verdict on a damaged world.

/// The verdict of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The world did not open.
    OpenError,
    /// It opened, something could not be read, and everything else was right.
    ReadError,
    /// Everything was there and right.
    Harmless,
    /// Whole steps at the end were missing, none of them reported as synced.
    Tail,
    /// Something was missing or old, without an error.
    Lost,
    /// Something was read that was never written.
    Wrong,
    /// The reader panicked.
    Panic,
    /// The reader's process died.
    Crash,
    /// The reader did not end.
    Hang,
}

impl Verdict {
    /// Whether the promise was kept.
    pub(crate) const fn is_kept(self) -> bool {
        matches!(self, Self::OpenError | Self::ReadError | Self::Harmless | Self::Tail)
    }
}
