//! Packed bits: value i of width b lies in bits `[i·b, (i+1)·b)` of a little-endian bit stream.
//!
//! No padding stands between values, so a value may cross bytes; bits behind the last value are zero.

/// Bits that tell `count` kinds apart: ⌈log₂ count⌉, and 0 for one kind or none.
///
/// ```
/// use cg_format::wire::bits::width_for;
/// assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width_for), [0, 0, 1, 2, 2, 3, 8, 9]);
/// ```
pub const fn width_for(count: u64) -> u32 {
    if count <= 1 { 0 } else { u64::BITS - (count - 1).leading_zeros() }
}
