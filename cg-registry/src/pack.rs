//! What the world remembers about the packs it was opened with.

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::kind::ListKind;

/// A stored record about a pack: written when it comes, changes, goes or returns. The last one holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRow {
    /// The pack's name.
    pub pack: String,
    /// The version last seen.
    pub version: String,
    /// The namespaces that are its own, ascending.
    pub namespaces: Vec<String>,
    /// Whether it was there.
    pub present: bool,
}

/// A stored record about a second name of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameRow {
    /// The list of the entry.
    pub list: ListKind,
    /// Its position in the list.
    pub id: u64,
    /// The name that finds it from now on, beside the one in the list.
    pub name: Name,
}
