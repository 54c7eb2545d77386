//! The opacity map in maintenance: patches are folded into tiles, and tiles are drawn again.

mod background;
mod drawing;
mod fold;
mod parts;
mod rebuild;
mod unfolded;

pub(crate) use background::TileBehind;
pub(crate) use drawing::Drawing;
use fold::Folding;
pub(crate) use parts::{Column, Part, each_part};
pub(crate) use unfolded::Unfolded;
