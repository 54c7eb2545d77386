//! The world as a host sees it: opening, handles, metrics.

pub(crate) mod bind;
#[cfg(feature = "rocks")]
pub(crate) mod disk;
pub(crate) mod handle;
pub(crate) mod metrics;
pub mod prelude;
pub(crate) mod world;
