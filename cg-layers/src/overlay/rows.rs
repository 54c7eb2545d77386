//! Reads the rows of arenas.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::Chunk;
use cg_format::delta::Delta;
use cg_format::frame::{FrameHeader, FrameView};
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::{ChunkAt, Lookup, Space, Tier, key};
use cg_store::Error;
use cg_store::engine::{CommitSeq, Readable, ReadableExt as _, Snapshot};
use cg_store::error::{ConflictKey, Damage};
use cg_store::layer::kind::Chunks;
use cg_store::layer::{Base, Found, decode, origin_of};
use cg_store::view::StoredChunk;

use super::kind::{OverlayKind, damaged};
use super::store::Store;
use super::{OverlayChoice, OverlayError, cells};

/// A decoded row of a lease.
#[derive(Debug, Clone)]
pub(super) struct Row<T> {
    /// Found or deleted.
    pub(super) value: Lookup<T>,
    /// The commit of the store that wrote it.
    pub(super) version: u64,
    pub(super) origin: Origin,
    /// If the row is a delta, the origin of the base's chunk over which the value is.
    pub(super) over: Option<Origin>,
}

impl<T> Row<T> {
    /// The value, unless it is deleted.
    pub(super) const fn here(&self) -> Option<&T> {
        if let Lookup::Found(value) = &self.value { Some(value) } else { None }
    }
}

/// The rows of a lease in a view of the store.
pub(super) struct LeaseView<'v, S> {
    pub(super) store: &'v Store<S>,
    pub(super) lease: u64,
    pub(super) view: &'v dyn Readable,
}

impl<S: Base> LeaseView<'_, S> {
    /// A row over the base's present value: if both have changed it and their changes fit together, the row with both.
    pub(super) fn onto_base<K: OverlayKind>(
        &self,
        key: &K::Key,
        mut row: Row<K::Value>,
        below: &Found<K::Value>,
    ) -> Result<Row<K::Value>, Error> {
        let found = origin_of(below);
        row.origin = self.store.present_origin::<K>(self.lease, &row, below)?;
        if row.origin != found
            && let Some(merged) = K::merged(self.store, self.lease, key, &row, below, OverlayChoice::Ask)?
        {
            (row.value, row.origin) = (Lookup::Found(merged), found);
        }
        Ok(row)
    }

    /// Visits the rows of one kind, ascending by key, until the visitor fails.
    pub(super) fn for_each<K: OverlayKind>(
        &self,
        mut visit: impl FnMut(K::Key, Row<K::Value>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (from, to) = (K::first_row_key(self.lease), key::lease(self.lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        self.view.try_scan(K::SPACE.family(), range, |row_key, row| {
            let key = key_of::<K>(row_key)?;
            let row = K::decode(self, &key, row_key, row)?;
            visit(key, row)
        })
    }
}

impl<S: Base> Store<S> {
    /// A chunk's row in a lease; `None` if there is none. A lookup in memory, else one key read. A delta also reads
    /// the base.
    pub(super) fn chunk(&self, lease: u64, at: ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error> {
        if let Some(row) = self.cache.get(&(lease, at))
            && (row.over.is_none() || row.over == Some(origin_of(&self.base.find_chunk(at)?)))
        {
            return Ok(Some(row));
        }
        let before = self.written.load(Ordering::Acquire);
        let guard = self.apply_latch.lock_shared()?;
        let bytes = self.engine.get(Space::ChunkL0, &key::overlay_chunk(lease, at))?;
        drop(guard);
        let Some(bytes) = bytes else { return Ok(None) };
        let row = self.decode_chunk(lease, at, &bytes)?;
        if let Some(_nothing_is_written) = self.publishing.try_lock()
            && self.written.load(Ordering::Acquire) == before
        {
            self.cache.insert((lease, at), row.clone());
        }
        Ok(Some(row))
    }

    /// Decodes a chunk's row.
    pub(super) fn decode_chunk(&self, lease: u64, at: ChunkAt, row: &[u8]) -> Result<Row<Arc<Chunk>>, Error> {
        let key = &key::overlay_chunk(lease, at);
        let damaged = |problem| damaged::<Chunks>(&at, key, problem);
        let frame = FrameView::open(Space::ChunkL0, key, row).map_err(damaged)?;
        let row = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        let header = frame.header();
        let (value, over) = match row.value {
            OverlayValue::Here(value) => {
                (Lookup::Found(Arc::new(self.decode_value(at, &header, value, key)?)), None)
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
        Ok(Row { value, version: header.version, origin: row.origin, over })
    }

    fn decode_value(
        &self,
        at: ChunkAt,
        header: &FrameHeader,
        value: &[u8],
        key: &[u8],
    ) -> Result<Chunk, Error> {
        let (version, schema_generation) = (CommitSeq::new(header.version), header.schema_generation);
        let stored = StoredChunk { at, version, schema_generation, tier: Tier::L0, value };
        self.counts.chunks_decoded.fetch_add(1, Ordering::Relaxed);
        decode(&*self.catalog()?, &self.base.upgrades(), stored).map_err(|error| in_row(error, key))
    }

    /// The base's chunk over which a chunk's row was first written, in the cells that the row changes: elsewhere it is
    /// the row's. `None` if it is not stored, as in drafts of earlier versions, or if the row may be merged already.
    pub(super) fn ancestor(
        &self,
        lease: u64,
        at: ChunkAt,
        row: &Row<Arc<Chunk>>,
    ) -> Result<Option<Arc<Chunk>>, Error> {
        let key = &key::overlay_chunk(lease, at);
        let (Some(here), Some(bytes)) = (row.here(), self.engine.get(Space::ChunkDelta, key)?) else {
            return Ok(None);
        };
        let damaged =
            |problem| Damage::of_row(Space::ChunkDelta, key, ConflictKey::Chunk(at).to_string(), problem);
        let frame = FrameView::open(Space::ChunkDelta, key, &bytes).map_err(damaged)?;
        let stored = OverlayRow::decode(frame.payload()).map_err(damaged)?;
        if stored.origin != row.origin || row.version <= self.merged_until(lease)? {
            return Ok(None);
        }
        Ok(match stored.value {
            OverlayValue::Here(value) => {
                Some(Arc::new(self.decode_value(at, &frame.header(), value, key)?))
            }
            OverlayValue::Changed(value) => {
                let back = Delta::decode(value).map_err(damaged)?;
                let mut chunk = Arc::clone(here);
                let is_applied = back.apply(Arc::make_mut(&mut chunk), &self.catalog()?.current_schema());
                is_applied.is_ok().then_some(chunk)
            }
            OverlayValue::Deleted => None,
        })
    }

    /// Whether the whole ancestor of this origin is stored.
    pub(super) fn has_whole_ancestor(&self, key: &[u8], origin: Origin) -> Result<bool, Error> {
        let Some(bytes) = self.engine.get(Space::ChunkDelta, key)? else { return Ok(false) };
        let Ok(frame) = FrameView::open(Space::ChunkDelta, key, &bytes) else { return Ok(false) };
        let stored = OverlayRow::decode(frame.payload());
        Ok(stored.is_ok_and(|row| row.origin == origin && matches!(row.value, OverlayValue::Here(_))))
    }

    /// Applies a delta to the base's chunk. If the base has changed since, the delta is applied to its present chunk
    /// or fails.
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
        if delta.apply(Arc::make_mut(&mut chunk), &schema).is_err() {
            // The base has a block with components there by now. It is not the overlay's.
            cells::put_over(delta, Arc::make_mut(&mut chunk), &schema).map_err(|_| gone())?;
        }
        Ok(chunk)
    }

    /// The origin that a row writes over. It is the base's present one if a merge has written the row's value to the
    /// base and then ended early.
    pub(super) fn present_origin<K: OverlayKind>(
        &self,
        lease: u64,
        row: &Row<K::Value>,
        below: &Found<K::Value>,
    ) -> Result<Origin, Error> {
        let found = origin_of(below);
        if found == row.origin {
            return Ok(found);
        }
        Ok(if K::is_merged(self, lease, row, below)? { found } else { row.origin })
    }

    /// Reads rows of a lease in one state.
    pub(super) fn in_view<T>(
        &self,
        lease: u64,
        read: impl FnOnce(&LeaseView<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let view = self.snapshot()?;
        read(&LeaseView { store: self, lease, view: &view })
    }

    /// The state after the newest commit.
    pub(super) fn snapshot(&self) -> Result<Snapshot<'_>, Error> {
        let _no_commit_is_half_applied = self.apply_latch.lock_shared()?;
        Ok(self.engine.snapshot()?)
    }
}

/// The key of a value, from that of its row.
pub(super) fn key_of<K: OverlayKind>(row_key: &[u8]) -> Result<K::Key, Error> {
    let damaged = |problem| Damage::of_row(K::SPACE, row_key, "a row of the overlay", problem);
    K::key_of(row_key).map_err(damaged)
}

/// Damage of a chunk, with the key of the row where it was found.
fn in_row(error: Error, key: &[u8]) -> Error {
    match error {
        Error::Corrupt(damage) => Error::Corrupt(Box::new(Damage { key: key.into(), ..*damage })),
        other => other,
    }
}
