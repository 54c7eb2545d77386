//! What a cache drops when another writer has committed: everything in cubes that changed.

use cg_format::{ClusterPos, Dimension};
use foldhash::{HashSet, HashSetExt as _};

use super::epoch::{Change, Slot};
use super::{ChunkCache, miss};

/// Commits of another writer that may have changed any place. Until the value is dropped, nothing that is loaded is
/// cached.
#[derive(Debug)]
pub(crate) struct AnnouncedAnywhere<'c> {
    cache: &'c ChunkCache,
    _change: Change<'c>,
}

impl ChunkCache {
    /// The 16³ cubes of which something is cached. Visits every entry.
    pub(crate) fn cubes(&self) -> HashSet<(Dimension, ClusterPos)> {
        let mut cubes = HashSet::new();
        cubes.extend(self.entries.iter().map(|(at, _)| miss::cube(at)));
        cubes.extend(self.absent.cubes());
        cubes
    }

    /// Announces commits of another writer. Threads forget the chunks and columns that they used recently.
    pub(crate) fn announce_anywhere(&self) -> AnnouncedAnywhere<'_> {
        let everywhere = (0..self.epochs.slots()).map(Slot).collect();
        AnnouncedAnywhere { cache: self, _change: self.epochs.begin_change(everywhere) }
    }
}

impl AnnouncedAnywhere<'_> {
    /// Forgets everything in some 16³ cubes.
    pub(crate) fn forget(&self, cubes: &HashSet<(Dimension, ClusterPos)>) {
        self.cache.entries.retain(|at, _| !cubes.contains(&miss::cube(*at)));
        self.cache.absent.forget_cubes(cubes);
    }
}
