//! The only place that indexes bytes: reading and writing fields, and packed bits.

mod annotate;
pub mod bits;
mod reader;
mod writer;

pub use annotate::annotate;
pub use reader::{Reader, Span, Trace};
pub use writer::Writer;
