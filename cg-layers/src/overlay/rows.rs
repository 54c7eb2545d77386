//! The rows of arenas, as they are read.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::Chunk;
use cg_format::delta::Delta;
use cg_format::entity::Entity;
use cg_format::frame::FrameView;
use cg_format::key::Family;
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::record::Record;
use cg_format::{ChunkAt, DecodeError, EntityId, Lookup, RecordId, Space, Tier, key};
use cg_store::engine::{Readable as _, ReadableExt as _};
use cg_store::error::{ConflictKey, Damage};
use cg_store::layer::{Base, Found, decode, origin_of, upgrade_entity};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::view::StoredChunk;
use cg_store::{Error, Property};

use super::OverlayError;
use super::properties::decode_property;
use super::store::Store;
use super::values::{decode_object, read_record, whole};

/// A row of a lease: what it holds of a chunk, an entity or another value.
#[derive(Debug, Clone)]
pub(super) struct Row<T> {
    /// Here or deleted.
    pub(super) value: Lookup<T>,
    /// The store's commit that wrote it.
    pub(super) version: u64,
    pub(super) origin: Origin,
}

/// A chunk's row as it is shown; with what the base had, if it is that and a delta.
pub(super) type Remembered = (Row<Arc<Chunk>>, Option<Origin>);

/// A row of a lease.
pub(super) enum Written {
    Chunk(ChunkAt, Row<Arc<Chunk>>),
    Entity(EntityId, Row<Entity>),
    Property(Property, Row<Vec<u8>>),
    Object(ObjectKey, Row<StoredObject>),
    Record(RecordId, Row<Arc<Record>>),
}

impl<S: Base> Store<S> {
    /// A chunk's row in a lease; `None` if it has none. A look into memory, else one key read; and a look at the base, if it
    /// is what the base has with a delta.
    pub(super) fn chunk(&self, lease: u64, at: ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error> {
        if let Some((row, over)) = self.kept.get(&(lease, at))
            && (over.is_none() || over == Some(origin_of(&self.base.find_chunk(at)?)))
        {
            return Ok(Some(row));
        }
        let before = self.written.load(Ordering::Acquire);
        let key = key::overlay_chunk(lease, at);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::ChunkL0, &key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        let (row, over) = self.decode_chunk(at, &key, &bytes)?;
        if let Some(_nothing_is_written) = self.publishing.try_lock()
            && self.written.load(Ordering::Acquire) == before
        {
            self.kept.insert((lease, at), (row.clone(), over));
        }
        Ok(Some(row))
    }

    /// What a row says of a chunk, and what the base has if it says what differs from that.
    fn decode_chunk(&self, at: ChunkAt, key: &[u8], bytes: &[u8]) -> Result<Remembered, Error> {
        let damaged = |problem| Damage::of_row(Space::ChunkL0, key, at.to_string(), problem);
        let frame = FrameView::open(Space::ChunkL0, key, bytes).map_err(damaged)?;
        let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        let header = frame.header();
        let (value, over) = match row.value {
            OverlayValue::Here(value) => {
                let (version, schema_generation) = (header.version, header.schema_generation);
                let stored = StoredChunk { at, version, schema_generation, tier: Tier::L0, value };
                self.counts.chunks_decoded.fetch_add(1, Ordering::Relaxed);
                let chunk = decode(&*self.catalog()?, &self.base.upgrades(), stored);
                (Lookup::Found(Arc::new(chunk.map_err(|error| in_row(error, key))?)), None)
            }
            OverlayValue::Changed(value) => {
                let delta = Delta::decode(value).map_err(damaged)?;
                let below = self.base.find_chunk(at)?;
                let found = origin_of(&below);
                let (chunk, over) = (self.changed(at, &delta, below, row.origin)?, Some(found));
                (Lookup::Found(chunk), over)
            }
            OverlayValue::Deleted => (Lookup::Tombstone, None),
        };
        Ok((Row { value, version: header.version, origin: row.origin }, over))
    }

    /// What the base has, as a delta changes it. Where the base went on, the delta stays on top, if it still can.
    fn changed(
        &self,
        at: ChunkAt,
        delta: &Delta,
        below: Found<Arc<Chunk>>,
        origin: Origin,
    ) -> Result<Arc<Chunk>, Error> {
        let found = origin_of(&below);
        let gone = || {
            let key = ConflictKey::Chunk(at);
            Error::from(OverlayError::BaseChanged { key, expected: origin, found })
        };
        let (mut chunk, _) = below.here().ok_or_else(gone)?;
        let schema = self.catalog()?.current_schema();
        delta.apply(Arc::make_mut(&mut chunk), &schema).map_err(|_| gone())?;
        Ok(chunk)
    }

    /// An entity's row in a lease, as [`chunk`](Self::chunk). One key read.
    pub(super) fn entity(&self, lease: u64, id: EntityId) -> Result<Option<Row<Entity>>, Error> {
        let key = key::overlay_entity(lease, id);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::Entity, &key)?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        self.decode_entity(id, &key, &bytes).map(Some)
    }

    fn decode_entity(&self, id: EntityId, key: &[u8], bytes: &[u8]) -> Result<Row<Entity>, Error> {
        let damaged = |problem| Damage::of_row(Space::Entity, key, format!("entity {id}"), problem);
        let frame = FrameView::open(Space::Entity, key, bytes).map_err(damaged)?;
        let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        let value = match whole(row).map_err(damaged)? {
            Some(value) => {
                let entity = Entity::decode(value).map_err(damaged)?;
                Lookup::Found(upgrade_entity(&*self.catalog()?, &self.base.upgrades(), id, entity)?)
            }
            None => Lookup::Tombstone,
        };
        Ok(Row { value, version: frame.header().version, origin: row.origin })
    }

    /// Shows every row of a lease, chunks first, then entities, properties, objects and records, until the closure fails. All are of one
    /// state.
    pub(super) fn for_each(
        &self,
        lease: u64,
        mut show: impl FnMut(Written) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let guard = self.apply_latch.lock_shared()?;
        let view = self.engine.snapshot()?;
        drop(guard);
        let (from, to) = (key::lease(lease), key::lease(lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        view.try_scan(Family::ChunkL0, range, |row_key, bytes| {
            let (_, at) = key::decode_overlay_chunk(row_key).map_err(of_row(Space::ChunkL0, row_key))?;
            show(Written::Chunk(at, self.decode_chunk(at, row_key, bytes)?.0))
        })?;
        view.try_scan(Family::Entity, range, |row_key, bytes| {
            let (_, id) = key::decode_overlay_entity(row_key).map_err(of_row(Space::Entity, row_key))?;
            show(Written::Entity(id, self.decode_entity(id, row_key, bytes)?))
        })?;
        view.try_scan(Family::WorldProperties, range, |row_key, bytes| {
            let (property, row) = decode_property(row_key, bytes)?;
            show(Written::Property(property, row))
        })?;
        view.try_scan(Family::Object, range, |row_key, bytes| {
            let (key, row) = decode_object(row_key, bytes)?;
            show(Written::Object(ObjectKey::new(key)?, row))
        })?;
        let from = key::overlay_record_places(lease);
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        view.try_scan(Family::Record, range, |row_key, bytes| {
            let decoded = key::decode_overlay_record_place(row_key);
            let (_, id) = decoded.map_err(of_row(Space::RecordPlace, row_key))?;
            show(Written::Record(id, read_record(&view, lease, id, bytes)?))
        })
    }
}

/// Damage of a chunk, told by the row in which it was met.
fn in_row(error: Error, key: &[u8]) -> Error {
    match error {
        Error::Corrupt(damage) => Error::Corrupt(Box::new(Damage { key: key.into(), ..*damage })),
        other => other,
    }
}

/// Damage in the key of a row.
fn of_row(space: Space, row_key: &[u8]) -> impl FnOnce(DecodeError) -> Error + '_ {
    move |problem| Damage::of_row(space, row_key, "a row of the overlay", problem)
}
