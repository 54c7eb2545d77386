//! A tile as it is stored: differences between neighbouring columns, which compression makes small.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `format version`: 2 |
//! | 8 | 1 | `scale level`: 1 = 64×64 columns, 2 = 256×256 |
//! | 9 | 4 × columns | `boundary counts`: u32 for each column, in 4 planes |
//! | 9 + 4 × columns | 8 each | `boundary steps`: u64 for each boundary, in 8 planes |
//!
//! Plane i has byte i of each value, the lowest first. The steps are in the order of rank: the lowest boundary of each
//! column, then the second of each column that has one, and so on. A step is the difference `d` from the y before it in
//! that order, from 0 at first, modulo 2⁶⁴, as `2d` if `d` is not negative and as `-2d - 1` if it is.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::tile::{self, BOUNDARY_LEN_BYTES, TileView, column_count, header_len_bytes};
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The version of the packed layout, which this release writes, and the newest that it reads.
const PACKED_VERSION: u64 = 2;
/// The length of a count.
const COUNT_LEN_BYTES: usize = 4;

/// The bytes with which a tile is stored, as long as its own but for four. Compressed they take a thirtieth to two thirds
/// of the tile's own compressed bytes.
///
/// ```
/// use cg_format::opacity::{self, TileView};
/// use cg_format::ClusterTier;
/// let tile = opacity::transparent(ClusterTier::L1);
/// let stored = opacity::pack(&TileView::new(&tile)?);
/// assert_eq!(*opacity::unpack(&stored)?, tile);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
pub fn pack(tile: &TileView<'_>) -> Vec<u8> {
    let counts: Vec<_> = tile.columns().map(|column| column.boundaries().len() as u32).collect();
    let boundaries = tile.boundary_bytes();
    let mut before = 0_i64;
    let steps = by_rank(&counts).into_iter().filter_map(|index| boundaries.get(index)).map(|y| {
        let y = i64::from_le_bytes(*y);
        let step = y.wrapping_sub(before);
        before = y;
        ((step << 1) ^ (step >> 63)).to_le_bytes()
    });
    let steps: Vec<_> = steps.collect();
    let counts: Vec<_> = counts.into_iter().map(u32::to_le_bytes).collect();
    let mut out = Vec::with_capacity(header_len_bytes(tile.scale()) + steps.as_flattened().len());
    let mut writer = Writer::new(&mut out);
    writer.u64(PACKED_VERSION);
    writer.u8(tile.scale().scale_level());
    put_planes(&counts, &mut out);
    put_planes(&steps, &mut out);
    out
}

/// The bytes of a tile from those with which it is stored. A tile of version 1 is stored as it is, and borrowed.
///
/// Allocates six times the stored bytes at most. [`TileView::new`] checks the boundaries.
///
/// # Errors
/// [`DecodeError`] in [`Section::OpacityTile`] for a newer version, another scale, and counts that do not fit the bytes.
pub fn unpack(stored: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    unpack_from(Reader::new(stored, Section::OpacityTile)).map(|tile| tile.map_or(stored.into(), Cow::Owned))
}

/// Explains a stored tile: the fields that [`unpack`] and [`TileView::new`] read, up to the first error.
pub fn trace_stored(stored: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
    let trace = Trace::default();
    match unpack_from(Reader::new(stored, Section::OpacityTile).traced(Some(&trace))) {
        Ok(None) => {
            let (spans, result) = TileView::trace(stored);
            (spans, result.map(drop))
        }
        Ok(Some(tile)) => (trace.into_inner(), TileView::new(&tile).map(drop)),
        Err(error) => (trace.into_inner(), Err(error)),
    }
}

/// `None` for a tile of version 1, whose bytes are its own.
fn unpack_from(mut reader: Reader<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
    if reader.version_u64("format version", PACKED_VERSION)? == tile::FORMAT_VERSION {
        return Ok(None);
    }
    let (scale, field) = (reader.scale_level()?, "boundary counts");
    let here = reader.clone();
    let counts = reader.take_items(field, column_count(scale) as u64, COUNT_LEN_BYTES as u64)?;
    let counts: Vec<_> = joined(counts).into_iter().map(u32::from_le_bytes).collect();
    let found: u64 = counts.iter().copied().map(u64::from).sum();
    let (left, width) = (reader.left_bytes() as u64, BOUNDARY_LEN_BYTES as u64);
    if found.checked_mul(width) != Some(left) {
        return Err(here.error(Problem::Disagrees { field, found, expected: left / width }));
    }
    if u32::try_from(header_len_bytes(scale) as u64 + left).is_err() {
        return Err(here.error(Problem::OutOfRange { field, found, allowed: "what 32-bit offsets reach" }));
    }
    let steps = joined(reader.take("boundary steps", reader.left_bytes())?);
    Ok(Some(tile_of(scale, &counts, &steps)))
}

/// The tile's own bytes. They are short enough for its offsets.
fn tile_of(scale: ClusterTier, counts: &[u32], steps: &[[u8; BOUNDARY_LEN_BYTES]]) -> Vec<u8> {
    let header = header_len_bytes(scale);
    let mut tile = Vec::with_capacity(header + steps.as_flattened().len());
    let mut writer = Writer::new(&mut tile);
    writer.u64(tile::FORMAT_VERSION);
    writer.u8(scale.scale_level());
    let mut offset_bytes = header as u32;
    writer.u32(offset_bytes);
    for count in counts {
        offset_bytes += count * BOUNDARY_LEN_BYTES as u32;
        writer.u32(offset_bytes);
    }
    writer.bytes(from_steps(counts, steps).as_flattened());
    tile
}

/// The boundaries in the order of columns from their steps in the order of ranks.
fn from_steps(counts: &[u32], steps: &[[u8; BOUNDARY_LEN_BYTES]]) -> Vec<[u8; BOUNDARY_LEN_BYTES]> {
    let mut boundaries = alloc::vec![[0; BOUNDARY_LEN_BYTES]; steps.len()];
    let mut y = 0_i64;
    for (step, index) in steps.iter().zip(by_rank(counts)) {
        let step = u64::from_le_bytes(*step);
        y = y.wrapping_add((step >> 1) as i64 ^ -((step & 1) as i64));
        if let Some(place) = boundaries.get_mut(index) {
            *place = y.to_le_bytes();
        }
    }
    boundaries
}

/// The numbers of boundaries in the order of columns, listed in the order of ranks. Costs a step for each.
fn by_rank(counts: &[u32]) -> Vec<usize> {
    let mut start = 0;
    let mut left: Vec<_> = counts
        .iter()
        .map(|count| {
            let boundaries = start..start + *count as usize;
            start = boundaries.end;
            boundaries
        })
        .collect();
    let mut order = Vec::with_capacity(start);
    loop {
        left.retain(|boundaries| !boundaries.is_empty());
        if left.is_empty() {
            return order;
        }
        order.extend(left.iter_mut().filter_map(Iterator::next));
    }
}

/// Appends the planes of values.
fn put_planes<const N: usize>(values: &[[u8; N]], out: &mut Vec<u8>) {
    for plane in 0..N {
        out.extend(values.iter().filter_map(|value| value.get(plane)));
    }
}

/// The values from their planes, whose length is a multiple of `N`.
fn joined<const N: usize>(planes: &[u8]) -> Vec<[u8; N]> {
    let count = planes.len() / N;
    let mut values = alloc::vec![[0; N]; count];
    for (plane, bytes) in planes.chunks_exact(count.max(1)).enumerate() {
        for (value, byte) in values.iter_mut().zip(bytes) {
            if let Some(place) = value.get_mut(plane) {
                *place = *byte;
            }
        }
    }
    values
}
