//! Reads the rows of chunks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::{Chunk, EditError};
use cg_format::delta::Delta;
use cg_format::frame::{FrameHeader, FrameView};
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::{ChunkAt, Lookup, SchemaView, Space, Tier, key};
use cg_store::engine::CommitSeq;
use cg_store::error::{ConflictKey, Damage};
use cg_store::layer::{Base, Found, decode, origin_of, worth_a_delta};
use cg_store::view::StoredChunk;
use cg_store::{Error, ErrorKind};

use super::error::OverlayError;
use super::row::Row;
use super::state::Store;

impl<S: Base> Store<S> {
    /// A chunk's row in a lease; `None` if there is none. A lookup in memory, else one key read. A delta also reads
    /// the base.
    pub(crate) fn chunk(&self, lease: u64, at: ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error> {
        match self.cached_chunk(lease, at) {
            Some(row) if row.is_absent() => return Ok(None),
            Some(row) if row.over.is_none() || row.over == Some(origin_of(&self.base.find_chunk(at)?)) => {
                return Ok(Some(row));
            }
            _ => {}
        }
        let before = self.cache.begin_read();
        let bytes = self.rows.get(Space::ChunkL0, &key::overlay_chunk(lease, at))?;
        let Some(bytes) = bytes else {
            self.cache.read(before, lease, at, &Row::absent());
            return Ok(None);
        };
        let row = self.decode_chunk(lease, at, &bytes)?;
        self.cache.read(before, lease, at, &row);
        Ok(Some(row))
    }

    /// A chunk's row in a lease as memory has it, which may be [absent](Row::is_absent); `None` if memory does not say. The
    /// value of a delta is that over a chunk of the base that may have changed.
    pub(crate) fn cached_chunk(&self, lease: u64, at: ChunkAt) -> Option<Row<Arc<Chunk>>> {
        self.cache.get(lease, at)
    }

    /// Decodes a chunk's row.
    pub(super) fn decode_chunk(&self, lease: u64, at: ChunkAt, row: &[u8]) -> Result<Row<Arc<Chunk>>, Error> {
        let key = &key::overlay_chunk(lease, at);
        let damaged =
            |problem| Damage::of_row(Space::ChunkL0, key, ConflictKey::Chunk(at).to_string(), problem);
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

    /// Whether a chunk's row is damaged, whatever the base has.
    pub(crate) fn is_damaged(&self, lease: u64, at: ChunkAt, row: &[u8]) -> bool {
        let key = &key::overlay_chunk(lease, at);
        let Ok(frame) = FrameView::open(Space::ChunkL0, key, row) else { return true };
        match OverlayRow::decode(frame.payload()).map(|row| row.value) {
            Ok(OverlayValue::Here(value)) => {
                let decoded = self.decode_value(at, &frame.header(), value, key);
                decoded.is_err_and(|error| error.kind() == ErrorKind::Damaged)
            }
            Ok(OverlayValue::Changed(value)) => Delta::decode(value).is_err(),
            Ok(OverlayValue::Deleted) => false,
            Err(_) => true,
        }
    }

    pub(super) fn decode_value(
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

    /// The base's chunk, if it is the one written over.
    pub(super) fn below(&self, at: ChunkAt, origin: Origin) -> Option<Arc<Chunk>> {
        let (below, found) = self.base.find_chunk(at).ok()?.here()?;
        (found == origin).then_some(below)
    }

    /// The delta from one chunk to another, if it is worth it.
    pub(super) fn delta(&self, from: &Chunk, to: &Chunk) -> Option<Vec<u8>> {
        worth_a_delta(from, to, &self.catalog().ok()?.current_schema())
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
            put_over(delta, Arc::make_mut(&mut chunk), &schema).map_err(|_| gone())?;
        }
        Ok(chunk)
    }
}

/// Applies a delta to a chunk whatever is there: components of the blocks that it replaces are gone.
fn put_over(delta: &Delta, chunk: &mut Chunk, schema: &impl SchemaView) -> Result<(), EditError> {
    for (at, block) in delta.sets() {
        if usize::from(at.layer) == chunk.layer_count(at.cell) {
            chunk.push_layer(at.cell, block, schema)?;
        } else {
            chunk.set_layer(at, block, schema)?;
        }
    }
    for id in delta.removed() {
        chunk.remove_entity(id);
    }
    for id in delta.added() {
        chunk.add_entity(id);
    }
    Ok(())
}

/// Damage of a chunk, with the key of the row where it was found.
fn in_row(error: Error, key: &[u8]) -> Error {
    match error {
        Error::Corrupt(damage) => Error::Corrupt(Box::new(Damage { key: key.into(), ..*damage })),
        other => other,
    }
}
