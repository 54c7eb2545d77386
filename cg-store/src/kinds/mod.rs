//! The kinds of values that a transaction writes; and the rows of what a world stores besides chunks: entities,
//! properties, settings, objects, records, snapshots, the opacity map.

pub(crate) mod entity;
pub mod kind;
pub(crate) mod object;
pub(crate) mod opacity;
pub(crate) mod property;
pub(crate) mod record;
pub(crate) mod settings;
pub(crate) mod snapshots;
