//! The engine as the world holds it, its directory and own rows, options, limits and errors.

#[cfg(feature = "rocks")]
pub(crate) mod claim;
pub mod directory;
pub(crate) mod durability;
pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod lease;
pub(crate) mod meta;
pub(crate) mod object_key;
pub(crate) mod options;
pub(crate) mod record_shape;
pub(crate) mod registry;
pub(crate) mod resources;
pub(crate) mod shared;
pub(crate) mod staged;
pub(crate) mod unfinished;
pub(crate) mod written;
