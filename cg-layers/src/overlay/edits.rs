//! The changes of an arena, and how they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft};
use cg_format::key::RecordLeaf;
use cg_format::overlay::{Origin, OverlayRow, OverlayValue};
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId, Space, key};
use cg_store::engine::{Batch, CommitSeq, EngineError, Level, Stamp};
use cg_store::layer::{Applying, Base, check_parts, worth_a_delta};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property};

use super::properties::put_property;
use super::rows::Row;
use super::store::Store;
use super::values::{put_object, put_record};

/// The changes of one commit of an arena.
#[derive(Debug, Default)]
pub(super) struct Edits {
    pub(super) chunks: Vec<(ChunkAt, Option<Arc<Chunk>>, Origin)>,
    pub(super) entities: Vec<(EntityId, Option<Entity>, Origin)>,
    pub(super) properties: Vec<(Property, Option<Vec<u8>>, Origin)>,
    pub(super) objects: Vec<(ObjectKey, StoredObject, Origin)>,
    pub(super) records: Vec<(RecordId, RecordEdit, Origin)>,
}

/// One record before and after.
#[derive(Debug)]
pub(super) struct RecordEdit {
    /// The leaf in which the overlay has it.
    pub(super) old: Option<RecordLeaf>,
    /// `None` is a deletion.
    pub(super) new: Option<(RecordLeaf, Arc<Record>)>,
}

impl Edits {
    pub(super) const fn is_empty(&self) -> bool {
        let Self { chunks, entities, properties, objects, records } = self;
        chunks.is_empty()
            && entities.is_empty()
            && properties.is_empty()
            && objects.is_empty()
            && records.is_empty()
    }
}

impl<S: Base> Store<S> {
    /// What the base has and a chunk has not, if the base has what the chunk was written over and it is worth it.
    fn delta(&self, at: ChunkAt, new: &Chunk, origin: Origin) -> Option<Vec<u8>> {
        if !self.deltas {
            return None;
        }
        let (below, found) = self.base.find_chunk(at).ok()?.here()?;
        if found != origin {
            return None;
        }
        let schema = self.catalog().ok()?.current_schema();
        worth_a_delta(&below, new, &schema)
    }

    /// Writes the changes of one transaction, seen whole or not at all. Readers of rows wait while it takes more than one
    /// batch.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a row that is longer than any batch; [`EngineError::ReadOnly`] if a commit before it got
    /// stuck; what the engine and the base's say.
    pub(super) fn write(&self, lease: u64, edits: Edits, generation: u32) -> Result<u64, Error> {
        self.remember_names()?;
        let mut batch = Batch::new();
        let mut over = Vec::with_capacity(edits.chunks.len());
        for (at, chunk, origin) in &edits.chunks {
            let delta = chunk.as_deref().and_then(|chunk| self.delta(*at, chunk, *origin));
            over.push(delta.is_some().then_some(*origin));
            let draft = Draft::plain(Codec::None, generation, |out| {
                if let Some(delta) = delta {
                    let value = OverlayValue::Changed(|out: &mut Vec<u8>| out.extend(delta));
                    OverlayRow::encode(*origin, value, out);
                } else {
                    let value = chunk.as_deref().map(|chunk| |out: &mut Vec<u8>| chunk.encode(out));
                    OverlayRow::encode(*origin, value, out);
                }
            });
            batch.put(Space::ChunkL0, key::overlay_chunk(lease, *at), draft, Stamp::Commit);
        }
        for (id, entity, origin) in &edits.entities {
            let value = entity.as_ref().map(|entity: &Entity| move |out: &mut Vec<u8>| entity.encode(out));
            let draft = Draft::plain(Codec::None, generation, |out| OverlayRow::encode(*origin, value, out));
            batch.put(Space::Entity, key::overlay_entity(lease, *id), draft, Stamp::Commit);
        }
        for (property, bytes, origin) in &edits.properties {
            put_property(&mut batch, lease, property, bytes.as_deref(), *origin);
        }
        for (key, object, origin) in &edits.objects {
            put_object(&mut batch, lease, key, object, *origin);
        }
        for (id, edit, origin) in &edits.records {
            put_record(&mut batch, lease, *id, edit, *origin);
        }
        let (len_bytes, rows) = (batch.len_bytes(), batch.op_count() as u64);
        let limit_bytes = self.limits.batch_bytes.min(self.engine.caps().max_batch_bytes);
        let is_staged = len_bytes > limit_bytes;
        if is_staged {
            check_parts(&batch, self.engine.caps().max_batch_bytes)?;
        }
        // What the rows remember is as durable as they are.
        self.base.keep_found(self.level)?;
        let _readers_keep_nothing = self.publishing.lock();
        // Whatever becomes of it, memory then says nothing else than the rows: a batch that failed may be seen.
        let _what_was_read_is_old = Counted(&self.written);
        for (at, ..) in &edits.chunks {
            self.kept.remove(&(lease, *at));
        }
        let (version, closed) = if is_staged {
            let (version, closed) = self.commit_in_parts(batch, limit_bytes)?;
            (version, Some(closed))
        } else {
            (self.commit(batch, self.level)?.get(), None)
        };
        self.counts.rows_written.fetch_add(rows, Ordering::Relaxed);
        for ((at, chunk, origin), over) in edits.chunks.into_iter().zip(over) {
            let value = chunk.map_or(Lookup::Tombstone, Lookup::Found);
            self.kept.insert((lease, at), (Row { value, version, origin }, over));
        }
        if let Some(closed) = closed {
            closed.open();
            if self.level == Level::Power {
                self.engine.sync()?;
            }
        }
        Ok(version)
    }

    /// Deletes rows of a lease that say no more than the base does.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); some may be deleted then.
    pub(super) fn forget(&self, lease: u64, chunks: &[ChunkAt], entities: &[EntityId]) -> Result<(), Error> {
        /// At most this many rows are deleted in one batch.
        const AT_ONCE: usize = 4096;
        let _readers_keep_nothing = self.publishing.lock();
        let _what_was_read_is_old = Counted(&self.written);
        for at in chunks {
            self.kept.remove(&(lease, *at));
        }
        let chunks = chunks.iter().map(|at| (Space::ChunkL0, key::overlay_chunk(lease, *at).to_vec()));
        let entities = entities.iter().map(|id| (Space::Entity, key::overlay_entity(lease, *id).to_vec()));
        let rows: Vec<_> = chunks.chain(entities).collect();
        for some in rows.chunks(AT_ONCE) {
            let mut batch = Batch::new();
            for (space, row_key) in some {
                batch.delete(*space, row_key);
            }
            self.commit(batch, Level::Process)?;
        }
        // One that came back after a power cut would hide what the base has got since.
        Ok(self.engine.sync()?)
    }

    /// Writes a batch as the next commit.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if a commit before it got stuck, and what the engine says.
    pub(super) fn commit(&self, batch: Batch, level: Level) -> Result<CommitSeq, EngineError> {
        let _in_order = self.numbering.lock();
        // What got stuck is rolled forward when the rows are opened again: over what would be written after it.
        drop(self.apply_latch.lock_shared()?);
        self.engine.commit(batch, &[], level)
    }

    /// Writes what is too large for one batch as the next commit. No row is read until the second value is opened.
    fn commit_in_parts(&self, batch: Batch, limit_bytes: u64) -> Result<(u64, Applying<'_>), EngineError> {
        let _in_order = self.numbering.lock();
        let seq = self.engine.last_commit().next().get();
        Ok((seq, self.apply_latch.write_in_parts(&*self.engine, batch, seq, limit_bytes)?))
    }
}

/// Counts a batch when it is over, however it ended.
struct Counted<'w>(&'w AtomicU64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
