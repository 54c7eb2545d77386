//! Named Binary Tag, the big-endian tree of a Java save: a checked view of borrowed bytes, and a writer.
//!
//! [`Document::parse`] and [`Compound::parse`] walk the bytes once within [`Limits`]; after that a [`Compound`] is a
//! slice whose fields are found by walking it, and whose bytes ([`Compound::raw`]) can be kept exactly as they are.
//! That is why this is not a library's tree: block entities and entities have to come back byte for byte,
//! and a parsed tree loses the order of fields, doubled names and the type of an empty list.
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
