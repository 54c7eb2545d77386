//! What an export takes where nothing says another.

use std::ops::RangeInclusive;

/// The version whose layout is written where nothing says another: 1.21.1.
pub(super) const DATA_VERSION: i32 = 3955;
/// The sections that a column can have.
pub(super) const SECTION_Y: RangeInclusive<i64> = -128..=127;
