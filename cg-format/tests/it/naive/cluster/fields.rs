//! A group by field: the counts of all its chunks, all palettes, all block ids, then the rest of each chunk.

use super::super::{Cursor, Refused, bits_at, bits_for, put, put_bits};
use super::Plain;

/// The number of bits in which an id of `bits` bits is stored.
fn width(bits: usize) -> usize {
    [0, 1, 2, 4, 8, 16, 32]
        .into_iter()
        .find(|width| *width >= bits)
        .expect("a palette has at most 2^20 kinds")
}

/// Reads a group by field: the chunks by their places.
pub(crate) fn decode(bytes: &[u8]) -> Result<Plain, Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u64("format version")?;
    if version != 2 {
        return Err(format!("format version {version}"));
    }
    let presence = at.u64("presence")?;
    let places: Vec<u16> = (0..64).filter(|place| presence >> place & 1 == 1).collect();
    let mut columns: [Vec<u32>; 4] = Default::default();
    let names = ["palette count", "layered block count", "component length", "rest length"];
    for (column, name) in columns.iter_mut().zip(names) {
        for _ in &places {
            column.push(at.u32(name)?);
        }
    }
    let [palette_counts, layered_counts, component_lens, rest_lens] = columns;
    for (kinds, layered) in palette_counts.iter().zip(&layered_counts) {
        if *layered > 4096 * 255 || *kinds < 1 || *kinds > 4096 + layered {
            return Err(format!("{kinds} kinds for {layered} layered blocks and 4096 cells"));
        }
    }

    let kinds: usize = palette_counts.iter().map(|count| *count as usize).sum();
    let kind_bytes = at.take("palette ids", 8 * kinds as u64)?;
    let mut palettes = Vec::new();
    for kind in 0..kinds {
        // Byte 0 of all kinds, then byte 1 of all kinds.
        let bytes: Vec<u8> = (0..8).map(|byte| kind_bytes[byte * kinds + kind]).collect();
        palettes.push(bytes);
    }
    let mut palettes = palettes.into_iter();

    let mut ids = Vec::new();
    for count in &palette_counts {
        let bits = bits_for(*count as usize);
        let width = width(bits);
        let stored = at.take("block ids", 512 * width as u64)?;
        let mut cells = Vec::new();
        for (x, y, z) in in_order_of_x() {
            let id = bits_at(stored, (y * 256 + x * 16 + z) * width, width);
            if id >= 1 << bits {
                return Err(format!("id {id} of {bits} bits"));
            }
            cells.push((id, bits));
        }
        let mut stream = Vec::new();
        put_bits(&mut stream, cells);
        ids.push(stream);
    }

    let mut chunks = Plain::new();
    for (chunk, (place, ids)) in places.into_iter().zip(ids).enumerate() {
        let (kinds, layered) = (u64::from(palette_counts[chunk]), u64::from(layered_counts[chunk]));
        let bits = bits_for(kinds as usize) as u64;
        let component_offset = 40 + 8 * kinds + 512 * bits + (layered * (12 + bits)).div_ceil(8);
        let mut value = Vec::new();
        put(&mut value, 1, 8);
        put(&mut value, component_offset, 8);
        put(&mut value, component_offset + u64::from(component_lens[chunk]), 8);
        put(&mut value, layered, 8);
        put(&mut value, kinds, 8);
        value.extend(palettes.by_ref().take(kinds as usize).flatten());
        value.extend(ids);
        value.extend(at.take("rest", u64::from(rest_lens[chunk]))?);
        chunks.insert(place, value);
    }
    at.end("the last rest")?;
    Ok(chunks)
}

/// Chunks by their places as a group by field, or `None` if one of them must stay whole.
///
/// A value is taken apart that begins with a header that fits its counts, and that has all its block ids.
pub(crate) fn encode(chunks: &Plain) -> Option<Vec<u8>> {
    let presence = chunks.keys().fold(0_u64, |mask, place| mask | 1 << place);
    let [mut counts, mut layered_counts, mut component_lens, mut rest_lens] = [(); 4].map(|()| Vec::new());
    let (mut palettes, mut ids, mut rests) = (Vec::new(), Vec::new(), Vec::<u8>::new());
    for value in chunks.values() {
        let mut at = Cursor::new(value);
        let header: Vec<u64> = (0..5).map(|_| at.u64("header")).collect::<Result<_, _>>().ok()?;
        let [version, component_offset, entity_offset, layered, kinds] = header[..] else { return None };
        if version != 1 || layered > 4096 * 255 || kinds < 1 || kinds > 4096 + layered {
            return None;
        }
        let bits = bits_for(kinds as usize);
        let blocks_end = 40 + 8 * kinds + 512 * bits as u64 + (layered * (12 + bits as u64)).div_ceil(8);
        let component_len = entity_offset.checked_sub(component_offset)?;
        if component_offset != blocks_end || component_len >= 1 << 32 {
            return None;
        }
        palettes.extend(at.take("palette", 8 * kinds).ok()?.chunks(8));
        let packed = at.take("block ids", 512 * bits as u64).ok()?;
        let in_order_of_y = (0..4096)
            .map(|cell| (cell / 256, cell / 16 % 16, cell % 16))
            .map(|(y, x, z)| x * 256 + y * 16 + z);
        put_bits(&mut ids, in_order_of_y.map(|cell| (bits_at(packed, cell * bits, bits), width(bits))));
        let rest = at.take("rest", at.left() as u64).ok()?;
        put(&mut counts, kinds, 4);
        put(&mut layered_counts, layered, 4);
        put(&mut component_lens, component_len, 4);
        put(&mut rest_lens, rest.len() as u64, 4);
        rests.extend(rest);
    }
    let mut out = Vec::new();
    put(&mut out, 2, 8);
    put(&mut out, presence, 8);
    for column in [counts, layered_counts, component_lens, rest_lens] {
        out.extend(column);
    }
    for byte in 0..8 {
        out.extend(palettes.iter().map(|kind| kind[byte]));
    }
    out.extend(ids);
    out.extend(rests);
    Some(out)
}

/// The x, y and z of the cells in the order of a chunk: x slowest, z fastest.
fn in_order_of_x() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..4096).map(|cell| (cell / 256, cell / 16 % 16, cell % 16))
}
