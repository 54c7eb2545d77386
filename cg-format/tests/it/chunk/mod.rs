//! Chunks: laws, errors, goldens and annotated bytes.

mod broken;
mod goldens;
mod laws;
pub(crate) mod model;
mod raw;
mod unread;
