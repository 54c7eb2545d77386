//! The resolved changes of a transaction, and the rows in which they are stored.
//!
//! | rows of one commit | how many |
//! |---|---|
//! | chunk, tombstone or delta | one per changed chunk |
//! | deletion of a delta | one per delta of a chunk that is saved or deleted as a whole |
//! | opacity patch | one per chunk whose outline changed |
//! | change mark | one per touched 4³ and per touched 16³ cube |
//! | entity | one per changed entity |
//! | property | one per changed property |
//! | object | one per changed object |
//! | record | one per changed record, another per record that moved to another leaf, and its place |
//! | snapshot | one for each mebibyte of a saved one, and one more; one per row of a deleted one |
//! | commit sequence | one, by the engine |

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft};
use cg_format::{ChunkAt, ClusterTier, EntityId, Lookup, RecordId, Space, key};
use cg_registry::Catalog;

use crate::engine::{Batch, Stamp};
use crate::kinds::object::{self, StoredObject};
use crate::kinds::opacity;
use crate::kinds::property::Property;
use crate::kinds::record::RecordChange;
use crate::kinds::snapshots::SnapshotChange;
use crate::read::cache::Stored;
use crate::read::delta::{DeltaIndex, MAX_DELTAS, delta_row};
use crate::rt::stats::Counters;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;
use crate::storage::staged;

/// Everything that one commit changes, without what stays as it is.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The registry by which the changes are checked and encoded.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) chunks: Vec<(ChunkAt, ChunkChange)>,
    /// `None` is a deletion, here and below.
    pub(crate) entities: Vec<(EntityId, Option<Entity>)>,
    pub(crate) properties: Vec<(Property, Option<Vec<u8>>)>,
    pub(crate) objects: Vec<(ObjectKey, StoredObject)>,
    pub(crate) records: Vec<(RecordId, RecordChange)>,
    /// Transactions change no snapshots. If this is set, the commit changes nothing else.
    pub(crate) snapshot: Option<SnapshotChange>,
}

/// One chunk before and after.
#[derive(Debug)]
pub struct ChunkChange {
    /// What is stored.
    pub old: Lookup<Stored>,
    /// What it becomes; `None` is a deletion.
    pub new: Option<Arc<Chunk>>,
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
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The number of changed things.
    pub(super) const fn count(&self) -> usize {
        let Self { catalog: _, chunks, entities, properties, objects, records, snapshot } = self;
        let snapshots = if snapshot.is_some() { 1 } else { 0 };
        chunks.len() + entities.len() + properties.len() + objects.len() + records.len() + snapshots
    }

    /// Whether anything is put, so not only deleted.
    pub(super) fn puts_anything(&self) -> bool {
        self.chunks.iter().any(|(_, change)| change.new.is_some())
            || self.entities.iter().any(|(_, entity)| entity.is_some())
            || self.properties.iter().any(|(_, bytes)| bytes.is_some())
            || self.objects.iter().any(|(_, object)| object.bytes.is_some())
            || self.records.iter().any(|(_, change)| change.new.is_some())
    }

    /// The keys of what is changed, for conflict checks of transactions.
    pub(super) fn keys(&self) -> Vec<ConflictKey> {
        let chunks = self.chunks.iter().map(|(at, _)| ConflictKey::Chunk(*at));
        let entities = self.entities.iter().map(|(id, _)| ConflictKey::Entity(*id));
        let properties = self.properties.iter().map(|(property, _)| property.conflict_key());
        let objects = self.objects.iter().map(|(key, _)| ConflictKey::Object(key.clone()));
        let records = self.records.iter().map(|(id, _)| ConflictKey::Record(*id));
        chunks.chain(entities).chain(properties).chain(objects).chain(records).collect()
    }

    /// The approximate memory that it holds until it is written. A snapshot is not counted: its caller waits until it
    /// is written, and other callers should not have to wait for it.
    pub(crate) fn memory_bytes(&self) -> u64 {
        /// The memory of an entry here and among the pending changes.
        const ENTRY_BYTES: usize = 256;
        let chunks = self.chunks.iter().filter_map(|(_, change)| change.new.as_ref());
        let chunks: usize = chunks.map(|chunk| chunk.memory_bytes()).sum();
        let values = self.entities.iter().filter_map(|(_, entity)| entity.as_ref());
        let values: usize = values.flat_map(|entity| entity.components().map(|(_, bytes)| bytes.len())).sum();
        let properties = self.properties.iter().filter_map(|(_, bytes)| bytes.as_ref());
        let properties: usize = properties.map(Vec::len).sum();
        let kept = self.kept_len_bytes();
        (self.count() * ENTRY_BYTES + chunks + values + properties + kept) as u64
    }

    /// The approximate size of the rows of objects and records.
    pub(super) fn kept_len_bytes(&self) -> usize {
        let objects = self.objects.iter().map(|(key, object)| key.as_bytes().len() + object.row_len_bytes());
        let records = self.records.iter().map(|(_, change)| change.len_bytes());
        objects.chain(records).sum()
    }

    /// Encodes the rows of the commit. Costs the encoding of every chunk and, if the opacity map is kept, of its
    /// outline.
    ///
    /// If `deltas` has room for a chunk, the chunk is compared with the stored one first, to write a delta if that is
    /// smaller.
    pub(crate) fn encode(&self, opacity: bool, deltas: Option<&DeltaIndex>) -> Rows {
        let generation = self.catalog.current_generation();
        let mut batch = Batch::new();
        let (mut delta_rows, mut whole) = (Vec::new(), Vec::new());
        for (at, change) in &self.chunks {
            if let Some(row) = deltas.and_then(|deltas| change.delta(&self.catalog, deltas.has_room(*at))) {
                delta_rows.push((*at, row));
            } else {
                let row = match &change.new {
                    Some(new) => chunk_row(new, generation),
                    None => Draft::tombstone(generation),
                };
                batch.put(Space::ChunkL0, key::chunk(*at), row, Stamp::Commit);
                whole.push(*at);
            }
            if opacity && let Some(patch) = change.patch(&self.catalog) {
                batch.put(Space::OpacityPatch, key::opacity_patch(*at), patch, Stamp::Commit);
            }
        }
        self.put_change_marks(&mut batch);
        for (id, entity) in &self.entities {
            match entity {
                Some(entity) => {
                    batch.put(Space::Entity, key::entity(*id), entity_row(entity, generation), Stamp::Commit);
                }
                None => batch.delete(Space::Entity, key::entity(*id)),
            }
        }
        for (property, bytes) in &self.properties {
            let (space, row) = property.row();
            match bytes {
                Some(bytes) => {
                    let draft = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
                    batch.put(space, row, draft, Stamp::Commit);
                }
                None => batch.delete(space, row),
            }
        }
        for (key, object) in &self.objects {
            object::put_row(&mut batch, key, object);
        }
        for (id, change) in &self.records {
            change.put_rows(&mut batch, *id);
        }
        if let Some(change) = &self.snapshot {
            change.put_rows(&mut batch);
        }
        Rows { batch, deltas: delta_rows, whole }
    }

    /// Puts one mark per touched cube of each cluster tier. So "changed since" visits only what changed.
    fn put_change_marks(&self, batch: &mut Batch) {
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let cubes = self.chunks.iter().map(|(at, _)| (at.dimension, at.pos.cluster(tier)));
            for (dimension, cluster) in cubes.collect::<BTreeSet<_>>() {
                let mark = Draft::plain(Codec::None, 0, |_| {});
                batch.put(Space::ChangeMark, key::change_mark(dimension, cluster), mark, Stamp::Commit);
            }
        }
    }
}

/// The rows of a commit, except what needs its number.
#[derive(Debug)]
pub(crate) struct Rows {
    batch: Batch,
    deltas: Vec<(ChunkAt, Draft)>,
    /// The chunks that are saved or deleted as a whole.
    whole: Vec<ChunkAt>,
}

impl Rows {
    /// The approximate size of the batch, without the deletion of deltas.
    pub(crate) fn len_bytes(&self) -> u64 {
        let delta = |(_, row): &(ChunkAt, Draft)| (key::DELTA_LEN_BYTES + row.len_bytes()) as u64;
        self.batch.len_bytes() + self.deltas.iter().map(delta).sum::<u64>()
    }

    /// The maximum size of the batch, with the deletion of deltas.
    pub(crate) fn max_len_bytes(&self) -> u64 {
        self.len_bytes() + (self.whole.len() * MAX_DELTAS * key::DELTA_LEN_BYTES) as u64
    }

    /// Refuses a batch that cannot be staged in parts of at most `max_batch_bytes`.
    pub(super) fn check_parts(&self, max_batch_bytes: u64) -> Result<(), Error> {
        Ok(staged::check(&self.batch, max_batch_bytes)?)
    }

    /// Returns the batch of the commit with this number, and the chunks whose deltas it deletes. Its own deltas enter
    /// the index before they are written, because a reader that finds none there reads the row alone.
    pub(crate) fn numbered(self, seq: u64, index: &DeltaIndex, counters: &Counters) -> (Batch, Vec<ChunkAt>) {
        let Self { mut batch, deltas, whole } = self;
        for at in &whole {
            index.delete_rows(&mut batch, *at);
        }
        Counters::add(&counters.deltas_written, deltas.len() as u64);
        for (at, row) in deltas {
            index.add(at, seq, row.payload());
            batch.put(Space::ChunkDelta, key::delta(at, seq), row, Stamp::Commit);
        }
        (batch, whole)
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

    /// The delta row, if the chunk may have another delta and a delta is worth it.
    fn delta(&self, catalog: &Catalog, has_room: bool) -> Option<Draft> {
        match (&self.old, &self.new) {
            (Lookup::Found(old), Some(new)) if has_room && old.is_current => {
                delta_row(&old.chunk, new, &catalog.current_schema())
            }
            _ => None,
        }
    }

    /// The opacity patch; `None` if the outline stays as it was.
    fn patch(&self, catalog: &Catalog) -> Option<Draft> {
        let old = match &self.old {
            Lookup::Found(old) => Some(&*old.chunk),
            Lookup::Tombstone | Lookup::NotFound => None,
        };
        opacity::patch(old, self.new.as_deref(), &catalog.current_schema())
    }
}

pub(super) fn chunk_row(chunk: &Chunk, generation: u32) -> Draft {
    Draft::plain(Codec::None, generation, |out| chunk.encode(out))
}

pub(super) fn entity_row(entity: &Entity, generation: u32) -> Draft {
    Draft::plain(Codec::None, generation, |out| entity.encode(out))
}
