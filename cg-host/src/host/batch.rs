//! What was accepted and is not committed: lists of writes, in order.

use std::sync::Arc;

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::prelude::Property;

use super::writes::{SavedColumn, Write, Writes};
use crate::place::ColumnAt;

/// Lists of writes that become one commit.
#[derive(Debug, Default)]
pub(super) struct Batch {
    lists: Vec<Writes>,
    memory_bytes: usize,
}

/// The newest write of something.
#[derive(Debug)]
pub(super) enum Newest<T> {
    Put(T),
    Deleted,
}

impl<T> Newest<T> {
    pub(super) fn value(self) -> Option<T> {
        match self {
            Self::Put(value) => Some(value),
            Self::Deleted => None,
        }
    }
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

    /// The newest write of a whole entity; `None` if there is none.
    pub(super) fn entity(&self, id: EntityId) -> Option<Newest<Entity>> {
        self.writes().rev().find_map(|write| match write {
            Write::Entity(of, entity) if *of == id => Some(Newest::Put(Entity::clone(entity))),
            Write::DeleteEntity(of) if *of == id => Some(Newest::Deleted),
            _ => None,
        })
    }

    /// The newest write of a property; `None` if there is none.
    pub(super) fn property(&self, property: &Property) -> Option<Newest<Vec<u8>>> {
        self.writes().rev().find_map(|write| match write {
            Write::Property(of, bytes) if of == property => {
                Some(bytes.clone().map_or(Newest::Deleted, Newest::Put))
            }
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
