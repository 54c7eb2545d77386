//! Chunks: laws, errors, goldens and annotated bytes.

mod broken;
pub(crate) mod goldens;
mod laws;
pub(crate) mod model;
mod raw;
mod unread;
