//! The durability levels of a commit.

/// How durable a commit is when it returns.
///
/// | level | a killed process | a power cut |
/// |---|---|---|
/// | `Process` | survives | may be lost with all later commits, never in part |
/// | `Power` | survives | survives |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Written to the operating system.
    Process,
    /// Synced to the disk.
    Power,
}
