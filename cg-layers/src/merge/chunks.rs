//! Chunks, as a row of an overlay and the base's chunk are compared.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, EntityId, Lookup};
use cg_store::Error;
use cg_store::layer::kind::{Chunks, Entities};
use cg_store::layer::{Base, Found, origin_of};

use super::cells;
use super::choice::OverlayChoice;
use super::leaving::leaving;
use super::merge_kind::MergeKind;
use crate::store::{OverlayKind as _, Row, Store, value_of};

impl MergeKind for Chunks {
    fn merged<S: Base>(
        store: &Store<S>,
        lease: u64,
        at: &ChunkAt,
        row: &Row<Arc<Chunk>>,
        below: &Found<Arc<Chunk>>,
        choice: OverlayChoice,
    ) -> Result<Option<Arc<Chunk>>, Error> {
        let (Some(ours), Some(theirs)) = (row.here(), value_of(below)) else { return Ok(None) };
        if !store.base.has_origin(*at, row.origin)? {
            // The base is of another history, so what it has was not made of the ancestor.
            return Ok(None);
        }
        let Some(ancestor) = store.ancestor(lease, *at, row)? else { return Ok(None) };
        let schema = store.catalog()?.current_schema();
        Ok(cells::merge(&ancestor, ours, theirs, choice, &schema).map(Arc::new))
    }

    fn to_write<S: Base>(
        store: &Store<S>,
        lease: u64,
        at: &ChunkAt,
        row: Row<Arc<Chunk>>,
    ) -> Result<Row<Arc<Chunk>>, Error> {
        let Some(over) = row.over.filter(|over| *over != row.origin) else { return Ok(row) };
        let below = Self::find(&store.base, at)?;
        if origin_of(&below) != over {
            return Ok(row);
        }
        let merged = Self::merged(store, lease, at, &row, &below, OverlayChoice::Ask)?;
        Ok(match merged {
            Some(merged) => Row { value: Lookup::Found(merged), origin: over, ..row },
            None => row,
        })
    }

    /// The base's chunk may lack references to entities that wait for their transfer.
    fn is_merged<S: Base>(
        store: &Store<S>,
        lease: u64,
        row: &Row<Arc<Chunk>>,
        below: &Found<Arc<Chunk>>,
    ) -> Result<bool, Error> {
        let (Some(own), Some(below)) = (row.here(), value_of(below)) else {
            return Ok(row.here() == value_of(below));
        };
        let mut own = Chunk::clone(own);
        let lacks: Vec<_> =
            own.entities().iter().copied().filter(|id| !below.entities().contains(id)).collect();
        for id in lacks {
            if !is_to_be_transferred(store, lease, &id)? {
                return Ok(false);
            }
            own.remove_entity(id);
        }
        Ok(own == **below)
    }
}

/// Whether a merge that ended early will transfer an entity: it has left its chunk in the base for that, or the base
/// still has it as the overlay first saw it. An entity that the base has changed or deleted since is a conflict.
fn is_to_be_transferred<S: Base>(store: &Store<S>, lease: u64, id: &EntityId) -> Result<bool, Error> {
    let Some(row) = Entities::read(store, lease, id)?.filter(|row| row.here().is_some()) else {
        return Ok(false);
    };
    let found = Entities::find(&store.base, id)?;
    let Some(below) = value_of(&found) else { return Ok(false) };
    Ok(below.owner == leaving(below).owner || origin_of(&found) == row.origin)
}
