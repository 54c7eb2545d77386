//! A chunk.
/// A chunk.
#[derive(Debug)]
pub struct Chunk;
