//! A world seen from above: real colours, hill shading, a legend.
//!
//! [`render`] goes through an area in strips from north to south. Of each column of chunks only the chunks from the
//! top down to the ground are read, so caves cost nothing; memory holds one strip and the image, whatever the size of
//! the world.
//!
//! ```
//! use cg_cli::map::{MapOptions, render};
//! use cg_store::prelude::*;
//! let world = World::builder().in_memory()?;
//! let overworld = world.registry().register_dimension("game:overworld")?;
//! let [grass] = world.registry().register_blocks(["game:grass_block"])?;
//! world.transaction(|tx| {
//!     let schema = tx.catalog().current_schema();
//!     tx.save(ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?), Chunk::filled(grass, &schema)?);
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! let map = render(&world, &MapOptions::of(overworld), |_| {})?;
//! assert_eq!(map.surface[0].name, "game:grass_block");
//! let mut png = Vec::new();
//! map.image.write_png(&mut png)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod colour;
mod extent;
mod font;
mod image;
mod legend;
mod strip;
mod surface;

use cg_format::{BlockArea, Dimension, Tier};
use cg_registry::ListKind;
use cg_store::World;

pub use colour::{Paint, paint_of};
pub use image::Image;

use extent::Extent;
use strip::Strip;
use surface::{Surface, Tally};

/// The longest side of a map whose scale is chosen here, in pixels.
pub const MAX_SIDE_PX: u64 = 4096;

/// The most pixels of a map whose scale was asked for.
const MAX_PX: u64 = 1 << 27;

/// A map that is smaller than this on its longer side is drawn with several pixels per block.
const ENOUGH_PX: u64 = 768;

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

/// Draws a map. `progress` is called with the share of strips done, 0 to 1.
///
/// Reads the keys of the area once, then of each column of chunks the chunks down to the ground.
///
/// # Errors
/// The variants of [`MapError`]. A damaged chunk is no error: see [`Map::unreadable`].
pub fn render(world: &World, options: &MapOptions, mut progress: impl FnMut(f64)) -> Result<Map, MapError> {
    let mut extent = Extent::find(world, options.dimension, &options.area)?.ok_or(MapError::Empty)?;
    let scale = scale(&extent, options.scale_blocks)?;
    let [width, height] = size_px(&extent, scale);

    let catalog = world.catalog();
    let mut surface = Surface::new(world, &catalog, options.dimension, &options.area, options.colours);
    let mut tally = Tally::default();
    let mut picture = Image::filled(width as u32, height as u32, legend::NOTHING);
    let mut north: Vec<Option<f32>> = vec![None; width as usize];
    let mut seen = None;
    let strips = extent.strips(scale);
    let count = strips.len().max(1) as f64;
    for (done, tiles) in strips.into_iter().enumerate() {
        let mut strip = Strip::new(&extent, scale, tiles.index, width as usize);
        for tile in tiles.tiles {
            surface.draw_tile(tile, &mut strip, &mut tally)?;
        }
        strip.shade_into(&mut picture, &mut north, &mut seen);
        progress((done + 1) as f64 / count);
    }
    let blocks = tally.most_frequent(&catalog);
    if let Some(seen) = seen.filter(|_| options.area.is_everywhere()) {
        // Columns of air, such as a generator leaves around what it has finished, are no part of the picture.
        picture = picture.cropped(seen.min, seen.max);
        extent.narrow(seen, scale);
    }
    let zoom = if scale == 1 { (ENOUGH_PX / extent.longer_side_blocks().max(1)).clamp(1, 8) } else { 1 };
    let picture = picture.magnified(zoom as u32);
    let dimension = catalog.list(ListKind::Dimensions).name(options.dimension.get());
    let mut map = Map {
        image: picture,
        min: extent.min,
        max: extent.max,
        scale_blocks: scale,
        zoom_px: zoom as u32,
        surface: blocks,
        tiers: if options.colours == Colours::Tiers { tally.by_tier() } else { Vec::new() },
        unreadable: [extent.unreadable, surface.into_unreadable()].concat(),
        unreadable_columns: tally.unreadable,
    };
    if options.legend {
        map.image = legend::below(&map, dimension.map_or("", |name| name.as_str()));
    }
    Ok(map)
}

fn scale(extent: &Extent, wanted: Option<u32>) -> Result<u32, MapError> {
    match wanted {
        Some(found) if !found.is_power_of_two() || found > 1 << 16 => Err(MapError::Scale { found }),
        Some(scale_blocks) => {
            let [width_px, height_px] = size_px(extent, scale_blocks);
            if width_px.max(height_px) > 8 * MAX_SIDE_PX || width_px.saturating_mul(height_px) > MAX_PX {
                return Err(MapError::TooLarge { scale_blocks, width_px, height_px });
            }
            Ok(scale_blocks)
        }
        None => {
            let mut scales = (0..=31).map(|shift| 1_u32 << shift);
            let fits = |scale: &u32| size_px(extent, *scale).into_iter().all(|side| side <= MAX_SIDE_PX);
            scales.find(fits).ok_or_else(|| {
                let [width_px, height_px] = size_px(extent, 1 << 31);
                MapError::TooLarge { scale_blocks: 1 << 31, width_px, height_px }
            })
        }
    }
}

/// The size of the map's picture: every pixel that has a block of the extent.
fn size_px(extent: &Extent, scale: u32) -> [u64; 2] {
    let scale = i64::from(scale);
    [0, 1].map(|axis| {
        let (min, max) = (extent.min[axis].div_euclid(scale), extent.max[axis].div_euclid(scale));
        max.abs_diff(min).saturating_add(1)
    })
}
