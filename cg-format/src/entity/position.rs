//! The position of an entity: a block and a fraction of it.

use crate::wire::{Reader, Writer};
use crate::{BlockPos, DecodeError, Dimension, Problem};

/// A point of a dimension: a block, and the distance from its corner with the smallest coordinates as fractions of a
/// block.
///
/// The precision is the same everywhere, while a single float would lose the fraction far from the origin. Fractions
/// are at least 0 and below 1, never negative zero, so one point has one form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntityPos {
    dimension: Dimension,
    block: BlockPos,
    fraction: [f32; 3],
}

/// No fraction is NaN, so every position equals itself.
impl Eq for EntityPos {}

/// A coordinate is invalid for a position.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAPosition {
    /// A fraction of a block is negative, not below 1, or NaN.
    #[error("the fraction of {axis} is {found:?}, allowed is 0.0 to below 1.0")]
    Fraction {
        /// `x`, `y` or `z`.
        axis: char,
        /// The fraction found.
        found: f32,
    },
    /// A coordinate is NaN, or beyond the blocks that an `i64` can represent.
    #[error("{axis} is {found:?}, allowed is a number from -2^63 to below 2^63")]
    Coordinate {
        /// `x`, `y` or `z`.
        axis: char,
        /// The coordinate found.
        found: f64,
    },
}

/// The names of the axes in errors.
const AXES: [char; 3] = ['x', 'y', 'z'];

impl EntityPos {
    /// A position from a block and fractions of it along x, y and z. Negative zero becomes zero.
    ///
    /// # Errors
    /// [`NotAPosition::Fraction`] with the first fraction outside 0 to below 1.
    pub fn new(dimension: Dimension, block: BlockPos, fraction: [f32; 3]) -> Result<Self, NotAPosition> {
        for (axis, found) in AXES.into_iter().zip(fraction) {
            if !(0.0..1.0).contains(&found) {
                return Err(NotAPosition::Fraction { axis, found });
            }
        }
        // Zero plus negative zero is zero.
        Ok(Self { dimension, block, fraction: fraction.map(|part| part + 0.0) })
    }

    /// The position nearest to a point in blocks from the origin, as many games store it.
    ///
    /// Exact if the fraction fits an `f32`; otherwise rounded to the nearest value, possibly in the next block.
    ///
    /// # Errors
    /// [`NotAPosition::Coordinate`] with the first one that is NaN or outside the world.
    pub fn from_f64(dimension: Dimension, point: [f64; 3]) -> Result<Self, NotAPosition> {
        let mut parts = [(0, 0.0); 3];
        for ((axis, found), part) in AXES.into_iter().zip(point).zip(&mut parts) {
            *part = split(found).ok_or(NotAPosition::Coordinate { axis, found })?;
        }
        let [(x, fraction_x), (y, fraction_y), (z, fraction_z)] = parts;
        Self::new(dimension, BlockPos::new(x, y, z), [fraction_x, fraction_y, fraction_z])
    }

    /// The dimension.
    pub const fn dimension(self) -> Dimension {
        self.dimension
    }

    /// The block that contains the point.
    pub const fn block(self) -> BlockPos {
        self.block
    }

    /// The fraction of the block along x, y and z.
    pub const fn fraction(self) -> [f32; 3] {
        self.fraction
    }

    /// The point in blocks from the origin. Far from it an `f64` cannot represent the fraction and rounds.
    pub fn to_f64(self) -> [f64; 3] {
        let BlockPos { x, y, z } = self.block;
        let [fraction_x, fraction_y, fraction_z] = self.fraction.map(f64::from);
        [x as f64 + fraction_x, y as f64 + fraction_y, z as f64 + fraction_z]
    }

    pub(crate) fn write(self, writer: &mut Writer<'_>) {
        writer.u64(self.dimension.get());
        writer.i64(self.block.x);
        writer.i64(self.block.y);
        writer.i64(self.block.z);
        for part in self.fraction {
            writer.f32(part);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let dimension = Dimension::new(reader.u64("position dimension")?);
        let block = BlockPos::new(reader.i64("block x")?, reader.i64("block y")?, reader.i64("block z")?);
        let fraction = [
            read_fraction(reader, "fraction x")?,
            read_fraction(reader, "fraction y")?,
            read_fraction(reader, "fraction z")?,
        ];
        Ok(Self { dimension, block, fraction })
    }
}

fn read_fraction(reader: &mut Reader<'_>, field: &'static str) -> Result<f32, DecodeError> {
    let here = reader.clone();
    let found = reader.f32(field)?;
    if (0.0..1.0).contains(&found) && found.is_sign_positive() {
        return Ok(found);
    }
    Err(here.error(Problem::NotAFraction { field, found_bits: found.to_bits() }))
}

/// The block of a coordinate and the fraction in it; `None` outside `i64`.
fn split(coordinate: f64) -> Option<(i64, f32)> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if !(-LIMIT..LIMIT).contains(&coordinate) {
        return None;
    }
    // The cast rounds towards zero. Below zero the floor is one less, unless the coordinate is an integer.
    let toward_zero = coordinate as i64;
    let block = if toward_zero as f64 > coordinate { toward_zero - 1 } else { toward_zero };
    let fraction = (coordinate - block as f64) as f32;
    // A fraction may round up to a whole block. Coordinates near the largest block are integers, so it never overflows.
    Some(if fraction < 1.0 { (block, fraction) } else { (block + 1, 0.0) })
}
