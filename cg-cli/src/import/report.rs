//! What an import did, and what it could not do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What an import did. Of one that was killed and run again, everything it did in all its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Columns of the save that arrived, also those without blocks.
    pub imported_columns: u64,
    /// Chunks of ours that were stored: sections with blocks.
    pub imported_chunks: u64,
    /// Chunks that the world had and kept.
    pub kept_chunks: u64,
    /// Entities that arrived, each rider by itself.
    pub entities: u64,
    /// Of these, entities that no chunk owns.
    pub detached: u64,
    /// Entities that the world had and kept.
    pub kept_entities: u64,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// Entities with another UUID than the save gives them.
    pub rekeyed: Vec<Rekeyed>,
    /// What the save holds and the world does not: names of fields.
    pub not_carried: BTreeSet<String>,
}

/// A part of a save that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unreadable {
    /// The region file, from the save's folder on.
    pub file: String,
    /// The slot, 0 … 1023; `None` when the whole file could not be opened.
    pub slot: Option<u16>,
    /// Why.
    pub reason: String,
}

/// An entity whose UUID was met before, or that has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rekeyed {
    /// The region file, from the save's folder on.
    pub file: String,
    /// The slot.
    pub slot: u16,
    /// The UUID in the save, which the first entity keeps; `None` when it has none.
    pub was: Option<Uuid>,
    /// The UUID in the world. Follows from the entity's bytes.
    pub is: Uuid,
}

impl ImportReport {
    /// Whether everything could be read.
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_empty()
    }

    pub(super) fn add(&mut self, part: Self) {
        self.imported_columns += part.imported_columns;
        self.imported_chunks += part.imported_chunks;
        self.kept_chunks += part.kept_chunks;
        self.entities += part.entities;
        self.detached += part.detached;
        self.kept_entities += part.kept_entities;
        self.unreadable.extend(part.unreadable);
        self.rekeyed.extend(part.rekeyed);
        self.not_carried.extend(part.not_carried);
    }
}
