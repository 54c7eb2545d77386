//! The place that sweeps of expired leases have reached.

/// How far ticks have swept.
#[derive(Debug, Default)]
pub(super) struct Sweeping {
    /// Where the pass over all families goes on, and how many leases had expired when it began.
    pub(super) pass: Option<(Place, u64)>,
    /// How many leases had expired when the last pass began that has ended.
    pub(super) done: u64,
}

/// A place in a pass: the index of a family, and the first lease of it that was not looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) family: usize,
    pub(super) lease: u64,
}
