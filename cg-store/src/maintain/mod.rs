//! Maintenance in ticks: selecting cubes, moves, folding, prefetch, tombstones.

pub(crate) mod activity;
pub(crate) mod delta;
pub(crate) mod move_tier;
pub(crate) mod opacity;
pub(crate) mod prefetch;
pub(crate) mod state;
pub(crate) mod tick;
pub(crate) mod tiering;
pub(crate) mod tombstones;
