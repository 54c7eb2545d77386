//! What a keeper does to worlds.

use clap::ValueEnum as _;

/// The work during which it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    /// A world is compacted.
    Compact,
    /// A segmented world is compacted.
    CompactSegments,
    /// A world is archived into a file.
    Archive,
    /// A world is made of an archive.
    Restore,
}

impl Work {
    /// The word for it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
