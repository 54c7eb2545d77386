//! The changes of an arena, and how they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::Chunk;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, EntityId, Lookup, Space, key};
use cg_store::engine::{Batch, CommitSeq, EngineError, Level};
use cg_store::layer::{Applying, Base, check_parts, kind, worth_a_delta};
use cg_store::{Error, each_kind, kind_map};

use super::kind::{Edit, OverlayKind as _};
use super::rows::Row;
use super::store::Store;

/// The edits of one kind.
type Edited<K> = Vec<Edit<K>>;

kind_map! {
    /// The changes of one commit of an arena.
    #[derive(Debug, Default)]
    pub(super) struct Edits of pub(super) Edited
}

/// Encodes the rows of a commit.
pub(super) struct RowWriter<'s, S> {
    pub(super) store: &'s Store<S>,
    pub(super) lease: u64,
    /// The schema generation of the names by which values are encoded.
    pub(super) generation: u32,
    pub(super) batch: Batch,
    /// For each chunk the origin in the base, if its row is a delta.
    pub(super) over: Vec<Option<Origin>>,
    /// How many rows of ancestors were written or deleted.
    pub(super) ancestors: u64,
}

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        !each_kind!(self, |edits| edits.is_empty()).contains(&false)
    }
}

impl<S: Base> Store<S> {
    /// The base's chunk, if it is the one written over.
    pub(super) fn below(&self, at: ChunkAt, origin: Origin) -> Option<Arc<Chunk>> {
        let (below, found) = self.base.find_chunk(at).ok()?.here()?;
        (found == origin).then_some(below)
    }

    /// The delta from one chunk to another, if it is worth it.
    pub(super) fn delta(&self, from: &Chunk, to: &Chunk) -> Option<Vec<u8>> {
        worth_a_delta(from, to, &self.catalog().ok()?.current_schema())
    }

    /// Writes the changes of one transaction. Readers see all of them or none. They wait if the changes take more than
    /// one batch.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a row that is longer than any batch; [`EngineError::ReadOnly`] if an earlier commit is
    /// stuck; the errors of the engine and of the base.
    pub(super) fn write(&self, lease: u64, edits: Edits, generation: u32) -> Result<u64, Error> {
        self.remember_names()?;
        let mut out =
            RowWriter { store: self, lease, generation, batch: Batch::new(), over: Vec::new(), ancestors: 0 };
        each_kind!(edits, |edits: K| edits.iter().try_for_each(|edit| K::put_rows(&mut out, edit))?);
        let RowWriter { batch, over, ancestors, .. } = out;
        let (len_bytes, rows) = (batch.len_bytes(), batch.op_count() as u64 - ancestors);
        let limit_bytes = self.limits.batch_bytes.min(self.engine.caps().max_batch_bytes);
        let is_staged = len_bytes > limit_bytes;
        if is_staged {
            check_parts(&batch, self.engine.caps().max_batch_bytes)?;
        }
        // The base's versions that the rows refer to must be as durable as the rows.
        self.base.keep_found(self.level)?;
        let _readers_keep_nothing = self.publishing.lock();
        // A failed batch may be visible. It is counted too, so that memory never differs from the rows.
        let _what_was_read_is_old = Counted(&self.written);
        for (at, ..) in &edits.chunks {
            self.cache.remove(&(lease, *at));
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
            self.cache.insert((lease, at), Row { value, version, origin, over });
        }
        if let Some(closed) = closed {
            closed.open();
            if self.level == Level::Power {
                self.engine.sync()?;
            }
        }
        Ok(version)
    }

    /// Deletes rows of a lease whose values are equal in the base.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). Some rows may be deleted then.
    pub(super) fn forget(&self, lease: u64, chunks: &[ChunkAt], entities: &[EntityId]) -> Result<(), Error> {
        /// At most this many rows are deleted in one batch.
        const AT_ONCE: usize = 4096;
        let _readers_keep_nothing = self.publishing.lock();
        let _what_was_read_is_old = Counted(&self.written);
        for at in chunks {
            self.cache.remove(&(lease, *at));
        }
        let spaces = [Space::ChunkL0, Space::ChunkDelta];
        let chunks =
            chunks.iter().flat_map(|at| spaces.map(|space| (space, key::overlay_chunk(lease, *at).to_vec())));
        let entities = entities.iter().map(|id| (Space::Entity, key::overlay_entity(lease, *id).to_vec()));
        let rows: Vec<_> = chunks.chain(entities).collect();
        for some in rows.chunks(AT_ONCE) {
            let mut batch = Batch::new();
            for (space, row_key) in some {
                batch.delete(*space, row_key);
            }
            self.commit(batch, Level::Process)?;
        }
        // A row that returned after a power cut would hide later changes of the base.
        Ok(self.engine.sync()?)
    }

    /// Writes a batch as the next commit.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if an earlier commit is stuck, and the errors of the engine.
    pub(super) fn commit(&self, batch: Batch, level: Level) -> Result<CommitSeq, EngineError> {
        let _in_order = self.numbering.lock();
        // A stuck commit is rolled forward when the engine is opened again, and would overwrite later commits.
        drop(self.apply_latch.lock_shared()?);
        self.engine.commit(batch, &[], level)
    }

    /// Writes a batch above the limit as the next commit, in parts. No row is read until the returned value is opened.
    fn commit_in_parts(&self, batch: Batch, limit_bytes: u64) -> Result<(u64, Applying<'_>), EngineError> {
        let _in_order = self.numbering.lock();
        let seq = self.engine.last_commit().next();
        Ok((seq.get(), self.apply_latch.write_in_parts(&*self.engine, batch, seq, limit_bytes)?))
    }
}

/// Counts a batch when it ends, even if it failed.
struct Counted<'w>(&'w AtomicU64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
