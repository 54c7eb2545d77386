//! One call that fails.

use std::collections::BTreeMap;

/// The kinds of calls that are counted, and of which one may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Call {
    /// A file is opened or made.
    Open,
    /// Bytes are written.
    Write,
    /// A file or a directory is synced.
    Sync,
    /// A name is changed.
    Rename,
    /// A name is removed.
    Unlink,
    /// A directory is made.
    Mkdir,
    /// Bytes or names are read.
    Read,
    /// A file is cut or made longer.
    Truncate,
    /// A file gets one more name.
    Link,
}

/// The call that fails: of a kind, the one of this number, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The kind.
    pub(crate) call: Call,
    /// The number.
    pub(crate) number: u64,
    /// The error that the caller gets.
    pub(crate) errno: i32,
    /// The caller is told that all went well: as if it did not look. The control.
    pub(crate) is_kept_secret: bool,
}

/// The calls so far, and the one that fails.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) fault: Option<Fault>,
    pub(crate) counts: BTreeMap<Call, u64>,
}

impl Faults {
    /// Counts a call; the fault if it is the one that fails.
    pub(crate) fn count(&mut self, call: Call) -> Option<Fault> {
        let count = self.counts.entry(call).or_default();
        *count += 1;
        self.fault.filter(|fault| fault.call == call && fault.number == *count)
    }
}
