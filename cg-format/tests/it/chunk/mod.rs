//! Chunks: laws, errors, goldens and annotated bytes.

mod laws;
mod model;
