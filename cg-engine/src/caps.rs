//! What an engine can do, and what its calls cost.

/// What an engine can do, and what its calls cost.
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
    /// Other processes may have the same rows open. One engine writes at a time: the commits of the others are
    /// [`Fenced`](crate::EngineError::Fenced).
    pub is_shared: bool,
    /// A commit at [`Level::Process`](crate::Level::Process) may still be lost with the power: it reaches
    /// [`Level::Power`](crate::Level::Power) later, or by [`sync`](crate::Engine::sync). If unset, both levels are one, and
    /// no thread syncs.
    pub levels_apart: bool,
    /// A batch of any size up to [`max_batch_bytes`](Self::max_batch_bytes) costs the engine no more memory than a small one:
    /// it writes a large batch in stages itself. If unset, `cg-store` does so for batches above a limit of its own.
    pub stages: bool,
}

/// What a call of an engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Latency {
    /// Memory alone: less than a microsecond for a row.
    Memory,
    /// A disk of this machine, now and then.
    Disk,
    /// A round trip over a network, each time. What [`Readable`](crate::Readable) and [`Engine`](crate::Engine) answer
    /// without a `Result` is answered from memory.
    Network,
}

impl Caps {
    /// Of an engine in memory whose rows end with it, open for writing, without checkpoints. Set the fields that differ.
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
