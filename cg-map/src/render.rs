//! Drawing a map: an area in strips from north to south.

use cg_registry::ListKind;
use cg_store::World;

use crate::extent::Extent;
use crate::image::Image;
use crate::legend;
use crate::map::{Colours, MAX_SIDE_PX, Map, MapError, MapOptions};
use crate::strip::Strip;
use crate::surface::{Surface, Tally};

/// The most pixels of a map whose scale was asked for.
const MAX_PX: u64 = 1 << 27;

/// A map that is smaller than this on its longer side is drawn with several pixels per block.
const ENOUGH_PX: u64 = 768;

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
