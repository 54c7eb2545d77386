//! What was accepted and is not committed: lists of writes, in order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::{Dimension, EntityId};
use cg_store::prelude::Property;

use super::writes::{SavedColumn, Write, Writes};
use crate::column::ColumnEntity;
use crate::place::ColumnAt;

/// Lists of writes that become one commit.
#[derive(Debug, Default)]
pub(super) struct Batch {
    lists: Vec<Writes>,
    /// When the first and the last list came.
    times: Option<(Instant, Instant)>,
    memory_bytes: usize,
    /// The newest column of each place.
    columns: HashMap<(Dimension, i64, i64), Arc<SavedColumn>>,
    /// The newest write of each entity.
    entities: HashMap<EntityId, EntityWrite>,
}

/// The newest write of an entity.
#[derive(Debug, Clone)]
pub(super) enum EntityWrite {
    /// It is in this column.
    In(Arc<SavedColumn>),
    /// It was put alone: the numbers of the list and of the write.
    Put(usize, usize),
    Deleted,
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
        let now = Instant::now();
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        self.memory_bytes += writes.memory_bytes();
        let list = self.lists.len();
        for (place, write) in writes.all.iter().enumerate() {
            match write {
                Write::Column(saved) => self.note_column(saved),
                Write::Entity(id, _) => drop(self.entities.insert(*id, EntityWrite::Put(list, place))),
                Write::DeleteEntity(id) => drop(self.entities.insert(*id, EntityWrite::Deleted)),
                _ => {}
            }
        }
        self.lists.push(writes);
    }

    fn note_column(&mut self, saved: &Arc<SavedColumn>) {
        let at = &saved.column.at;
        let place = (at.dimension, at.x, at.z);
        // What an older column of the place had, or the host was shown, and is not in this one, has ended.
        let older = self.columns.insert(place, Arc::clone(saved));
        let older = older.iter().flat_map(|older| older.column.entities.iter().map(|entity| entity.id));
        let gone: Vec<EntityId> = older.chain(saved.shown.entities.iter().copied()).collect();
        for id in gone {
            let is_here = match self.entities.get(&id) {
                None => true,
                Some(EntityWrite::In(column)) => {
                    let of = &column.column.at;
                    (of.dimension, of.x, of.z) == place
                }
                Some(_) => false,
            };
            if is_here && !saved.is_part {
                self.entities.insert(id, EntityWrite::Deleted);
            }
        }
        for entity in &saved.column.entities {
            self.entities.insert(entity.id, EntityWrite::In(Arc::clone(saved)));
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.lists.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// When it ends if nothing else comes; `None` if it is empty.
    ///
    /// The lists of one save follow each other closely, and stay together where the time of the group ends within them.
    pub(super) fn end(&self, time: Duration) -> Option<Instant> {
        self.times.map(|(first, last)| (first + time).max(last + time / 10).min(first + 2 * time))
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
        self.columns.get(&(at.dimension, at.x, at.z))
    }

    /// The newest write of an entity.
    pub(super) fn entity(&self, id: EntityId) -> Option<&EntityWrite> {
        self.entities.get(&id)
    }

    /// A write of a list.
    pub(super) fn write(&self, list: usize, place: usize) -> Option<&Write> {
        self.lists.get(list)?.all.get(place)
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

impl SavedColumn {
    /// An entity of the column.
    pub(super) fn entity(&self, id: EntityId) -> Option<&ColumnEntity> {
        let place = self.column.entities.binary_search_by_key(&id, |entity| entity.id).ok()?;
        self.column.entities.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_after_its_time_or_with_what_follows_closely() {
        let time = Duration::from_secs(10);
        assert_eq!(Batch::default().end(time), None);
        let first = Instant::now();
        let end = |last: u64| {
            let times = Some((first, first + Duration::from_secs(last)));
            let end = Batch { times, ..Batch::default() }.end(time).expect("it has begun");
            (end - first).as_secs()
        };
        // One list; the last one long before the end; just before it; past it; and never later than twice its time.
        assert_eq!([0, 5, 9, 10, 15, 19, 20].map(end), [10, 10, 10, 11, 16, 20, 20]);
    }
}
