//! Compares what a store has with what was saved, cell for cell: no subject wins by losing data.

use crate::columns::Column;
use crate::failure::Failure;
use crate::place::Place;
use crate::subject::{Loaded, Subject};

/// Loads every expected column and compares it; how many there were.
///
/// # Errors
/// The first column that is missing or differs, and what the store says.
pub(crate) fn check<'c>(
    store: &mut dyn Subject,
    expected: impl IntoIterator<Item = (Place, &'c Column)>,
) -> Result<u64, Failure> {
    let mut count = 0;
    for (at, column) in expected {
        check_one(at, column, store.load(at)?.as_ref())?;
        count += 1;
    }
    Ok(count)
}

/// Compares one column.
///
/// # Errors
/// It is missing or differs.
pub(crate) fn check_one(at: Place, expected: &Column, loaded: Option<&Loaded>) -> Result<(), Failure> {
    let Place { x, z } = at;
    let Some(loaded) = loaded else { return Err(format!("the column at {x}, {z} is lost").into()) };
    let chunks = loaded.chunks();
    if chunks.len() != expected.chunks().len() {
        let (is, was) = (chunks.len(), expected.chunks().len());
        return Err(format!("the column at {x}, {z} has {is} chunks, {was} were saved").into());
    }
    for (index, (chunk, expected)) in chunks.into_iter().zip(expected.chunks()).enumerate() {
        if chunk != expected.as_ref() {
            return Err(format!("chunk {index} of the column at {x}, {z} is not what was saved").into());
        }
    }
    Ok(())
}
