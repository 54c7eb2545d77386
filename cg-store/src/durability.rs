//! What a returned commit survives.
//!
//! | level | a killed process | a power cut |
//! |---|---|---|
//! | [`Process`](Durability::Process) | survives | survives from the next sync on |
//! | [`Power`](Durability::Power) | survives | survives |
//!
//! Whatever the level, a transaction is seen whole or not at all after any crash.

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// When the system has the bytes: they survive the process, not the machine.
    Process,
    /// When the disk has the bytes.
    Power,
}
