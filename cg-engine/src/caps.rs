//! What an engine can do.

/// What an engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caps {
    /// Rows outlive the engine value.
    pub durable: bool,
    /// [`Engine::checkpoint`](crate::Engine::checkpoint) works.
    pub checkpoint: bool,
    /// Opened for reading only: every commit is refused.
    pub read_only: bool,
    /// The largest batch, in bytes of its keys and frames.
    pub max_batch_bytes: u64,
}

impl Caps {
    /// Of an engine whose rows end with it, open for writing, without checkpoints. Set the fields that differ.
    pub const fn new(max_batch_bytes: u64) -> Self {
        Self { durable: false, checkpoint: false, read_only: false, max_batch_bytes }
    }
}
