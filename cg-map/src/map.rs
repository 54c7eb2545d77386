//! What a map is asked for, and what it is.

use cg_format::{BlockArea, Dimension, Tier};

use crate::image::Image;

/// The longest side of a map whose scale is chosen here, in pixels.
pub const MAX_SIDE_PX: u64 = 4096;

/// Choices of a map.
#[derive(Debug, Clone)]
pub struct MapOptions {
    /// The dimension.
    pub dimension: Dimension,
    /// The blocks to draw; of everything, all columns of blocks that show something. What is above a box and in no other one
    /// is not drawn, which shows caves.
    pub area: BlockArea,
    /// Blocks per pixel, a power of two; `None` for the smallest that keeps the map within [`MAX_SIDE_PX`].
    pub scale_blocks: Option<u32>,
    /// Whether title, scale bar and the meaning of the colours are drawn below the map.
    pub legend: bool,
    /// Meaning of the colours.
    pub colours: Colours,
}

/// Meaning of the colours of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// Block that the ground is made of.
    #[default]
    Blocks,
    /// In which tier the chunk lies whose ground is seen.
    Tiers,
}

impl MapOptions {
    /// All that is stored of a dimension, with a legend.
    pub fn of(dimension: Dimension) -> Self {
        let area = BlockArea::everywhere();
        Self { dimension, area, scale_blocks: None, legend: true, colours: Colours::Blocks }
    }
}

/// A finished map.
#[derive(Debug, Clone)]
pub struct Map {
    /// The picture, legend included.
    pub image: Image,
    /// The westernmost and northernmost block drawn, as x and z.
    pub min: [i64; 2],
    /// The easternmost and southernmost block drawn, as x and z.
    pub max: [i64; 2],
    /// Blocks per pixel.
    pub scale_blocks: u32,
    /// Pixels per block, for maps of small areas; 1 if several blocks share a pixel.
    pub zoom_px: u32,
    /// Blocks that the ground is made of, most frequent first; states of one block count together.
    pub surface: Vec<SurfaceBlock>,
    /// In which tiers the chunks lie that are seen, the hottest first; empty if the colours do not say it.
    pub tiers: Vec<TierColumns>,
    /// Chunks and clusters that could not be read, in words.
    pub unreadable: Vec<String>,
    /// Columns of blocks whose ground may be in one of them. They have a colour of their own.
    pub unreadable_columns: u64,
}

/// A kind of block that is seen from above.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceBlock {
    /// Its name without a state.
    pub name: String,
    /// Its colour in full light.
    pub rgb: [u8; 3],
    /// Columns of blocks whose ground it is.
    pub columns: u64,
}

/// A tier whose chunks are seen from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierColumns {
    /// The tier.
    pub tier: Tier,
    /// Its colour in full light.
    pub rgb: [u8; 3],
    /// Columns of blocks whose uppermost seen chunk lies in it.
    pub columns: u64,
}

/// Why a map cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// Nothing is stored where the map would be.
    #[error("nothing is stored in the area; `cg info` shows which dimensions have chunks")]
    Empty,
    /// A scale that no strip of the map can be cut by.
    #[error(
        "a scale of {found} blocks per pixel is no power of two from 1 to 65,536; leave it out to have one chosen"
    )]
    Scale {
        /// The scale asked for.
        found: u32,
    },
    /// A picture with a side of more than 8 times [`MAX_SIDE_PX`], or of more than 2^27 pixels.
    #[error(
        "at {scale_blocks} blocks per pixel the map is {width_px}×{height_px} pixels; draw a smaller box, or more blocks per pixel"
    )]
    TooLarge {
        /// The scale asked for.
        scale_blocks: u32,
        /// Pixels from west to east.
        width_px: u64,
        /// Pixels from north to south.
        height_px: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] cg_store::Error),
}
