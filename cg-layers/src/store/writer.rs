//! The rows of a commit, as they are encoded.

use cg_format::overlay::Origin;
use cg_store::engine::Batch;

use super::state::Store;

/// Encodes the rows of a commit.
pub(crate) struct RowWriter<'s, S> {
    pub(super) store: &'s Store<S>,
    pub(super) lease: u64,
    /// The schema generation of the names by which values are encoded.
    pub(super) generation: u32,
    pub(super) batch: Batch,
    /// For each chunk the origin in the base, if its row is a delta.
    pub(super) over: Vec<Option<Origin>>,
    /// How many rows of ancestors were written or deleted.
    pub(super) ancestors: u64,
}

impl<'s, S> RowWriter<'s, S> {
    pub(super) fn new(store: &'s Store<S>, lease: u64, generation: u32) -> Self {
        Self { store, lease, generation, batch: Batch::new(), over: Vec::new(), ancestors: 0 }
    }
}
