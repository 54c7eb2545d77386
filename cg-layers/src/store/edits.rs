//! The changes of an arena, and how they are written.

use std::sync::atomic::Ordering;

use cg_format::{ChunkAt, Lookup};
use cg_store::engine::{Batch, EngineError, Level};
use cg_store::layer::{Base, check_parts, kind};
use cg_store::{Error, each_kind, kind_map};

use super::kind::{Edit, OverlayKind as _, Rows};
use super::row::Row;
use super::state::Store;
use super::writer::RowWriter;

/// The edits of one kind.
type Edited<K> = Vec<Edit<K>>;

kind_map! {
    /// The changes of one commit of an arena.
    #[derive(Debug, Default)]
    pub(crate) struct Edits of pub(crate) Edited
}

impl Edits {
    pub(crate) fn is_empty(&self) -> bool {
        !each_kind!(self, |edits| edits.is_empty()).contains(&false)
    }
}

/// A commit that the engine was given.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is applied, and as durable as the commits of the store are.
    Applied(u64),
    /// It is applied. Syncing it failed.
    Unsynced(u64, EngineError),
    /// Writing failed. The next open of the engine finds out whether it is applied.
    InDoubt(EngineError),
}

impl Written {
    /// Its number.
    ///
    /// # Errors
    /// If it is not as durable as the commits of the store are.
    pub(crate) fn whole(self) -> Result<u64, Error> {
        match self {
            Self::Applied(version) => Ok(version),
            Self::Unsynced(_, error) | Self::InDoubt(error) => Err(error.into()),
        }
    }
}

impl<S: Base> Store<S> {
    /// Writes the changes of one transaction. Readers see all of them or none. They wait if the changes take more than
    /// one batch.
    ///
    /// # Errors
    /// Nothing was written. [`Error::TooLarge`] for a row that is longer than any batch; `EngineError::ReadOnly` if an
    /// earlier commit is stuck; the errors of the engine and of the base.
    pub(crate) fn write(&self, lease: u64, edits: Edits, generation: u32) -> Result<Written, Error> {
        self.names.remember(&self.rows, &self.base)?;
        let mut out = RowWriter::new(self, lease, generation);
        each_kind!(edits, |edits: K| edits.iter().try_for_each(|edit| K::put_rows(&mut out, edit))?);
        let RowWriter { batch, over, ancestors, .. } = out;
        let (len_bytes, rows) = (batch.len_bytes(), batch.op_count() as u64 - ancestors);
        let limit_bytes = self.limits.batch_bytes.min(self.rows.engine().caps().max_batch_bytes);
        let is_staged = len_bytes > limit_bytes;
        if is_staged {
            check_parts(&batch, self.rows.engine().caps().max_batch_bytes)?;
        }
        // The base's versions that the rows refer to must be as durable as the rows.
        self.base.keep_found(self.rows.level())?;
        let publishing = self.cache.write(lease, edits.chunks.iter().map(|(at, ..)| at));
        let committed = if is_staged {
            self.rows
                .commit_in_parts(batch, limit_bytes)
                .map(|(version, closed)| (version, Ok(()), Some(closed)))
        } else {
            self.rows.apply(batch, self.rows.level()).map(|(version, synced)| (version.get(), synced, None))
        };
        let (version, mut synced, closed) = match committed {
            Err(error @ (EngineError::WriteFailed { .. } | EngineError::SyncFailed { .. })) => {
                return Ok(Written::InDoubt(error));
            }
            committed => committed?,
        };
        self.counts.rows_written.fetch_add(rows, Ordering::Relaxed);
        for ((at, chunk, origin), over) in edits.chunks.into_iter().zip(over) {
            let value = chunk.map_or(Lookup::Tombstone, Lookup::Found);
            publishing.insert(lease, at, Row { value, version, origin, over });
        }
        if let Some(closed) = closed {
            closed.open();
            if self.rows.level() == Level::Power {
                synced = self.rows.engine().sync();
            }
        }
        Ok(match synced {
            Ok(()) => Written::Applied(version),
            Err(error) => Written::Unsynced(version, error),
        })
    }

    /// Deletes rows of a lease whose values are equal in the base, and `chunks` among them.
    ///
    /// # Errors
    /// As [`RowEngine::commit`](super::engine::RowEngine::commit). Some rows may be deleted then.
    pub(crate) fn forget(&self, lease: u64, chunks: &[ChunkAt], rows: &[Rows]) -> Result<(), Error> {
        /// The rows of at most this many keys are deleted in one batch.
        const AT_ONCE: usize = 2048;
        let _readers_keep_nothing = self.cache.write(lease, chunks.iter());
        for some in rows.chunks(AT_ONCE) {
            let mut batch = Batch::new();
            for (space, row_key) in some.iter().flatten().flatten() {
                batch.delete(*space, row_key);
            }
            self.rows.commit(batch, Level::Process)?;
        }
        // A row that returned after a power cut would hide later changes of the base.
        Ok(self.rows.engine().sync()?)
    }
}
