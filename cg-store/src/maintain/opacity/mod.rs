//! Maintenance of the opacity map: patches are folded into tiles, and tiles are rebuilt.

mod background_fold;
mod dirty_tiles;
mod drawing;
mod fold;
mod parts;
mod rebuild;

pub(crate) use background_fold::BackgroundFold;
pub(crate) use dirty_tiles::DirtyTiles;
pub(crate) use drawing::Drawing;
use fold::Folding;
pub(crate) use parts::{Column, Part, each_part};
