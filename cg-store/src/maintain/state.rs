//! The state of maintenance: its progress between two ticks, and what it recorded meanwhile.

use std::fmt;
use std::sync::{Arc, Weak};

use cg_tiering::GameTick;

use crate::commit::state::CommitState;
use crate::maintain::activity::Activity;
use crate::maintain::tick::Maintenance;
use crate::read::state::ReadState;
use crate::rt::durations::Stopwatch;
use crate::rt::weak_world::{WeakWorld, WorldUses};
use crate::storage::shared::Shared;

/// The state of maintenance.
pub(crate) struct MaintainState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) read: Arc<ReadState>,
    pub(crate) commit: Arc<CommitState>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) maintenance: Maintenance,
    pub(crate) ticks: Stopwatch,
    pub(crate) tick_excess: Stopwatch,
    /// For work on the pool, which does not keep the world open.
    pub(crate) weak_world: WeakWorld<Self>,
}

impl MaintainState {
    /// Creates a state in which nothing has begun. The clock continues at its stored value.
    pub(crate) fn new(
        commit: Arc<CommitState>,
        activity: Arc<Activity>,
        clock: GameTick,
        visits: &Arc<WorldUses>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            shared: Arc::clone(&commit.shared),
            read: Arc::clone(&commit.read),
            activity,
            maintenance: Maintenance::at(clock),
            ticks: Stopwatch::default(),
            tick_excess: Stopwatch::default(),
            weak_world: WeakWorld::new(this, visits),
            commit,
        })
    }
}

impl fmt::Debug for MaintainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
