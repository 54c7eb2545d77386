//! One strip of a map: colours and heights averaged per pixel, then shaded by the slope.

use crate::extent::{Extent, strip_blocks};
use crate::image::Image;
use crate::legend;
use crate::seen::Seen;
use crate::sight::Sight;

/// How much brighter the steepest slope that faces the light gets, and how much darker one that faces away.
const LIT: f32 = 0.26;
const SHADED: f32 = 0.44;

/// The pixels of a strip while columns of blocks are added to it.
pub(super) struct Strip {
    scale_blocks: i64,
    /// The x and z of the picture's first pixel, and the z of the strip's, in pixels of the world.
    origin_px: [i64; 2],
    first_row_px: i64,
    width_px: usize,
    pixels: Vec<Sum>,
}

/// Sum of the columns of one pixel.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    rgb: [f32; 3],
    height: f32,
    count: u32,
    /// Columns that are stored and hold nothing to see.
    empty_count: u32,
    /// Whether the ground of one may be in a damaged chunk.
    is_unreadable: bool,
}

impl Strip {
    pub(super) fn new(extent: &Extent, scale_blocks: u32, index: i64, width_px: usize) -> Self {
        let scale = i64::from(scale_blocks);
        let height = strip_blocks(scale_blocks);
        let rows = (height / scale) as usize;
        Self {
            scale_blocks: scale,
            origin_px: extent.min.map(|c| c.div_euclid(scale)),
            first_row_px: (index * height).div_euclid(scale),
            width_px,
            pixels: vec![Sum::default(); rows * width_px],
        }
    }

    /// Adds what is seen of the column of blocks at (x, z), which must lie in the strip.
    pub(super) fn add(&mut self, x: i64, z: i64, sight: &Sight) {
        let column = (x.div_euclid(self.scale_blocks) - self.origin_px[0]) as usize;
        let row = (z.div_euclid(self.scale_blocks) - self.first_row_px) as usize;
        let Some(sum) = self.pixels.get_mut(row * self.width_px + column) else { return };
        sum.is_unreadable |= sight.is_unreadable();
        match sight.seen() {
            Some((rgb, height)) => {
                for (sum, c) in sum.rgb.iter_mut().zip(rgb) {
                    *sum += c;
                }
                sum.height += height;
                sum.count += 1;
            }
            None => sum.empty_count += 1,
        }
    }

    /// Draws the strip, and widens `seen` to what it shows. `north` holds the heights of the row above it, and
    /// afterwards those of its last row.
    pub(super) fn shade_into(&self, picture: &mut Image, north: &mut [Option<f32>], seen: &mut Option<Seen>) {
        for (row, pixels) in (0_i64..).zip(self.pixels.chunks_exact(self.width_px.max(1))) {
            let y = self.first_row_px + row - self.origin_px[1];
            let mut west = None;
            for ((x, sum), north) in (0_u32..).zip(pixels).zip(north.iter_mut()) {
                let height = (sum.count > 0).then(|| sum.height / sum.count as f32);
                let rgb = match height {
                    _ if sum.is_unreadable => Some(legend::UNREADABLE),
                    Some(height) => Some(self.shaded(sum, height, west, *north)),
                    None => (sum.empty_count > 0).then_some(legend::EMPTY),
                };
                if let (Some(rgb), Ok(y)) = (rgb, u32::try_from(y)) {
                    picture.set(x, y, rgb);
                    if height.is_some() || sum.is_unreadable {
                        *seen = Some(Seen::widened(*seen, [x, y]));
                    }
                }
                (west, *north) = (height, height);
            }
        }
    }

    /// Light comes from the north-west, as on paper maps: a slope that faces it is bright.
    fn shaded(&self, sum: &Sum, height: f32, west: Option<f32>, north: Option<f32>) -> [u8; 3] {
        let rise = (height - west.unwrap_or(height)) + (height - north.unwrap_or(height));
        let slope = rise / (self.scale_blocks as f32).powf(0.75);
        let steepness = (slope * 0.45).tanh();
        let light = 1.0 + steepness * if steepness > 0.0 { LIT } else { SHADED };
        sum.rgb.map(|c| (c / sum.count as f32 * light).clamp(0.0, 255.0) as u8)
    }
}
