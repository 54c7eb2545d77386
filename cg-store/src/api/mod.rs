//! The API of a world for hosts: opening, handles, metrics.

pub(crate) mod admin;
pub(crate) mod bind;
pub(crate) mod builder;
pub(crate) mod cache;
pub(crate) mod chunks;
mod copies;
#[cfg(feature = "rocks")]
pub(crate) mod disk;
pub(crate) mod guards;
pub(crate) mod metrics;
pub(crate) mod objects;
pub(crate) mod opacity;
mod over;
pub mod prelude;
pub(crate) mod read_view;
pub(crate) mod records;
pub(crate) mod registry;
pub(crate) mod rooms;
mod settings;
pub(crate) mod snapshots;
pub(crate) mod source;
pub(crate) mod tiers;
pub(crate) mod topics;
pub(crate) mod transactions;
pub(crate) mod world;
