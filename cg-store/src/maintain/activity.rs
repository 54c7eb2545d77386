//! Records of reads and commits, by which maintenance decides later.

use std::sync::Arc;

use cg_format::{ChunkAt, Lookup};

use crate::commit::transaction::Changes;
use crate::commit::write::{CommitObserver, PutRows};
use crate::kinds::opacity::TileKey;
use crate::maintain::opacity::DirtyTiles;
use crate::maintain::prefetch::Prefetch;
use crate::maintain::tiering::Tiering;
use crate::read::cache::Stored;
use crate::read::state::ReadObserver;
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;
use crate::storage::shared::Shared;

/// Accesses, players and rows since the last tick.
pub(crate) struct Activity {
    shared: Arc<Shared>,
    pub(crate) tiering: Tiering,
    /// `None` if nothing is prefetched.
    pub(crate) prefetch: Option<Prefetch>,
    pub(crate) dirty_tiles: Mutex<DirtyTiles, rank::DirtyTiles>,
}

impl Activity {
    /// `patched` are the tiles of the opacity map that have patches, if they are known.
    pub(crate) fn new(shared: &Arc<Shared>, tiering: Tiering, patched: Option<Vec<TileKey>>) -> Self {
        Self {
            prefetch: shared.options.prefetch.as_ref().map(Prefetch::new),
            shared: Arc::clone(shared),
            tiering,
            dirty_tiles: Mutex::new(DirtyTiles::new(patched)),
        }
    }
}

impl ReadObserver for Activity {
    fn asked(&self, at: ChunkAt, in_memory: bool) {
        if let Some(prefetch) = &self.prefetch {
            prefetch.asked(at, in_memory, &self.shared.counters);
        }
    }

    fn missed(&self, at: &[ChunkAt]) {
        self.tiering.touch(at.iter().copied());
    }

    fn loaded(&self, at: ChunkAt, found: &Result<Lookup<Stored>, Error>) {
        match found {
            Ok(Lookup::Found(stored)) => self.tiering.recorder.loaded(at, Some(&stored.chunk)),
            Ok(Lookup::Tombstone | Lookup::NotFound) => self.tiering.recorder.loaded(at, None),
            Err(_) => {}
        }
    }
}

impl CommitObserver for Activity {
    fn written(&self, rows: PutRows) {
        self.tiering.wrote(rows.hot);
        if !rows.patched.is_empty() {
            self.dirty_tiles.lock().add(rows.patched);
        }
    }

    fn accepted(&self, changes: &Changes) {
        self.tiering.touch(changes.chunks.iter().map(|(at, _)| *at));
        for (at, change) in &changes.chunks {
            self.tiering.recorder.saved(*at, change.new.as_deref());
        }
    }

    fn reopened(&self) {
        if self.shared.map.gets_patches() {
            self.dirty_tiles.lock().begin_again();
        }
        self.tiering.lose_track_of_writes();
    }
}
