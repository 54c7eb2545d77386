//! Values as an overlay reads them: its own row, else its base.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, ChunkSource as _, EntityId};
use cg_store::Error;
use cg_store::layer::kind::{Chunks, Entities};
use cg_store::layer::{Base, Found, origin_of};

use super::handle::Overlay;
use crate::store::{OverlayKind, Row};

/// A value as the overlay reads it, and its origin in the base when the overlay first wrote it.
pub(super) struct Layered<T> {
    pub(super) found: Found<T>,
    /// The origin that a row of the overlay must store.
    pub(super) origin: Origin,
}

impl<T> Layered<T> {
    pub(super) fn value(self) -> Option<T> {
        self.found.here().map(|(value, _)| value)
    }
}

impl<S: Base> Overlay<S> {
    /// A chunk as the overlay reads it. `None` if it is deleted in the overlay or stored nowhere: the host may
    /// generate it.
    ///
    /// Costs a lookup in memory, else one key read. A chunk that was not written here costs the base's load as well.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged, in the overlay or the base;
    /// [`OverlayError::Released`](crate::OverlayError::Released),
    /// [`OverlayError::WrongBase`](crate::OverlayError::WrongBase) and
    /// [`OverlayError::BaseReplaced`](crate::OverlayError::BaseReplaced).
    pub fn load(&self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Ok(self.lookup(at)?.here())
    }

    /// Many chunks, one result per position in the order asked. Those without a row here are read from the base in one
    /// call.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        self.lookup_many(at).into_iter().map(|found| Ok(found?.here())).collect()
    }

    /// An entity as the overlay reads it. One key read for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.value_of::<Entities>(&id)
    }

    /// The value of a key as the overlay reads it. One key read for each layer, two for a record; none for a chunk in
    /// memory.
    pub(super) fn layered<K: OverlayKind>(&self, key: &K::Key) -> Result<Layered<K::Value>, Error> {
        self.of_one_lease(|lease| match K::read(self.store(), lease, key)? {
            Some(row) => Ok(self.here(row)),
            None => self.below(K::find(&self.store().base, key)),
        })
    }

    pub(super) fn value_of<K: OverlayKind>(&self, key: &K::Key) -> Result<Option<K::Value>, Error> {
        Ok(self.layered::<K>(key)?.value())
    }

    pub(super) fn layered_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Layered<Arc<Chunk>>, Error>> {
        self.layered_chunks_of(at, |lease, at| self.store().chunk(lease, at))
    }

    /// As [`layered_chunks`](Self::layered_chunks), with another way to read the overlay's rows.
    pub(super) fn layered_chunks_of(
        &self,
        at: &[ChunkAt],
        row: impl Fn(u64, ChunkAt) -> Result<Option<Row<Arc<Chunk>>>, Error>,
    ) -> Vec<Result<Layered<Arc<Chunk>>, Error>> {
        let shown = self.of_one_lease(|lease| {
            let rows: Vec<_> = at.iter().map(|at| row(lease, *at)).collect();
            let places = at.iter().zip(&rows);
            let below: Vec<_> =
                places.filter(|(_, row)| matches!(row, Ok(None))).map(|(at, _)| *at).collect();
            let mut below = self.store().base.find_chunks(&below).into_iter();
            let one = |row: Result<Option<Row<_>>, Error>| match row? {
                Some(row) => Ok(self.here(row)),
                None => self.below(below.next().expect("one was asked for each that is not here")),
            };
            Ok(rows.into_iter().map(one).collect())
        });
        shown.unwrap_or_else(|_| at.iter().map(|at| self.layered::<Chunks>(at)).collect())
    }

    pub(super) fn here<T>(&self, row: Row<T>) -> Layered<T> {
        self.store().counts.here.fetch_add(1, Ordering::Relaxed);
        let from = self.store().origin(row.version);
        Layered { found: row.value.map(|value| (value, from)), origin: row.origin }
    }

    pub(super) fn below<T>(&self, found: Result<Found<T>, Error>) -> Result<Layered<T>, Error> {
        self.store().counts.below.fetch_add(1, Ordering::Relaxed);
        let found = found?;
        let origin = origin_of(&found);
        Ok(Layered { found, origin })
    }
}
