//! The columns of worlds that lie above one another, square by square.

use std::collections::BTreeSet;

use cg_format::{ChunkBox, Dimension};

use crate::api::read_view::ReadView;
pub use crate::read::square::ColumnSquare;
use crate::storage::error::Error;

/// The squares of 16 by 16 columns that may have chunks of an area, and damage that hides others. A square is named by the x
/// and z of its columns, divided by 16.
///
/// # Errors
/// If the engine fails.
pub fn squares(
    view: &ReadView<'_>,
    dimension: Dimension,
    area: &ChunkBox,
) -> Result<(BTreeSet<[i64; 2]>, Vec<Error>), Error> {
    view.inner().squares(dimension, area)
}

/// Reads the part that a world has of a square, between two heights, both included. Parts are added from the lowest world up.
/// A damaged chunk is an error of its column.
///
/// # Errors
/// If the engine fails. Nothing was added then.
pub fn add_part(
    square: &mut ColumnSquare,
    view: &ReadView<'_>,
    dimension: Dimension,
    ys: [i64; 2],
) -> Result<(), Error> {
    square.add(view.inner(), dimension, ys)
}
