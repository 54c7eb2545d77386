//! The kinds of values, as an overlay stores them: one row for each key of a lease, and for chunks their ancestors.

mod chunks;
mod entities;
mod objects;
mod overlay_kind;
mod properties;
mod records;

pub(crate) use overlay_kind::{Edit, OverlayKind, Rows, value_of};
