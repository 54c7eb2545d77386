//! The operations that are recorded.

use std::ffi::{OsStr, OsString};

use super::tree::Node;

/// One operation that was done, with its bytes.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A file was made.
    MakeFile { dir: Node, name: OsString, node: Node },
    /// A directory was made.
    MakeDir { dir: Node, name: OsString, node: Node },
    /// A file got one more name.
    Link { dir: Node, name: OsString, node: Node },
    /// A name was removed.
    Remove { dir: Node, name: OsString },
    /// A name was changed; what had the new one lost it.
    Rename { from: (Node, OsString), to: (Node, OsString) },
    /// Bytes were written.
    Write { node: Node, at: u64, bytes: Vec<u8> },
    /// A file was cut or made longer.
    Resize { node: Node, len: u64 },
    /// A file was synced.
    Sync { node: Node },
    /// The sync of a file failed. The system takes for written what was not, so no later sync writes it.
    FailedSync { node: Node },
    /// A directory was synced.
    SyncDir { dir: Node },
}

impl Op {
    /// The file whose bytes it changes.
    pub(crate) fn changed_file(&self) -> Option<Node> {
        match self {
            Self::Write { node, .. } | Self::Resize { node, .. } => Some(*node),
            _ => None,
        }
    }

    /// Whether it changes names in a directory.
    pub(crate) fn changes_names_in(&self, changed: Node) -> bool {
        match self {
            Self::MakeFile { dir, .. }
            | Self::MakeDir { dir, .. }
            | Self::Link { dir, .. }
            | Self::Remove { dir, .. } => *dir == changed,
            Self::Rename { from, to } => from.0 == changed || to.0 == changed,
            _ => false,
        }
    }

    /// Whether it is a sync that succeeded.
    pub(crate) fn is_sync(&self) -> bool {
        matches!(self, Self::Sync { .. } | Self::SyncDir { .. })
    }

    /// The node that it made under a name of the root.
    pub(crate) fn made_in_root(&self, wanted: &OsStr) -> Option<Node> {
        match self {
            Self::MakeFile { dir: super::ROOT, name, node } if name == wanted => Some(*node),
            _ => None,
        }
    }
}
