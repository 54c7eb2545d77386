//! Who learns of a commit, and at which stage.
//!
//! | stage | who |
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

/// What rows were put that maintenance has to look at later.
#[derive(Debug)]
pub(crate) struct PutRows {
    /// The hot rows, by cube.
    pub(crate) hot: Vec<(CubeAt, Puts)>,
    /// The tiles of the opacity map that got patches, and how many each.
    pub(crate) patched: BTreeMap<TileKey, u32>,
}

impl PutRows {
    pub(crate) fn of(batch: &Batch) -> Self {
        Self { hot: RecentPuts::of(batch), patched: patched_tiles(batch) }
    }
}

/// Maintenance, as commits know it.
pub(crate) trait CommitObserver: Send + Sync {
    /// Rows are in the engine.
    fn written(&self, rows: PutRows);

    /// A commit is about to be visible to readers.
    fn accepted(&self, changes: &Changes);

    /// The engine was opened again: some rows may be there that no call told of, and others not.
    fn reopened(&self);
}

impl CommitState {
    /// The rows of a commit are in the engine; `whole` are the chunks of which it put or deleted the row.
    pub(crate) fn tell_written(&self, seq: u64, rows: PutRows, whole: Vec<ChunkAt>) {
        self.read.deltas.wrote(seq);
        for at in whole {
            self.read.deltas.forget_up_to(at, seq);
        }
        self.observer.written(rows);
    }

    /// A commit is accepted: the cache shows it.
    pub(super) fn tell_accepted(&self, seq: u64, changes: &Changes, announced: &Announced<'_>) {
        self.observer.accepted(changes);
        for (at, change) in &changes.chunks {
            announced.publish(*at, change.stored_as(seq));
        }
    }
}
