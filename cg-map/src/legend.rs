//! Legend below a map: its title, a scale bar, and the colours of the most frequent blocks or of the tiers.

use cg_format::Tier;

use crate::font::{self, LINE_PX};
use crate::image::Image;
use crate::map::{Map, SurfaceBlock, TierColumns};

/// Where nothing is stored.
pub(super) const NOTHING: [u8; 3] = [20, 23, 28];
/// Where something is stored and nothing is to be seen: columns of air.
pub(super) const EMPTY: [u8; 3] = [30, 34, 41];
/// Where the ground may be in a damaged chunk.
pub(super) const UNREADABLE: [u8; 3] = [232, 0, 168];

const PANEL: [u8; 3] = [244, 240, 230];
const INK: [u8; 3] = [52, 48, 44];
const FAINT: [u8; 3] = [132, 124, 112];
const MARGIN_PX: u32 = 16;
/// Room for the title and the scale bar side by side.
const MIN_WIDTH_PX: u32 = 640;
const SWATCH_PX: u32 = 14;
const ROW_PX: u32 = 24;
/// The least width of a column of blocks.
const COLUMN_PX: u32 = 304;
/// Kinds of blocks shown at most.
const MAX_BLOCKS: usize = 12;
/// A name longer than this is cut.
const NAME_CHARS: usize = 17;

/// The map's picture with a legend below it.
pub(super) fn below(map: &Map, dimension: &str) -> Image {
    let picture = &map.image;
    let width = picture.width_px().max(MIN_WIDTH_PX);
    let mut entries = entries(map);
    let total: u64 = entries.iter().map(|entry| entry.columns).sum::<u64>() + map.unreadable_columns;
    entries.truncate(MAX_BLOCKS);
    if map.unreadable_columns > 0 {
        let (name, columns) = ("unreadable".into(), map.unreadable_columns);
        entries.push(Entry { name, rgb: UNREADABLE, columns });
    }
    let columns = ((width - MARGIN_PX) / COLUMN_PX).clamp(1, 4);
    let column_px = (width - MARGIN_PX) / columns;
    let rows = (entries.len() as u32).div_ceil(columns);
    let head_px = 2 * LINE_PX + 3 * MARGIN_PX / 2;
    let panel_px = MARGIN_PX + head_px + rows * ROW_PX + MARGIN_PX / 2;
    let mut image = Image::filled(width, picture.height_px() + panel_px, NOTHING);
    image.draw((width - picture.width_px()) / 2, 0, picture);

    let top = picture.height_px();
    image.fill(0, top, width, panel_px, PANEL);
    let y = top + MARGIN_PX;
    font::write(&mut image, MARGIN_PX, y, dimension, INK);
    let ([west, north], [east, south]) = (map.min, map.max);
    let place = format!("x {west} to {east}, z {north} to {south}");
    font::write(&mut image, MARGIN_PX, y + LINE_PX + 4, &place, FAINT);
    draw_scale_bar(&mut image, map, y);

    for (index, entry) in (0_u32..).zip(&entries) {
        // Down the first column, then down the next, as one reads a list.
        let (column, row) = (index / rows.max(1), index % rows.max(1));
        let (x, y) = (MARGIN_PX + column * column_px, top + MARGIN_PX + head_px + row * ROW_PX);
        draw_entry(&mut image, [x, y], column_px - MARGIN_PX, entry, total);
    }
    image
}

/// A colour and what it says.
struct Entry {
    name: String,
    rgb: [u8; 3],
    columns: u64,
}

fn entries(map: &Map) -> Vec<Entry> {
    let tier = |seen: &TierColumns| {
        let name = match seen.tier {
            Tier::L0 => "hot, L0",
            Tier::L1 => "warm, L1",
            Tier::L2 => "cold, L2",
        };
        Entry { name: name.into(), rgb: seen.rgb, columns: seen.columns }
    };
    let block = |seen: &SurfaceBlock| {
        let name = seen.name.split_once(':').map_or(seen.name.as_str(), |(_, identifier)| identifier);
        Entry { name: name.replace('_', " "), rgb: seen.rgb, columns: seen.columns }
    };
    if map.tiers.is_empty() {
        map.surface.iter().map(block).collect()
    } else {
        map.tiers.iter().map(tier).collect()
    }
}

fn draw_entry(image: &mut Image, [x, y]: [u32; 2], width_px: u32, entry: &Entry, total: u64) {
    image.fill(x, y, SWATCH_PX, SWATCH_PX, FAINT);
    image.fill(x + 1, y + 1, SWATCH_PX - 2, SWATCH_PX - 2, entry.rgb);
    let mut name = entry.name.clone();
    if name.chars().count() > NAME_CHARS {
        name = name.chars().take(NAME_CHARS - 2).chain("..".chars()).collect();
    }
    font::write(image, x + SWATCH_PX + 8, y, &name, INK);
    let share = entry.columns as f64 * 100.0 / total.max(1) as f64;
    let share = match share {
        ..0.05 => "<0.1%".into(),
        0.05..9.95 => format!("{share:.1}%"),
        _ => format!("{share:.0}%"),
    };
    let right = x + width_px;
    font::write(image, right.saturating_sub(font::width_px(&share)), y, &share, FAINT);
}

/// A bar of a round number of blocks, as long as fits a quarter of the picture.
fn draw_scale_bar(image: &mut Image, map: &Map, y: u32) {
    let px_per_block = f64::from(map.zoom_px) / f64::from(map.scale_blocks);
    let max_px = f64::from((image.width_px() / 4).clamp(80, 320));
    let blocks = round_below(max_px / px_per_block);
    let len_px = ((blocks as f64 * px_per_block) as u32).max(1);
    let label = if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
    let right = image.width_px() - MARGIN_PX;
    let x = right.saturating_sub(len_px);
    image.fill(x, y + 4, len_px, 6, INK);
    // The second half is hollow, so that half the length can be read off too.
    if len_px > 8 {
        image.fill(x + len_px / 2, y + 6, len_px - len_px / 2 - 2, 2, PANEL);
    }
    font::write(image, right.saturating_sub(font::width_px(&label)), y + LINE_PX + 4, &label, FAINT);
}

/// The greatest 1, 2 or 5 times a power of ten that is not above a length; 1 below 1.
fn round_below(len: f64) -> u64 {
    let mut best = 1;
    let mut power: u64 = 1;
    while power as f64 <= len {
        let fits = [1, 2, 5].map(|times| power.saturating_mul(times)).into_iter();
        best = fits.filter(|round| *round as f64 <= len).max().unwrap_or(best);
        let Some(next) = power.checked_mul(10) else { break };
        power = next;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::round_below;

    #[test]
    fn a_scale_bar_is_a_round_number() {
        let round = [0.3, 1.0, 4.9, 5.0, 19.0, 99.9, 1234.0].map(round_below);
        assert_eq!(round, [1, 1, 2, 5, 10, 50, 1000]);
    }
}
