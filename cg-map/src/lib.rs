#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod colour;
mod extent;
mod font;
mod image;
mod legend;
mod map;
mod render;
mod seen;
mod sight;
mod strip;
mod surface;

pub use colour::{Paint, paint_of};
pub use image::Image;
pub use map::{Colours, MAX_SIDE_PX, Map, MapError, MapOptions, SurfaceBlock, TierColumns};
pub use render::render;
