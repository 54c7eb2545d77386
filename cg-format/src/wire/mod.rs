//! The only place that indexes bytes: reading and writing fields, and packed bits.

pub mod bits;
mod reader;
mod writer;

pub use reader::{Reader, Span, Trace};
pub use writer::Writer;
