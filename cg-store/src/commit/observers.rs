//! Which parts of the store are told of a commit, and at which stage.
//!
//! | stage | told |
//! |---|---|
//! | before it is accepted | the cache: places are announced, so that no load that began before can keep what it read |
//! | before it is written | the index of deltas: a load that finds no delta there reads the row alone |
//! | written to the engine | the index of deltas, and maintenance: rows to move, tiles to fold |
//! | visible to readers | maintenance: accesses and the trace; the cache; then the commit log publishes it |

use std::collections::BTreeMap;

use cg_format::ChunkAt;
use cg_tiering::CubeAt;

use crate::commit::state::CommitState;
use crate::commit::transaction::Changes;
use crate::engine::Batch;
use crate::kinds::opacity::{TileKey, patched_tiles};
use crate::read::cache::Announced;
use crate::storage::recent_puts::{Puts, RecentPuts};

/// The rows of a commit that maintenance must visit later.
#[derive(Debug)]
pub(crate) struct PutRows {
    /// The hot rows, by cube.
    pub(crate) hot: Vec<(CubeAt, Puts)>,
    /// The tiles of the opacity map that got patches, with the number of patches.
    pub(crate) patched: BTreeMap<TileKey, u32>,
}

impl PutRows {
    pub(crate) fn of(batch: &Batch) -> Self {
        Self { hot: RecentPuts::of(batch), patched: patched_tiles(batch) }
    }
}

/// Maintenance, as commits see it.
pub(crate) trait CommitObserver: Send + Sync {
    /// Called when rows are in the engine.
    fn written(&self, rows: PutRows);

    /// Called when a commit is about to become visible to readers.
    fn accepted(&self, changes: &Changes);

    /// Called when the engine was opened again: rows may exist that no call reported, and reported rows may be missing.
    fn reopened(&self);
}

impl CommitState {
    /// Reports that the rows of a commit are in the engine. `whole` are the chunks whose own row it put or deleted.
    pub(crate) fn tell_written(&self, seq: u64, rows: PutRows, whole: Vec<ChunkAt>) {
        self.read.deltas.wrote(seq);
        for at in whole {
            self.read.deltas.forget_up_to(at, seq);
        }
        self.observer.written(rows);
    }

    /// Reports that a commit is accepted, and puts its chunks into the cache.
    pub(super) fn tell_accepted(&self, seq: u64, changes: &Changes, announced: &Announced<'_>) {
        self.observer.accepted(changes);
        for (at, change) in &changes.chunks {
            announced.publish(*at, change.stored_as(seq));
        }
    }
}
