//! Commits of submitted batches, which are durable only when the places of their keys are.
//!
//! Segment and root are synced separately. In a world whose commits are not synced, a segment may have synced a value before
//! the root has synced its place, and a power cut then leaves a value that the root does not know.

use std::sync::Arc;

use cg_store::engine::{CommitSeq, Level};
use cg_store::layer::{KeepsCommits, batch};
use cg_store::{Committed, Durable, Error};

/// A commit of a segment, and the newest commit of the root when it was accepted.
#[derive(Debug)]
struct PlacedCommit {
    values: Durable,
    places: Durable,
}

/// The commit of a batch in its segment. `places`: of the root, if these are not synced.
pub(super) fn with_places(committed: Committed<()>, places: Option<Durable>) -> Committed<()> {
    match places {
        Some(places) => {
            let values = committed.durable();
            batch::committed(Arc::new(PlacedCommit { values, places }), committed.seq)
        }
        None => committed,
    }
}

impl KeepsCommits for PlacedCommit {
    fn has_reached(&self, _: CommitSeq, level: Level) -> bool {
        self.places.has_reached(level) && self.values.has_reached(level)
    }

    /// The places first: one without its value means nothing.
    fn wait_for(&self, _: CommitSeq, level: Level) -> Result<(), Error> {
        self.places.wait_for(level)?;
        self.values.wait_for(level)
    }
}
