//! The capabilities of an engine, and the latency of its calls.

/// The capabilities of an engine, and the latency of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing that an engine can or cannot do")]
pub struct Caps {
    /// Rows outlive the engine value.
    pub durable: bool,
    /// [`Engine::checkpoint`](crate::Engine::checkpoint) works.
    pub checkpoint: bool,
    /// Opened for reading only: every commit is refused.
    pub read_only: bool,
    /// The largest batch, in bytes of its keys and frames.
    pub max_batch_bytes: u64,
    /// What a call waits for.
    pub latency: Latency,
    /// Other processes may have the same rows open. One engine writes at a time: commits of the others fail with
    /// [`Fenced`](crate::EngineError::Fenced).
    pub is_shared: bool,
    /// A power cut may still lose a commit at [`Level::Process`](crate::Level::Process). It reaches
    /// [`Level::Power`](crate::Level::Power) later, or with [`sync`](crate::Engine::sync). If unset, both levels are
    /// the same, and no thread syncs.
    pub levels_apart: bool,
    /// The engine writes a large batch in stages. A batch of any size up to
    /// [`max_batch_bytes`](Self::max_batch_bytes) costs it no more memory than a small one. If unset, `cg-store`
    /// stages batches above a limit of its own.
    pub stages: bool,
}

/// What a call of an engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Latency {
    /// Only memory: less than a microsecond for a row.
    Memory,
    /// Sometimes a disk of this machine.
    Disk,
    /// A network round trip per call. Methods of [`Readable`](crate::Readable) and [`Engine`](crate::Engine) that do
    /// not return a `Result` use only memory.
    Network,
}

impl Caps {
    /// An engine in memory whose rows end with it, open for writing, without checkpoints. Set the fields that differ.
    pub const fn new(max_batch_bytes: u64) -> Self {
        Self {
            durable: false,
            checkpoint: false,
            read_only: false,
            max_batch_bytes,
            latency: Latency::Memory,
            is_shared: false,
            levels_apart: true,
            stages: false,
        }
    }
}
