//! The stored records about the packs of a world.

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::kind::ListKind;

/// A stored record about a pack. One is written when the pack is added, changes, disappears or returns. The last one is
/// valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRow {
    /// The pack's name.
    pub pack: String,
    /// The version that was offered last.
    pub version: String,
    /// Its own namespaces, ascending.
    pub namespaces: Vec<String>,
    /// Whether the pack was offered.
    pub present: bool,
}

/// A stored record about an alias of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameRow {
    /// The list of the entry.
    pub list: ListKind,
    /// Its position in the list.
    pub id: u64,
    /// The alias, which finds it in addition to the name in the list.
    pub name: Name,
}
