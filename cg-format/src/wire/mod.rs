//! Reads and writes fields and packed bits. No other module indexes bytes.

mod annotate;
pub mod bits;
mod reader;
mod writer;

pub use annotate::annotate;
pub use reader::{Reader, Span, Trace};
pub use writer::Writer;
