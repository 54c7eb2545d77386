//! What a tick does: which cubes move, the moves, prefetch, tombstones.

pub(crate) mod forget;
pub(crate) mod move_tier;
pub(crate) mod prefetch;
pub(crate) mod tick;
pub(crate) mod tiering;
