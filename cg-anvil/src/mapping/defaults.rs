//! What is written where nothing says another.

use std::ops::RangeInclusive;

/// The version whose layout is written where nothing says another: 1.21.1.
pub(crate) const DATA_VERSION: i32 = 3955;
/// The sections that a column can have.
pub(crate) const SECTION_Y: RangeInclusive<i64> = -128..=127;
