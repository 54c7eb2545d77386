//! Palettes of block states, in the forms that versions of the game give them.
//!
//! An entry is read by its shape, whatever version its column is of. It is written in the form that was met, or in that of
//! the column's version. What a form would write otherwise than it was met is kept, see [`MetPalette`].

mod form;
mod met;

pub use form::{Form, Spelling};
pub use met::{Forms, Met, MetPalette, forms_of};
