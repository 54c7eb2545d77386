//! Verification, counts, hashes and quarantine.

pub(crate) mod archive;
pub(crate) mod census;
pub(crate) mod changes;
pub(crate) mod copy;
pub(crate) mod hash;
pub(crate) mod load;
pub(crate) mod quarantine;
pub(crate) mod values;
pub(crate) mod verify;

use std::sync::Arc;

use crate::commit::state::CommitState;
use crate::maintain::state::MaintainState;
use crate::read::state::ReadState;
use crate::storage::shared::Shared;

/// The lower rooms, for operations on the rows of a whole world.
#[derive(Clone, Copy)]
pub(crate) struct Admin<'w> {
    shared: &'w Arc<Shared>,
    read: &'w Arc<ReadState>,
    commit: &'w Arc<CommitState>,
    maintain: &'w Arc<MaintainState>,
}

impl<'w> Admin<'w> {
    pub(crate) fn new(maintain: &'w Arc<MaintainState>) -> Self {
        let MaintainState { shared, read, commit, .. } = &**maintain;
        Self { shared, read, commit, maintain }
    }
}
