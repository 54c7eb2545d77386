//! The deeds during which a call fails: each is one run of a worker, of an importer, or of a keeper.

use clap::ValueEnum as _;

use crate::keeper::Work;
use crate::worker::Level;

/// One deed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Deed {
    /// A world is made.
    Create,
    /// A world is opened and closed.
    Open,
    /// Commits at `Safe`.
    Safe,
    /// Commits at `Process`.
    Process,
    /// Commits at `Balanced`.
    Balanced,
    /// Commits at `Fast`.
    Fast,
    /// Commits of all kinds, then a flush.
    Flush,
    /// Commits of all kinds, then every chunk goes to its coldest tier.
    Demote,
    /// Chunks are deleted as `cg prune` does it, then everything is flushed.
    Prune,
    /// Commits of all kinds, and a checkpoint.
    Checkpoint,
    /// Commits of all kinds, and the world is resumed when one fails.
    Resume,
    /// A save is imported into a new world.
    Import,
    /// A running world is compacted in slices.
    Compact,
    /// A world is archived into a file beside it.
    Archive,
    /// A world is made of an archive beside it.
    Restore,
}

impl Deed {
    /// The word for it.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The work of a keeper that it is.
    pub(crate) const fn work(self) -> Option<Work> {
        match self {
            Self::Compact => Some(Work::Compact),
            Self::Archive => Some(Work::Archive),
            Self::Restore => Some(Work::Restore),
            _ => None,
        }
    }

    /// The level of each of its commits, if it is not the commit's own.
    pub(crate) const fn level(self) -> Option<Level> {
        match self {
            Self::Safe => Some(Level::Safe),
            Self::Process | Self::Prune => Some(Level::Process),
            Self::Balanced => Some(Level::Balanced),
            Self::Fast => Some(Level::Fast),
            _ => None,
        }
    }

    /// The orders of its worker on a world of that many steps. Checkpoints go into the directory.
    pub(crate) fn orders(self, steps: u64, dir: &str) -> Vec<String> {
        let until = |more: u64| vec!["--until".to_owned(), (steps + more).to_string(), "--close".to_owned()];
        let with = |more: u64, extra: &[&str]| {
            let mut orders = until(more);
            orders.extend(extra.iter().map(|word| (*word).to_owned()));
            orders
        };
        match self {
            Self::Create => vec!["--create".to_owned()],
            Self::Open => until(0),
            Self::Safe => with(6, &["--as", "safe"]),
            Self::Process => with(6, &["--as", "process"]),
            Self::Balanced => with(6, &["--as", "balanced"]),
            Self::Fast => with(6, &["--as", "fast"]),
            Self::Flush => with(4, &["--flush"]),
            Self::Demote => with(4, &["--demote"]),
            Self::Prune => with(8, &["--flush", "--prune-from", &steps.to_string()]),
            Self::Checkpoint => with(8, &["--copies", dir]),
            Self::Resume => with(8, &["--resume"]),
            Self::Import | Self::Compact | Self::Archive | Self::Restore => Vec::new(),
        }
    }
}
