//! The storage of a world: its engine, its directory and own rows, options, limits and errors.

pub(crate) mod apply_latch;
pub(crate) mod change_log;
#[cfg(feature = "rocks")]
pub(crate) mod claim;
pub(crate) mod copy_mark;
pub mod directory;
pub(crate) mod engine_cell;
pub(crate) mod error;
pub(crate) mod history;
pub(crate) mod location;
pub(crate) mod meta;
pub(crate) mod meta_view;
pub(crate) mod object_key;
pub(crate) mod opacity_map;
pub(crate) mod options;
pub(crate) mod reading;
pub(crate) mod recent_puts;
pub(crate) mod record_area;
pub(crate) mod record_settings;
pub(crate) mod record_shape;
pub(crate) mod recovery;
pub(crate) mod registry;
pub(crate) mod resources;
pub(crate) mod shared;
pub(crate) mod staged;
pub(crate) mod value_check;
