//! Packed bits: value i of width b is stored in bits `[i·b, (i+1)·b)` of a little-endian bit stream.
//!
//! There is no padding between values, so a value may cross bytes. Bits after the last value are zero. Eight values of
//! width b take exactly b bytes. The bulk functions work on such groups, with one kernel per width.

use alloc::vec::Vec;

/// The maximum width, in bits.
pub const MAX_WIDTH: u32 = 32;

/// The number of bits that distinguish `count` kinds: ⌈log₂ count⌉, and 0 for one kind or none.
///
/// ```
/// use cg_format::wire::bits::width_for;
/// assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width_for), [0, 0, 1, 2, 2, 3, 8, 9]);
/// ```
pub const fn width_for(count: u64) -> u32 {
    if count <= 1 { 0 } else { u64::BITS - (count - 1).leading_zeros() }
}

/// The length of this many values. The last byte is padded with zero bits.
pub const fn len_bytes(count: u64, width: u32) -> u64 {
    (count * width as u64).div_ceil(8)
}

/// The largest value of a width.
pub const fn max_value(width: u32) -> u32 {
    ((1_u64 << width) - 1) as u32
}

/// Returns one value. Bits after the end read as zero.
///
/// Costs a load, a shift and a mask. The width is at most [`MAX_WIDTH`].
#[inline]
pub fn get(bytes: &[u8], width: u32, index: usize) -> u32 {
    let bit = index as u64 * u64::from(width);
    let (at, word) = match bytes.len().checked_sub(8) {
        // In the last eight bytes the load starts earlier, so that it never reads past the end.
        Some(last) => {
            let at = address(bit / 8).min(last);
            (
                at as u64,
                bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word)),
            )
        }
        None => (0, load_short(bytes)),
    };
    let shifted = word.checked_shr((bit - at * 8).min(64) as u32).unwrap_or(0);
    shifted as u32 & max_value(width)
}

/// Replaces one value. Bits of `value` above the width are dropped. A value after the end is not written.
#[inline]
pub fn set(bytes: &mut [u8], width: u32, index: usize, value: u32) {
    let bit = index as u64 * u64::from(width);
    let (at, shift) = (address(bit / 8), bit % 8);
    let keep = !(u64::from(max_value(width)) << shift);
    let put = u64::from(value & max_value(width)) << shift;
    let Some(bytes) = bytes.get_mut(at..) else { return };
    if let Some(word) = bytes.first_chunk_mut::<8>() {
        *word = (u64::from_le_bytes(*word) & keep | put).to_le_bytes();
    } else {
        let word = load_short(bytes) & keep | put;
        for (byte, new) in bytes.iter_mut().zip(word.to_le_bytes()) {
            *byte = new;
        }
    }
}

/// The number as an index of bytes; one after any end where an address has too few bits for it.
#[inline]
fn address(byte: u64) -> usize {
    usize::try_from(byte).unwrap_or(usize::MAX)
}

/// Unpacks the first `out.len()` values. Bits after the end read as zero.
///
/// # Panics
/// If the width is above [`MAX_WIDTH`].
pub fn unpack(bytes: &[u8], width: u32, out: &mut [u32]) {
    match width {
        0 => out.fill(0),
        1 => unpack_groups::<1>(bytes, out),
        2 => unpack_groups::<2>(bytes, out),
        3 => unpack_groups::<3>(bytes, out),
        4 => unpack_groups::<4>(bytes, out),
        5 => unpack_groups::<5>(bytes, out),
        6 => unpack_groups::<6>(bytes, out),
        7 => unpack_groups::<7>(bytes, out),
        8 => unpack_groups::<8>(bytes, out),
        9 => unpack_groups::<9>(bytes, out),
        10 => unpack_groups::<10>(bytes, out),
        11 => unpack_groups::<11>(bytes, out),
        12 => unpack_groups::<12>(bytes, out),
        13 => unpack_groups::<13>(bytes, out),
        14 => unpack_groups::<14>(bytes, out),
        15 => unpack_groups::<15>(bytes, out),
        16 => unpack_groups::<16>(bytes, out),
        // More than 65,536 kinds in one chunk: correct, and too rare for a kernel.
        17..=MAX_WIDTH => unpack_singly(bytes, width, 0, out),
        _ => panic!("values are at most 32 bits wide"),
    }
}

/// As [`unpack`], for whole groups of eight values and a width of at most 8: each value becomes a byte. A group that is
/// not there leaves its bytes as they are.
///
/// # Panics
/// If the width is above 8.
pub(crate) fn unpack_bytes(bytes: &[u8], width: u32, out: &mut [u8]) {
    match width {
        0 => out.fill(0),
        1 => unpack_byte_groups::<1>(bytes, out),
        2 => unpack_byte_groups::<2>(bytes, out),
        3 => unpack_byte_groups::<3>(bytes, out),
        4 => unpack_byte_groups::<4>(bytes, out),
        5 => unpack_byte_groups::<5>(bytes, out),
        6 => unpack_byte_groups::<6>(bytes, out),
        7 => unpack_byte_groups::<7>(bytes, out),
        8 => unpack_byte_groups::<8>(bytes, out),
        _ => panic!("a byte has 8 bits"),
    }
}

/// Appends values, and zero bits up to the next byte. Bits of a value above the width are dropped.
///
/// # Panics
/// If the width is above [`MAX_WIDTH`].
pub fn pack(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len_bytes(values.len() as u64, width) as usize, 0);
    let (_, packed) = out.split_at_mut(start);
    match width {
        0 => {}
        1 => pack_groups::<1>(values, packed),
        2 => pack_groups::<2>(values, packed),
        3 => pack_groups::<3>(values, packed),
        4 => pack_groups::<4>(values, packed),
        5 => pack_groups::<5>(values, packed),
        6 => pack_groups::<6>(values, packed),
        7 => pack_groups::<7>(values, packed),
        8 => pack_groups::<8>(values, packed),
        9 => pack_groups::<9>(values, packed),
        10 => pack_groups::<10>(values, packed),
        11 => pack_groups::<11>(values, packed),
        12 => pack_groups::<12>(values, packed),
        13 => pack_groups::<13>(values, packed),
        14 => pack_groups::<14>(values, packed),
        15 => pack_groups::<15>(values, packed),
        16 => pack_groups::<16>(values, packed),
        17..=MAX_WIDTH => pack_singly(values, width, 0, packed),
        _ => panic!("values are at most 32 bits wide"),
    }
}

/// As [`pack`], for values of one byte each, a multiple of eight of them, and a width of at most 8. Bits above the width
/// must be zero.
///
/// # Panics
/// If the width is above 8.
pub fn pack_bytes(values: &[u8], width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len_bytes(values.len() as u64, width) as usize, 0);
    let (_, packed) = out.split_at_mut(start);
    match width {
        0 => {}
        1 => pack_byte_groups::<1>(values, packed),
        2 => pack_byte_groups::<2>(values, packed),
        3 => pack_byte_groups::<3>(values, packed),
        4 => pack_byte_groups::<4>(values, packed),
        5 => pack_byte_groups::<5>(values, packed),
        6 => pack_byte_groups::<6>(values, packed),
        7 => pack_byte_groups::<7>(values, packed),
        8 => pack_byte_groups::<8>(values, packed),
        _ => panic!("a byte has 8 bits"),
    }
}

/// As [`pack`] with a width of 3, for values of four bits, the first one of a byte in its low bits. The highest bit of
/// each must be zero.
pub(crate) fn pack_nibbles(values: &[u8], out: &mut Vec<u8>) {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let start = out.len();
    out.resize(start + values.len() / 4 * 3, 0);
    let (_, packed) = out.split_at_mut(start);
    for (group, packed) in values.as_chunks::<8>().0.iter().zip(packed.as_chunks_mut::<6>().0) {
        let word = u64::from_le_bytes(*group);
        let pairs = word & LOW | (word & !LOW) >> 1;
        *packed = resized(&gathered(pairs, 6).to_le_bytes());
    }
}

/// Packs whole groups of eight values.
fn pack_byte_groups<const W: usize>(values: &[u8], out: &mut [u8]) {
    for (group, packed) in values.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<W>().0) {
        *packed = resized(&gathered(u64::from_le_bytes(*group), W as u32).to_le_bytes());
    }
}

fn unpack_byte_groups<const W: usize>(bytes: &[u8], out: &mut [u8]) {
    for (packed, group) in bytes.as_chunks::<W>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        *group = spread(u64::from_le_bytes(resized(packed)), W as u32).to_le_bytes();
    }
}

/// Moves the eight values of a word apart: the halves, then their halves, then each value to its byte.
#[inline]
const fn spread(word: u64, width: u32) -> u64 {
    let value = u64::MAX >> (u64::BITS - width);
    let one = value * 0x0001_0001_0001_0001;
    let two = (u64::MAX >> (u64::BITS - 2 * width)) * 0x0000_0001_0000_0001;
    let four = u64::MAX >> (u64::BITS - 4 * width);
    let word = word & four | (word >> (4 * width) & four) << 32;
    let word = word & two | (word >> (2 * width) & two) << 16;
    word & one | (word >> width & one) << 8
}

/// Moves the eight values of a word together: pairs, then pairs of pairs, then the halves.
#[inline]
const fn gathered(word: u64, width: u32) -> u64 {
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    const PAIRS: u64 = 0x0000_ffff_0000_ffff;
    const FOURS: u64 = 0x0000_0000_ffff_ffff;
    let gap = 8 - width;
    let word = word & BYTES | (word & !BYTES) >> gap;
    let word = word & PAIRS | (word & !PAIRS) >> (2 * gap);
    word & FOURS | (word & !FOURS) >> (4 * gap)
}

fn load_short(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn unpack_singly(bytes: &[u8], width: u32, first: usize, out: &mut [u32]) {
    for (index, value) in (first..).zip(out) {
        *value = get(bytes, width, index);
    }
}

fn pack_singly(values: &[u32], width: u32, first: usize, out: &mut [u8]) {
    for (index, value) in (first..).zip(values) {
        set(out, width, index, *value);
    }
}

fn unpack_groups<const W: usize>(bytes: &[u8], out: &mut [u32]) {
    let (groups, _) = bytes.as_chunks::<W>();
    let (out_groups, _) = out.as_chunks_mut::<8>();
    let whole = groups.len().min(out_groups.len());
    for (group, eight) in groups.iter().zip(out_groups) {
        *eight = unpack_group(group);
    }
    let (_, tail) = out.split_at_mut(whole * 8);
    unpack_singly(bytes, W as u32, whole * 8, tail);
}

fn pack_groups<const W: usize>(values: &[u32], out: &mut [u8]) {
    let (groups, tail) = values.as_chunks::<8>();
    for (group, packed) in groups.iter().zip(out.as_chunks_mut::<W>().0) {
        *packed = pack_group(group);
    }
    pack_singly(tail, W as u32, groups.len() * 8, out);
}

#[inline]
fn unpack_group<const W: usize>(group: &[u8; W]) -> [u32; 8] {
    let mask = max_value(W as u32);
    if W <= 8 {
        let word = u64::from_le_bytes(resized(group));
        core::array::from_fn(|i| (word >> (i * W)) as u32 & mask)
    } else {
        let word = u128::from_le_bytes(resized(group));
        core::array::from_fn(|i| (word >> (i * W)) as u32 & mask)
    }
}

#[inline]
fn pack_group<const W: usize>(group: &[u32; 8]) -> [u8; W] {
    let mask = max_value(W as u32);
    if W <= 8 {
        let word =
            group.iter().enumerate().fold(0, |word, (i, value)| word | u64::from(value & mask) << (i * W));
        resized(&word.to_le_bytes())
    } else {
        let word =
            group.iter().enumerate().fold(0, |word, (i, value)| word | u128::from(value & mask) << (i * W));
        resized(&word.to_le_bytes())
    }
}

#[inline]
fn resized<const FROM: usize, const TO: usize>(bytes: &[u8; FROM]) -> [u8; TO] {
    let mut out = [0; TO];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

#[cfg(test)]
mod tests;
