//! Morton order: the bits of biased coordinates interleaved, so that an aligned cube is one range of keys.
//!
//! Each coordinate is biased by flipping its sign bit, which maps `i64` order onto `u64` order. Without it −1 and 0
//! would be at opposite ends. In each bit triple x is the most significant, then y, then z; in each pair x, then z. The
//! result is big-endian, because stores compare keys byte by byte from the front.
//!
//! Bias and shift do not commute: shift the signed coordinate to the scale first, then encode.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

/// Bytes of three interleaved coordinates.
pub const LEN_3D_BYTES: usize = 24;
/// Bytes of two interleaved coordinates.
pub const LEN_2D_BYTES: usize = 16;

const SIGN: u64 = 1 << 63;

/// Maps `i64` order onto `u64` order.
pub(crate) const fn bias(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

/// The inverse of [`bias`].
pub(crate) const fn unbias(value: u64) -> i64 {
    (value ^ SIGN).cast_signed()
}

/// Interleaves x, y and z.
pub fn encode_3d([x, y, z]: [i64; 3]) -> [u8; LEN_3D_BYTES] {
    let [x, y, z] = [x, y, z].map(bias);
    let mut out = [0; LEN_3D_BYTES];
    for (limb, bytes) in (0..4).rev().zip(out.chunks_exact_mut(6)) {
        let part = |value: u64| spread_3((value >> (limb * 16)) & 0xffff);
        let mixed = (part(x) << 2) | (part(y) << 1) | part(z);
        bytes.copy_from_slice(mixed.to_be_bytes().split_at(2).1);
    }
    out
}

/// The inverse of [`encode_3d`]; every input is the code of exactly one position.
pub fn decode_3d(code: &[u8; LEN_3D_BYTES]) -> [i64; 3] {
    let mut out = [0_u64; 3];
    for bytes in code.chunks_exact(6) {
        let mixed = bytes.iter().fold(0_u64, |all, byte| (all << 8) | u64::from(*byte));
        for (value, shift) in out.iter_mut().zip([2, 1, 0]) {
            *value = (*value << 16) | gather_3(mixed >> shift);
        }
    }
    out.map(unbias)
}

/// The position with the next code; `None` after the last.
pub fn next_3d(position: [i64; 3]) -> Option<[i64; 3]> {
    let mut code = encode_3d(position);
    for byte in code.iter_mut().rev() {
        let (sum, over) = byte.overflowing_add(1);
        *byte = sum;
        if !over {
            return Some(decode_3d(&code));
        }
    }
    None
}

/// Interleaves x and z.
pub fn encode_2d([x, z]: [i64; 2]) -> [u8; LEN_2D_BYTES] {
    let [x, z] = [x, z].map(bias);
    let mut out = [0; LEN_2D_BYTES];
    for (limb, bytes) in (0..2).rev().zip(out.chunks_exact_mut(8)) {
        let part = |value: u64| spread_2((value >> (limb * 32)) & 0xffff_ffff);
        bytes.copy_from_slice(&((part(x) << 1) | part(z)).to_be_bytes());
    }
    out
}

/// The inverse of [`encode_2d`].
pub fn decode_2d(code: &[u8; LEN_2D_BYTES]) -> [i64; 2] {
    let mut out = [0_u64; 2];
    for bytes in code.chunks_exact(8) {
        let mixed = bytes.iter().fold(0_u64, |all, byte| (all << 8) | u64::from(*byte));
        for (value, shift) in out.iter_mut().zip([1, 0]) {
            *value = (*value << 32) | gather_2(mixed >> shift);
        }
    }
    out.map(unbias)
}

/// The first position of a box, in Morton order, that is not before `from`; `None` if the whole box is before it.
///
/// Both corners are inside the box, and no coordinate of `min` exceeds that of `max`. A scan of keys that has left the
/// box continues at this position, instead of reading all keys between two parts of it. Costs one step per bit and
/// reads nothing.
///
/// ```
/// use cg_format::morton::first_in_box;
/// // A column of positions: after (0, 1, 0) and its neighbours to the east the next one is (0, 2, 0).
/// let column = ([0, 0, 0], [0, 9, 0]);
/// assert_eq!(first_in_box([1, 0, 0], column.0, column.1), Some([0, 2, 0]));
/// ```
#[expect(clippy::indexing_slicing, reason = "an axis is 0, 1 or 2, and each array has the three of them")]
pub fn first_in_box(from: [i64; 3], min: [i64; 3], max: [i64; 3]) -> Option<[i64; 3]> {
    let (from, mut min, mut max) = (from.map(bias), min.map(bias), max.map(bias));
    // The start of the nearest part of the box after the part that is still searched.
    let mut behind = None;
    for bit in (0..u64::BITS).rev() {
        let (here, below) = (1 << bit, (1 << bit) - 1);
        for axis in 0..3 {
            let lower_end = |c: u64| (c | here) & !below;
            match [from, min, max].map(|corner| corner[axis] & here != 0) {
                [false, false, false] | [true, true, true] => {}
                // The bit halves the box, and `from` is before the upper half.
                [false, false, true] => {
                    let mut upper = min;
                    upper[axis] = lower_end(upper[axis]);
                    behind = Some(upper);
                    max[axis] = (max[axis] & !here) | below;
                }
                [true, false, true] => min[axis] = lower_end(min[axis]),
                [false, true, true] => return Some(min.map(unbias)),
                [true, false, false] => return behind.map(|corner| corner.map(unbias)),
                [_, true, false] => return None,
            }
        }
    }
    Some(from.map(unbias))
}

/// Puts bit i of 16 bits at bit 3i.
const fn spread_3(mut v: u64) -> u64 {
    v = (v | (v << 16)) & 0x001f_0000_ff00_00ff;
    v = (v | (v << 8)) & 0x100f_00f0_0f00_f00f;
    v = (v | (v << 4)) & 0x10c3_0c30_c30c_30c3;
    (v | (v << 2)) & 0x1249_2492_4924_9249
}

/// Collects every third bit, from bit 0 on, of 48 bits.
const fn gather_3(mut v: u64) -> u64 {
    v &= 0x0000_2492_4924_9249;
    v = (v ^ (v >> 2)) & 0x10c3_0c30_c30c_30c3;
    v = (v ^ (v >> 4)) & 0x100f_00f0_0f00_f00f;
    v = (v ^ (v >> 8)) & 0x001f_0000_ff00_00ff;
    (v ^ (v >> 16)) & 0xffff
}

/// Puts bit i of 32 bits at bit 2i.
const fn spread_2(mut v: u64) -> u64 {
    v = (v | (v << 16)) & 0x0000_ffff_0000_ffff;
    v = (v | (v << 8)) & 0x00ff_00ff_00ff_00ff;
    v = (v | (v << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    v = (v | (v << 2)) & 0x3333_3333_3333_3333;
    (v | (v << 1)) & 0x5555_5555_5555_5555
}

/// Collects every second bit, from bit 0 on.
const fn gather_2(mut v: u64) -> u64 {
    v &= 0x5555_5555_5555_5555;
    v = (v ^ (v >> 1)) & 0x3333_3333_3333_3333;
    v = (v ^ (v >> 2)) & 0x0f0f_0f0f_0f0f_0f0f;
    v = (v ^ (v >> 4)) & 0x00ff_00ff_00ff_00ff;
    v = (v ^ (v >> 8)) & 0x0000_ffff_0000_ffff;
    (v ^ (v >> 16)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, bit by bit.
    fn naive<const N: usize>(coordinates: &[i64]) -> [u8; N] {
        let mut out = [0; N];
        let mut place = 0;
        for bit in (0..64).rev() {
            for c in coordinates {
                let set = (bias(*c) >> bit) & 1 == 1;
                out[place / 8] |= u8::from(set) << (7 - place % 8);
                place += 1;
            }
        }
        out
    }

    #[test]
    fn the_origin_lies_in_the_middle() {
        assert_eq!(encode_3d([0, 0, 0])[0], 0b1110_0000);
        assert_eq!(encode_3d([-1, -1, -1])[0], 0b0001_1111);
        assert!(encode_3d([-1, -1, -1]) < encode_3d([0, 0, 0]));
    }

    #[test]
    fn x_is_more_significant_than_y_and_y_than_z() {
        let [x, y, z] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(encode_3d);
        assert!(x > y && y > z);
        assert!(encode_2d([1, 0]) > encode_2d([0, 1]));
    }

    #[test]
    fn the_last_position_has_no_next() {
        assert_eq!(next_3d([i64::MAX; 3]), None);
        assert_eq!(next_3d([i64::MIN; 3]), Some([i64::MIN, i64::MIN, i64::MIN + 1]));
        assert_eq!(
            next_3d([-1, -1, -1]),
            Some([i64::MIN, i64::MIN, 0]),
            "a carry through every bit but three"
        );
    }

    proptest! {
        #[test]
        fn equals_the_definition(x: i64, y: i64, z: i64) {
            prop_assert_eq!(encode_3d([x, y, z]), naive(&[x, y, z]));
            prop_assert_eq!(encode_2d([x, z]), naive(&[x, z]));
        }

        #[test]
        fn decodes_what_it_encodes(x: i64, y: i64, z: i64) {
            prop_assert_eq!(decode_3d(&encode_3d([x, y, z])), [x, y, z]);
            prop_assert_eq!(decode_2d(&encode_2d([x, z])), [x, z]);
        }

        #[test]
        fn the_next_position_has_the_next_code(x: i64, y: i64, z: i64) {
            let next = next_3d([x, y, z]).map(encode_3d);
            let code = encode_3d([x, y, z]);
            // The next code is the code plus one, as a number of 24 bytes.
            let Some(next) = next else {
                prop_assert_eq!([x, y, z], [i64::MAX; 3]);
                return Ok(());
            };
            let value = |code: [u8; 24]| {
                let (high, low) = code.split_at(8);
                (u64::from_be_bytes(high.try_into().unwrap()), u128::from_be_bytes(low.try_into().unwrap()))
            };
            let (high, low) = value(code);
            let (sum, over) = low.overflowing_add(1);
            prop_assert_eq!(value(next), (high + u64::from(over), sum));
        }

        #[test]
        fn the_next_position_of_a_box_is_the_first_that_does_not_come_before(
            corners in prop::array::uniform6(-5_i64..5),
            from in prop::array::uniform3(-7_i64..7),
        ) {
            let [a, b, c, d, e, f] = corners;
            let (min, max) = ([a.min(d), b.min(e), c.min(f)], [a.max(d), b.max(e), c.max(f)]);
            let mut inside = alloc::vec::Vec::new();
            for x in min[0]..=max[0] {
                for y in min[1]..=max[1] {
                    for z in min[2]..=max[2] {
                        inside.push([x, y, z]);
                    }
                }
            }
            let not_before = inside.into_iter().filter(|p| encode_3d(*p) >= encode_3d(from));
            prop_assert_eq!(first_in_box(from, min, max), not_before.min_by_key(|p| encode_3d(*p)));
        }

        #[test]
        fn a_position_of_a_box_is_its_own_next(min: [i64; 3], size in prop::array::uniform3(0..i64::MAX), at in prop::array::uniform3(0..i64::MAX)) {
            let max = [0, 1, 2].map(|axis| min[axis].saturating_add(size[axis]));
            let inside = [0, 1, 2].map(|axis| min[axis].saturating_add(at[axis]).min(max[axis]));
            prop_assert_eq!(first_in_box(inside, min, max), Some(inside));
            prop_assert_eq!(first_in_box([i64::MIN; 3], min, max), Some(min));
            let behind_it_all = (max != [i64::MAX; 3]).then_some([i64::MAX; 3]);
            prop_assert_eq!(behind_it_all.and_then(|from| first_in_box(from, min, max)), None);
        }

        #[test]
        fn an_aligned_cube_is_one_range(x in -1_i64 << 57..1 << 57, y in -1_i64 << 57..1 << 57, z in -1_i64 << 57..1 << 57, inside in 0_i64..64, outside: [i64; 3]) {
            let min = [x, y, z].map(|c| c << 2);
            let max = min.map(|c| c + 3);
            let child = [min[0] + (inside >> 4), min[1] + ((inside >> 2) & 3), min[2] + (inside & 3)];
            let range = encode_3d(min)..=encode_3d(max);
            prop_assert!(range.contains(&encode_3d(child)));
            let is_child = outside.iter().zip(min).all(|(o, m)| (m..m + 4).contains(o));
            prop_assert_eq!(range.contains(&encode_3d(outside)), is_child);
        }
    }
}
