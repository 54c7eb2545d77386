//! What a returned commit survives.
//!
//! | mode | returns when | a killed process | a power cut |
//! |---|---|---|---|
//! | [`Fast`](Durability::Fast) | it is accepted | may take the newest commits | may take what was not [flushed](crate::World::flush) |
//! | [`Balanced`](Durability::Balanced) | it is accepted | may take the newest commits | takes about the last second |
//! | [`Process`](Durability::Process) | the system has it | survives | takes about the last second |
//! | [`Safe`](Durability::Safe) | the disk has it | survives | survives |
//! | [`SafeBatch`](Durability::SafeBatch) | the disk has it | survives | survives |
//!
//! Whatever the mode, a transaction is seen whole or not at all after any crash, and never without those before it.

use std::time::Duration;

/// When a commit returns.
///
/// *Accepted* is: checked, numbered, seen by every reader, its place in the order fixed. It is encoded and written by
/// another thread, soon; see [`WorldOptions::queue_bytes`](crate::WorldOptions::queue_bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// When it is accepted. A world that was opened so syncs only when it is flushed or closed.
    Fast,
    /// When it is accepted. The world syncs every second in which something was committed: for servers.
    Balanced,
    /// When the system has the bytes: they survive the process at once, the machine about a second later.
    Process,
    /// When the disk has the bytes, as soon as it can.
    Safe,
    /// When the disk has the bytes, after waiting a moment for other callers who then share the sync.
    SafeBatch,
}

impl Durability {
    /// How long a sync waits for company at most.
    pub(crate) const GROUP_COMMIT_WAIT: Duration = Duration::from_micros(500);

    /// Whether a commit returns before it is written.
    pub(crate) const fn is_queued(self) -> bool {
        matches!(self, Self::Fast | Self::Balanced)
    }

    /// Whether a commit returns only when it is synced.
    pub(crate) const fn is_synced(self) -> bool {
        matches!(self, Self::Safe | Self::SafeBatch)
    }
}
