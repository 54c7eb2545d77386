//! What was accepted and is not committed: lists of writes, in order.

use std::sync::Arc;

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::prelude::{CommitSeq, Property};
use cg_store::{ErrorKind, Transaction, World};

use super::Inner;
use super::writes::{SavedColumn, Write, Writes};
use crate::column::ColumnAt;
use crate::column::save::Save;
use crate::error::Error;

/// Lists of writes that become one commit.
#[derive(Debug, Default)]
pub(super) struct Batch {
    lists: Vec<Writes>,
    memory_bytes: usize,
}

/// What a commit of writes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) seq: CommitSeq,
    /// Whether a column differed from what was stored, or anything else was written.
    pub(super) changed: bool,
}

impl Batch {
    pub(super) fn push(&mut self, writes: Writes) {
        self.memory_bytes += writes.memory_bytes();
        self.lists.push(writes);
    }

    pub(super) const fn len(&self) -> usize {
        self.lists.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(super) fn lists(&self) -> &[Writes] {
        &self.lists
    }

    fn writes(&self) -> impl DoubleEndedIterator<Item = &Write> {
        self.lists.iter().flat_map(|list| &list.all)
    }

    /// The newest column of this place, in any heights.
    pub(super) fn column(&self, at: &ColumnAt) -> Option<&Arc<SavedColumn>> {
        self.writes().rev().find_map(|write| match write {
            Write::Column(saved) => {
                let of = &saved.column.at;
                ((of.dimension, of.x, of.z) == (at.dimension, at.x, at.z)).then_some(saved)
            }
            _ => None,
        })
    }

    /// The newest write of an entity; `Some(None)` if it is deleted.
    pub(super) fn entity(&self, id: EntityId) -> Option<Option<&Entity>> {
        self.writes().rev().find_map(|write| match write {
            Write::Entity(of, entity) if *of == id => Some(Some(&**entity)),
            Write::DeleteEntity(of) if *of == id => Some(None),
            _ => None,
        })
    }

    /// The newest write of a property.
    pub(super) fn property(&self, property: &Property) -> Option<Option<&[u8]>> {
        self.writes().rev().find_map(|write| match write {
            Write::Property(of, bytes) if of == property => Some(bytes.as_deref()),
            _ => None,
        })
    }

    /// The settings that are written, oldest first.
    pub(super) fn settings(&self) -> impl Iterator<Item = &cg_store::settings::WorldSettings> {
        self.writes().filter_map(|write| match write {
            Write::Settings(settings) => Some(&**settings),
            _ => None,
        })
    }
}

impl Inner {
    /// Commits lists of writes in one transaction.
    pub(super) fn run(&self, lists: &[Writes]) -> Result<Done, Error> {
        let committed = self.world.transact(|tx| self.write(tx, lists))?;
        Ok(Done { seq: committed.seq, changed: committed.value })
    }

    /// Writes lists into a transaction. Returns whether anything changes.
    pub(super) fn write(&self, tx: &mut Transaction<'_>, lists: &[Writes]) -> Result<bool, Error> {
        self.expect(tx, lists)?;
        let mut changed = false;
        for write in lists.iter().flat_map(|list| &list.all) {
            if let Write::Column(saved) = write {
                changed |= saved.as_save().put(tx)?;
            } else {
                write.run(tx)?;
                changed = true;
            }
        }
        // An entity that went from one column to another was put there before it is missed here.
        for write in lists.iter().flat_map(|list| &list.all) {
            if let Write::Column(saved) = write {
                changed |= saved.as_save().delete_gone(tx)?;
            }
        }
        Ok(changed)
    }

    fn expect(&self, tx: &mut Transaction<'_>, lists: &[Writes]) -> Result<(), Error> {
        for (at, expected) in lists.iter().flat_map(|list| &list.chunks) {
            // The load guards the chunk until the commit.
            tx.load(*at).map_err(|error| Error::of_chunk(*at, error))?;
            let found = self.world.load_versioned(*at).map_err(|error| Error::of_chunk(*at, error))?;
            let found = found.map_or(0, |(_, version)| version.get());
            if found != *expected {
                return Err(Error::Expected {
                    at: Some(*at),
                    what: at.to_string(),
                    expected: *expected,
                    found,
                });
            }
        }
        for (id, expected) in lists.iter().flat_map(|list| &list.entities) {
            tx.entity(*id)?;
            let found = self.world.entity_version(*id)?.map_or(0, CommitSeq::get);
            if found != *expected {
                let what = format!("entity {}", id.get());
                return Err(Error::Expected { at: None, what, expected: *expected, found });
            }
        }
        Ok(())
    }
}

impl SavedColumn {
    fn as_save(&self) -> Save<'_> {
        let Self { binding, column, is_part, shown, damaged } = self;
        Save { binding, column, is_part: *is_part, shown, damaged }
    }
}

/// The world, for the thread of groups: writable again, if the failure has passed.
pub(super) fn try_resume(world: &World) -> Result<(), Error> {
    match world.resume() {
        // Nothing was wrong with the world itself.
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        resumed => Ok(resumed?),
    }
}
