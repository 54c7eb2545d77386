//! When arenas are cleaned up, and what a tick of them did.

/// When the leases of arenas end, and what becomes of arenas that have no user. By default only rows of ended leases are
/// deleted; each of the others is off.
///
/// Ticks are those of the host's game time.
///
/// ```
/// use cg_layers::ArenaPolicy;
/// /// A match takes ten minutes at most, and its holder renews the lease if it takes longer.
/// const MATCHES: ArenaPolicy = ArenaPolicy {
///     end_after_ticks: Some(10 * 60 * 20),
///     reclaim_after_ticks: Some(2 * 60 * 20),
///     remove_after_ticks: None,
/// };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ArenaPolicy {
    /// Ticks after which a lease ends, since it was given or [renewed](crate::Overlay::renew).
    pub end_after_ticks: Option<u64>,
    /// Ticks after which a leased arena without a handle is reclaimed, since a tick first found it so. After a restart
    /// they begin anew: the host may [resume](crate::Arenas::resume) it.
    pub reclaim_after_ticks: Option<u64>,
    /// Ticks after which a free arena is removed, since it became free.
    pub remove_after_ticks: Option<u64>,
}

/// What a tick of arenas did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArenaReport {
    /// Leases that ended by [`end_after_ticks`](ArenaPolicy::end_after_ticks).
    pub ended: u32,
    /// Arenas that were reclaimed by [`reclaim_after_ticks`](ArenaPolicy::reclaim_after_ticks).
    pub reclaimed: u32,
    /// Arenas that are due and stay, because a merge of them began and did not end: the base may have a part of it.
    /// [`Overlay::merge_into`](crate::Overlay::merge_into) continues it, and
    /// [`release`](crate::Overlay::release), [`reset`](crate::Overlay::reset) or
    /// [`Arenas::reclaim`](crate::Arenas::reclaim) discards the rest.
    pub kept_for_merge: u32,
    /// Arenas that were removed by [`remove_after_ticks`](ArenaPolicy::remove_after_ticks).
    pub removed: u32,
    /// Rows of expired leases that were deleted.
    pub rows_swept: u64,
    /// Whether known work was left: the budget was over, or a transaction, a reset or a merge ran in an arena that is due.
    /// What is [kept for a merge](Self::kept_for_merge) is not included.
    pub work_left: bool,
}
