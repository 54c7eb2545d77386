//! What a returned commit survives.
//!
//! | level | a killed process | a power cut |
//! |---|---|---|
//! | [`Process`](Durability::Process) | survives | survives about a second later |
//! | [`Power`](Durability::Power) | survives | survives |
//!
//! A world syncs by itself every second in which something was committed, and whenever it is asked to.
//! Whatever the level, a transaction is seen whole or not at all after any crash.

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// When the system has the bytes: they survive the process, not the machine.
    Process,
    /// When the disk has the bytes.
    Power,
}
