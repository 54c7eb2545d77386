//! Named Binary Tag, the big-endian tree format of Java saves: a checked view of borrowed bytes, and a writer.
//!
//! [`Document::parse`] and [`Compound::parse`] check the bytes once within [`Limits`]. After that a [`Compound`] is a
//! slice: a lookup walks over its fields. [`Compound::raw`] returns its bytes unchanged. A parsed tree of a library
//! loses the order of fields, duplicate names and the type of an empty list. Block entities and entities must be
//! written back byte for byte, so this is not such a tree.
//!
//! ```
//! use cg_snapshot::nbt::{self, Document, Limits};
//!
//! let bytes = nbt::document(|root| {
//!     root.int("DataVersion", 3955);
//!     root.compound("Level", |level| level.byte("Y", -4));
//! });
//! let document = Document::parse(&bytes, &Limits::default())?;
//! let level = document.root.compound("Level").expect("just written");
//! assert_eq!(level.int("Y"), Some(-4));
//! assert_eq!(level.raw(), b"\x01\x00\x01Y\xfc\x00");
//! # Ok::<(), nbt::NbtError>(())
//! ```

mod cursor;
mod error;
mod tag;
mod view;
mod write;

#[cfg(test)]
mod tests;

pub use error::{NbtError, NbtProblem};
pub use tag::Tag;
pub use view::{Compound, Document, Field, Ints, Limits, List, Longs, Text, Value};
pub use write::{CompoundWriter, TooLong, compounds_header, document, payload};
