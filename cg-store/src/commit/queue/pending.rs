//! The content of queued commits, for readers.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};
use foldhash::HashMap;

use crate::commit::transaction::Changes;
use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::read::cache::Stored;
use crate::storage::object_key::ObjectKey;

/// The last queued change of each thing, with the commit that made it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    chunks: HashMap<ChunkAt, (u64, Lookup<Stored>)>,
    entities: HashMap<EntityId, (u64, Option<Entity>)>,
    properties: HashMap<Property, (u64, Option<Vec<u8>>)>,
    objects: HashMap<ObjectKey, (u64, StoredObject)>,
    records: HashMap<RecordId, (u64, Option<Arc<Record>>)>,
}

impl Pending {
    pub(super) fn add(&mut self, seq: u64, changes: &Changes) {
        for (at, change) in &changes.chunks {
            self.chunks.insert(*at, (seq, change.stored_as(seq)));
        }
        for (id, entity) in &changes.entities {
            self.entities.insert(*id, (seq, entity.clone()));
        }
        for (property, bytes) in &changes.properties {
            self.properties.insert(property.clone(), (seq, bytes.clone()));
        }
        for (key, object) in &changes.objects {
            self.objects.insert(key.clone(), (seq, object.clone()));
        }
        for (id, change) in &changes.records {
            self.records.insert(*id, (seq, change.new.clone()));
        }
    }

    /// Forgets the changes of a commit, except those that a later commit replaced.
    pub(super) fn remove(&mut self, seq: u64, changes: &Changes) {
        for (at, _) in &changes.chunks {
            remove(&mut self.chunks, *at, seq);
        }
        for (id, _) in &changes.entities {
            remove(&mut self.entities, *id, seq);
        }
        for (property, _) in &changes.properties {
            remove(&mut self.properties, property.clone(), seq);
        }
        for (key, _) in &changes.objects {
            remove(&mut self.objects, key.clone(), seq);
        }
        for (id, _) in &changes.records {
            remove(&mut self.records, *id, seq);
        }
    }

    pub(super) fn chunk(&self, at: ChunkAt) -> Option<Lookup<Stored>> {
        self.chunks.get(&at).map(|(_, chunk)| chunk.clone())
    }

    pub(super) fn entity(&self, id: EntityId) -> Option<(u64, Option<Entity>)> {
        self.entities.get(&id).cloned()
    }

    pub(super) fn property(&self, property: &Property) -> Option<(u64, Option<Vec<u8>>)> {
        self.properties.get(property).cloned()
    }

    pub(super) fn object(&self, key: &ObjectKey) -> Option<(u64, StoredObject)> {
        self.objects.get(key).cloned()
    }

    pub(super) fn record(&self, id: RecordId) -> Option<(u64, Option<Arc<Record>>)> {
        self.records.get(&id).cloned()
    }
}

fn remove<K: Eq + Hash, T>(map: &mut HashMap<K, (u64, T)>, key: K, seq: u64) {
    if let Entry::Occupied(entry) = map.entry(key)
        && entry.get().0 == seq
    {
        entry.remove();
    }
}
