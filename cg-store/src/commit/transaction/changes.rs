//! The resolved changes of a transaction.

use std::fmt;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId, Space, key};
use cg_registry::Catalog;

use super::check::Checked;
use super::named_cells::NamedCells;
use super::rows::{RowWriter, entity_row};
use crate::each_kind;
use crate::kinds::kind::{self, Kind};
use crate::kinds::object::{self, StoredObject};
use crate::kinds::property::Property;
use crate::kinds::record::RecordChange;
use crate::kinds::snapshots::SnapshotChange;
use crate::read::cache::Stored;
use crate::storage::change_log::Logged;
use crate::storage::error::ConflictKey;
use crate::storage::object_key::ObjectKey;

/// A kind as a commit changes it.
pub(crate) trait Changeable: Checked {
    /// A change of a value.
    type Change: fmt::Debug;

    /// The value that is stored after the change; `None` if nothing is.
    fn new(change: &Self::Change) -> Option<&Self::Value>;

    /// The maximum size of the change's rows, but for frames.
    fn max_rows_bytes(key: &Self::Key, change: &Self::Change) -> usize;

    /// Adds the rows of the change.
    fn put_rows(out: &mut RowWriter<'_>, key: &Self::Key, change: &Self::Change);

    /// How the log of changes names a value; `None` if its kind is not logged.
    fn logged(_: &Self::Key) -> Option<(Space, Vec<u8>)> {
        None
    }

    /// The row of a value before the change; `None` if there is none.
    fn stored_row(key: &Self::Key, _: &Self::Change) -> Option<(Space, Vec<u8>)> {
        Self::logged(key)
    }
}

/// The changes of one kind.
pub(crate) type Changed<K> = Vec<(<K as Kind>::Key, <K as Changeable>::Change)>;

/// Everything that one commit changes, without what stays as it is.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The registry by which the changes are checked and encoded.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) chunks: Changed<kind::Chunks>,
    pub(crate) entities: Changed<kind::Entities>,
    pub(crate) properties: Changed<kind::Properties>,
    pub(crate) objects: Changed<kind::Objects>,
    pub(crate) records: Changed<kind::Records>,
    /// Transactions change no snapshots. If this is set, the commit changes nothing else.
    pub(crate) snapshot: Option<SnapshotChange>,
    /// What the log of changes gets; `None` if there was no log when the changes were prepared.
    pub(super) logged: Option<Vec<Logged>>,
}

/// One chunk before and after.
#[derive(Debug)]
pub struct ChunkChange {
    /// The stored chunk before the change.
    pub old: Lookup<Stored>,
    /// The chunk after the change; `None` is a deletion.
    pub new: Option<Arc<Chunk>>,
    /// Set if the blocks of no other cells differ.
    pub(super) named: Option<Arc<NamedCells>>,
}

impl Changes {
    /// A commit that saves or deletes a snapshot, and changes nothing else.
    pub(crate) const fn of_snapshot(catalog: Arc<Catalog>, change: SnapshotChange) -> Self {
        Self {
            catalog,
            chunks: Vec::new(),
            entities: Vec::new(),
            properties: Vec::new(),
            objects: Vec::new(),
            records: Vec::new(),
            snapshot: Some(change),
            logged: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.snapshot.is_none() && !each_kind!(self, |changes| changes.is_empty()).contains(&false)
    }

    /// Whether anything is put, so not only deleted.
    pub(super) fn puts_anything(&self) -> bool {
        let is_put = each_kind!(self, |changes: K| {
            changes.iter().filter_map(|(_, change)| K::new(change)).any(K::is_live)
        });
        is_put.contains(&true)
    }

    /// The keys of what is changed, for conflict checks of transactions.
    pub(super) fn keys(&self) -> Vec<ConflictKey> {
        let mut keys = Vec::new();
        each_kind!(self, |changes: K| keys.extend(changes.iter().map(|(key, _)| K::conflict_key(key))));
        keys
    }

    /// The approximate memory that it holds until it is written. A snapshot is not counted: its caller waits until it
    /// is written, and other callers should not have to wait for it.
    pub(crate) fn memory_bytes(&self) -> u64 {
        /// The memory of an entry here and among the pending changes.
        const ENTRY_BYTES: usize = 256;
        let bytes = each_kind!(self, |changes: K| {
            let value_bytes = |change| K::new(change).map_or(0, K::memory_bytes);
            let bytes =
                changes.iter().map(|(key, change)| ENTRY_BYTES + K::key_bytes(key) + value_bytes(change));
            bytes.sum::<usize>()
        });
        bytes.iter().sum::<usize>() as u64
    }

    /// The maximum size of the rows, keys included. Costs a look at each chunk's palette and lists.
    pub(super) fn max_rows_bytes(&self) -> u64 {
        /// A key and a frame.
        const ROW_BYTES: usize = 64;
        let bytes = each_kind!(self, |changes: K| {
            changes.iter().map(|(key, change)| ROW_BYTES + K::max_rows_bytes(key, change)).sum::<usize>()
        });
        let log_bytes = self.logged.iter().flatten().map(Logged::max_len_bytes).sum::<u64>();
        bytes.iter().sum::<usize>() as u64 + log_bytes
    }
}

impl ChunkChange {
    /// The chunk as the commit with this number stores it.
    pub(crate) fn stored_as(&self, seq: u64) -> Lookup<Stored> {
        match &self.new {
            Some(chunk) => Lookup::Found(Stored { chunk: Arc::clone(chunk), version: seq, is_current: true }),
            None => Lookup::Tombstone,
        }
    }
}

impl Changeable for kind::Chunks {
    type Change = ChunkChange;

    fn new(change: &ChunkChange) -> Option<&Arc<Chunk>> {
        change.new.as_ref()
    }

    fn max_rows_bytes(_: &ChunkAt, change: &ChunkChange) -> usize {
        /// Two change marks and an outline with their keys and frames.
        const BESIDE_A_CHUNK_BYTES: usize = 1024;
        BESIDE_A_CHUNK_BYTES + change.new.as_ref().map_or(0, |chunk| chunk.max_len_bytes())
    }

    fn put_rows(out: &mut RowWriter<'_>, at: &ChunkAt, change: &ChunkChange) {
        out.put_chunk(*at, change);
    }
}

impl Changeable for kind::Entities {
    type Change = Option<Entity>;

    fn new(change: &Option<Entity>) -> Option<&Entity> {
        change.as_ref()
    }

    fn max_rows_bytes(_: &EntityId, change: &Option<Entity>) -> usize {
        change.as_ref().map_or(0, |entity| entity_row(entity, 0).len_bytes())
    }

    fn put_rows(out: &mut RowWriter<'_>, id: &EntityId, change: &Option<Entity>) {
        out.put_entity(*id, change.as_ref());
    }

    fn logged(id: &EntityId) -> Option<(Space, Vec<u8>)> {
        Some((Space::Entity, key::entity(*id).to_vec()))
    }
}

impl Changeable for kind::Properties {
    type Change = Option<Vec<u8>>;

    fn new(change: &Option<Vec<u8>>) -> Option<&Vec<u8>> {
        change.as_ref()
    }

    fn max_rows_bytes(property: &Property, change: &Option<Vec<u8>>) -> usize {
        property.row().1.len() + change.as_ref().map_or(0, Vec::len)
    }

    fn put_rows(out: &mut RowWriter<'_>, property: &Property, change: &Option<Vec<u8>>) {
        property.put_row(out.batch(), change.as_deref());
    }

    fn logged(property: &Property) -> Option<(Space, Vec<u8>)> {
        Some((Space::WorldProperty, property.row().1.to_vec()))
    }

    fn stored_row(property: &Property, _: &Self::Change) -> Option<(Space, Vec<u8>)> {
        let (space, key) = property.row();
        Some((space, key.to_vec()))
    }
}

impl Changeable for kind::Objects {
    type Change = StoredObject;

    fn new(object: &StoredObject) -> Option<&StoredObject> {
        Some(object)
    }

    fn max_rows_bytes(key: &ObjectKey, object: &StoredObject) -> usize {
        key.as_bytes().len() + object.row_len_bytes()
    }

    fn put_rows(out: &mut RowWriter<'_>, key: &ObjectKey, object: &StoredObject) {
        object::put_row(out.batch(), key, object);
    }

    fn logged(key: &ObjectKey) -> Option<(Space, Vec<u8>)> {
        Some((Space::Object, key.as_bytes().to_vec()))
    }
}

impl Changeable for kind::Records {
    type Change = RecordChange;

    fn new(change: &RecordChange) -> Option<&Self::Value> {
        change.new.as_ref()
    }

    fn max_rows_bytes(_: &RecordId, change: &RecordChange) -> usize {
        change.max_rows_bytes()
    }

    fn put_rows(out: &mut RowWriter<'_>, id: &RecordId, change: &RecordChange) {
        change.put_rows(out.batch(), *id);
    }

    fn logged(id: &RecordId) -> Option<(Space, Vec<u8>)> {
        Some((Space::RecordPlace, key::record_place(*id).to_vec()))
    }

    fn stored_row(id: &RecordId, change: &RecordChange) -> Option<(Space, Vec<u8>)> {
        Some((Space::Record, key::record(&change.old?, *id)))
    }
}
