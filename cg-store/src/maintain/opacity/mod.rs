//! Maintenance of the opacity map: it is begun and ended, patches are folded into tiles, and tiles are rebuilt.

mod dirty_tiles;
mod drawing;
mod fold;
mod keep;
mod parts;
mod rebuild;
mod unfolded;

pub(crate) use dirty_tiles::DirtyTiles;
pub(crate) use drawing::Drawing;
pub(crate) use fold::TileFold;
pub(crate) use parts::{Column, Part, each_part};
pub(crate) use unfolded::{is_rewritten_at_close, tiles_at_open};
