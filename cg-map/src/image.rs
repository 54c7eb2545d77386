//! A picture of plain RGB pixels, and its PNG.

use std::io::{self, Write};

/// A picture: rows of RGB pixels from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    width_px: u32,
    height_px: u32,
    rgb: Vec<u8>,
}

impl Image {
    /// A picture of one colour.
    pub fn filled(width_px: u32, height_px: u32, rgb: [u8; 3]) -> Self {
        let count = width_px as usize * height_px as usize;
        Self { width_px, height_px, rgb: rgb.repeat(count) }
    }

    /// Pixels from left to right.
    pub const fn width_px(&self) -> u32 {
        self.width_px
    }

    /// Pixels from top to bottom.
    pub const fn height_px(&self) -> u32 {
        self.height_px
    }

    /// A pixel, or `None` outside.
    pub fn get(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        let at = self.offset(x, y)?;
        self.rgb.get(at..)?.first_chunk().copied()
    }

    /// Sets a pixel; one that lies outside is left out.
    pub fn set(&mut self, x: u32, y: u32, rgb: [u8; 3]) {
        if let Some(pixel) = self.offset(x, y).and_then(|at| self.rgb.get_mut(at..)?.first_chunk_mut()) {
            *pixel = rgb;
        }
    }

    /// Fills a rectangle, as far as it lies inside.
    pub fn fill(&mut self, x: u32, y: u32, width_px: u32, height_px: u32, rgb: [u8; 3]) {
        for y in y..y.saturating_add(height_px).min(self.height_px) {
            for x in x..x.saturating_add(width_px).min(self.width_px) {
                self.set(x, y, rgb);
            }
        }
    }

    /// Copies a picture into this one.
    pub fn draw(&mut self, x: u32, y: u32, picture: &Self) {
        for from_y in 0..picture.height_px {
            for from_x in 0..picture.width_px {
                if let Some(rgb) = picture.get(from_x, from_y) {
                    self.set(x + from_x, y + from_y, rgb);
                }
            }
        }
    }

    /// The part of a picture from one pixel to another, both included and inside.
    pub(super) fn cropped(&self, [left, top]: [u32; 2], [right, bottom]: [u32; 2]) -> Self {
        let mut part = Self::filled(right - left + 1, bottom - top + 1, [0; 3]);
        for y in 0..part.height_px {
            for x in 0..part.width_px {
                if let Some(rgb) = self.get(left + x, top + y) {
                    part.set(x, y, rgb);
                }
            }
        }
        part
    }

    /// The same picture with every pixel as a square of this side.
    #[must_use]
    pub fn magnified(self, times: u32) -> Self {
        if times <= 1 {
            return self;
        }
        let (width_px, height_px) = (self.width_px * times, self.height_px * times);
        let mut rgb = Vec::with_capacity(width_px as usize * height_px as usize * 3);
        for row in self.rgb.chunks_exact(self.width_px.max(1) as usize * 3) {
            let (pixels, _) = row.as_chunks::<3>();
            let wide: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.repeat(times as usize)).collect();
            rgb.extend(wide.repeat(times as usize));
        }
        Self { width_px, height_px, rgb }
    }

    /// Writes the picture as a PNG.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_png(&self, to: impl Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(to, self.width_px, self.height_px);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        Ok(writer.finish()?)
    }

    fn offset(&self, x: u32, y: u32) -> Option<usize> {
        let inside = x < self.width_px && y < self.height_px;
        inside.then_some((y as usize * self.width_px as usize + x as usize) * 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_back_from_its_png() {
        let mut image = Image::filled(3, 2, [1, 2, 3]);
        image.set(2, 1, [9, 8, 7]);
        image.set(3, 1, [0, 0, 0]);
        let mut png = Vec::new();
        image.write_png(&mut png).expect("a vector takes any bytes");
        let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info().expect("it was just written");
        let mut rgb = vec![0; reader.output_buffer_size().expect("it is small")];
        reader.next_frame(&mut rgb).expect("it was just written");
        assert_eq!(rgb, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 9, 8, 7]);
    }

    #[test]
    fn a_magnified_pixel_is_a_square() {
        let mut image = Image::filled(2, 1, [1; 3]);
        image.set(1, 0, [2; 3]);
        let image = image.magnified(2);
        assert_eq!((image.width_px(), image.height_px()), (4, 2));
        let row = |y| [0, 1, 2, 3].map(|x| image.get(x, y).map(|rgb| rgb[0]));
        assert_eq!([row(0), row(1)], [[Some(1), Some(1), Some(2), Some(2)]; 2]);
    }
}
