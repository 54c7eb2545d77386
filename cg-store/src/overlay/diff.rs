//! What an overlay shows otherwise than its base.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, EntityId, Lookup};

use super::base::Base;
use super::{Found, Overlay, origin_of};
use crate::engine::Engine;
use crate::error::Error;

/// How a place in an overlay differs from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// The base has nothing there.
    Added,
    /// Both have something, and it differs.
    Changed,
    /// Only the base has something.
    Deleted,
}

/// One entity that differs; chunks are told by [`OverlayDiff::chunks`].
pub type EntityDifference = (EntityId, Difference);

/// Everything that an overlay shows otherwise than its base does now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverlayDiff {
    /// Chunks, in the order of their keys.
    pub chunks: Vec<(ChunkAt, Difference)>,
    /// Entities, ascending.
    pub entities: Vec<EntityDifference>,
}

/// One thing that an overlay wrote, as a merge needs it.
#[derive(Debug)]
pub(super) struct Change<K, T> {
    pub(super) key: K,
    /// `None` is a deletion.
    pub(super) new: Option<T>,
    /// What the overlay wrote over.
    pub(super) origin: Origin,
    /// What the base has now.
    pub(super) found: Origin,
    pub(super) difference: Difference,
}

impl OverlayDiff {
    /// Whether nothing differs.
    pub const fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.entities.is_empty()
    }
}

impl<S: Base, E: Engine> Overlay<S, E> {
    /// Lists what the overlay shows otherwise than its base does. What was written and is equal again is not listed.
    ///
    /// Costs a scan of what was written, and the base's load of each place. Waits for a transaction under way and holds the
    /// next one off.
    ///
    /// # Errors
    /// [`Error::Nested`]; [`Error::Corrupt`] if anything is damaged on either side.
    pub fn diff(&self) -> Result<OverlayDiff, Error> {
        let _alone = self.write()?;
        let mut diff = OverlayDiff::default();
        self.changes(
            |change| {
                diff.chunks.push((change.key, change.difference));
                Ok(())
            },
            |change| {
                diff.entities.push((change.key, change.difference));
                Ok(())
            },
        )?;
        Ok(diff)
    }

    /// Shows what differs from the base, chunks first; the caller has the right to write.
    pub(super) fn changes(
        &self,
        mut chunk: impl FnMut(Change<ChunkAt, Arc<Chunk>>) -> Result<(), Error>,
        mut entity: impl FnMut(Change<EntityId, Entity>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.store.for_each(
            self.lease(),
            |at, row| {
                let below = self.store.base.find_chunk(at)?;
                compare(at, row.value, row.origin, below).map_or(Ok(()), &mut chunk)
            },
            |id, row| {
                let below = self.store.base.find_entity(id)?;
                compare(id, row.value, row.origin, below).map_or(Ok(()), &mut entity)
            },
        )
    }
}

fn compare<K, T: PartialEq>(
    key: K,
    here: Lookup<T>,
    origin: Origin,
    below: Found<T>,
) -> Option<Change<K, T>> {
    let found = origin_of(&below);
    let (new, difference) = match (here.here(), below.here()) {
        (Some(here), Some((below, _))) if here == below => return None,
        (Some(here), Some(_)) => (Some(here), Difference::Changed),
        (Some(here), None) => (Some(here), Difference::Added),
        (None, Some(_)) => (None, Difference::Deleted),
        (None, None) => return None,
    };
    Some(Change { key, new, origin, found, difference })
}
