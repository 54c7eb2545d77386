//! What a returned commit survives.
//!
//! | mode | returns when | a killed process | a power cut |
//! |---|---|---|---|
//! | [`Fast`](Durability::Fast) | it is accepted | may lose the newest commits | may lose what was not [flushed](crate::World::flush) |
//! | [`Balanced`](Durability::Balanced) | it is accepted | may lose the newest commits | loses about the last second |
//! | [`Process`](Durability::Process) | the system has it | survives | loses about the last second |
//! | [`Safe`](Durability::Safe) | the disk has it | survives | survives |
//! | [`SafeBatch`](Durability::SafeBatch) | the disk has it | survives | survives |
//!
//! In every mode a transaction is visible completely or not at all after a crash, and never without the transactions
//! before it.

use std::time::Duration;

/// When a commit returns.
///
/// *Accepted* means: checked, numbered, visible to every reader, with a fixed place in the order. Another thread
/// encodes and writes the commit soon after; see [`WorldOptions::queue_bytes`](crate::WorldOptions::queue_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// When it is accepted. A world that is opened with this mode syncs only when it is flushed or closed.
    Fast,
    /// When it is accepted. The world syncs once a second if something was committed. For servers.
    Balanced,
    /// When the operating system has the bytes. They survive a killed process at once, a power cut about a second
    /// later.
    Process,
    /// When the disk has the bytes, without any delay.
    Safe,
    /// When the disk has the bytes. Waits a moment for other callers, which then share the sync.
    SafeBatch,
}

impl Durability {
    /// The longest time that a sync waits for other callers.
    pub(crate) const GROUP_COMMIT_WAIT: Duration = Duration::from_micros(500);

    /// Whether a commit returns before it is written.
    pub(crate) const fn is_queued(self) -> bool {
        matches!(self, Self::Fast | Self::Balanced)
    }

    /// Whether a commit returns only when it is synced.
    pub const fn is_synced(self) -> bool {
        matches!(self, Self::Safe | Self::SafeBatch)
    }
}
