//! Palettes of block states, in the forms that versions of the game give them.
//!
//! An entry is read by its shape, whatever version its column is of. It is written in the form that was met, or in that of
//! the column's version. What a form would write otherwise than it was met is kept, see [`MetPalette`].

mod form;
mod met;

#[cfg(test)]
mod tests;

pub use form::Form;
pub(super) use form::Spelling;
pub use met::MetPalette;
pub(super) use met::{Forms, Met, forms_of};
