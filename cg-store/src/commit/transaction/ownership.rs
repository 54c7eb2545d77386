//! Ownership of entities: makes the references of a transaction's chunks agree with the owners of its entities.
//!
//! **Invariant** after every commit: a chunk refers to an entity exactly if that entity's stored owner is the chunk. So
//! an entity is in one place or in none, and a crash can neither duplicate nor lose it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::entity::{Entity, Owner, Reason};
use cg_format::{ChunkAt, EntityId, Lookup};

use super::changes::ChunkChange;
use super::chunk_writes::ChunkWrites;
use crate::read::cache::Stored;
use crate::read::state::ReadState;
use crate::storage::error::Error;

/// The reason stored with an entity that its chunk released without a new owner.
pub(crate) const RELEASED: &str = "released by its chunk";

/// The stored state on which a transaction builds.
///
/// Each call reads many together, and returns one result for each in the order asked.
pub trait Ground {
    /// Chunks as they are before the transaction.
    fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>>;
    /// Entities as they are before the transaction.
    fn entities(&self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>>;
}

impl Ground for ReadState {
    fn stored_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Stored>, Error>> {
        Self::stored_many(self, at)
    }

    fn entities(&self, ids: &[EntityId]) -> Vec<Result<Option<Entity>, Error>> {
        Self::entities(self, ids)
    }
}

/// The chunks and entities of a transaction as they will be stored.
#[derive(Debug)]
pub struct Resolved {
    /// Every chunk that is written and changes, with what it replaces.
    pub chunks: BTreeMap<ChunkAt, ChunkChange>,
    /// Chunks whose written content is equal to the stored one.
    pub(super) unchanged: Vec<ChunkAt>,
    /// Every entity that changes; `None` is a deletion.
    pub entities: BTreeMap<EntityId, Option<Entity>>,
    /// Entities whose stored rows were read, written or not.
    pub(super) consulted: BTreeSet<EntityId>,
}

impl ChunkChange {
    fn old_references(&self) -> &[EntityId] {
        match &self.old {
            Lookup::Found(stored) => stored.chunk.entities(),
            Lookup::Tombstone | Lookup::NotFound => &[],
        }
    }

    fn new_references(&self) -> &[EntityId] {
        self.new.as_ref().map_or(&[], |chunk| chunk.entities())
    }

    /// Whether the write is equal to what is stored.
    fn is_same(&self) -> bool {
        match (&self.old, &self.new) {
            (Lookup::Found(old), Some(new)) => {
                // One block that differs is enough.
                let names_a_change = self.named.as_ref().is_some_and(|named| named.differ_in(new));
                !names_a_change && (Arc::ptr_eq(&old.chunk, new) || old.chunk == *new)
            }
            (Lookup::Found(_), None) | (Lookup::Tombstone | Lookup::NotFound, Some(_)) => false,
            (Lookup::Tombstone | Lookup::NotFound, None) => true,
        }
    }
}

/// Makes the references and owners of a transaction agree.
///
/// # Errors
/// [`Error::OwnerAbsent`], [`Error::EntityOwned`], [`Error::EntityUnknown`]; [`Error::Corrupt`] if what is stored is damaged.
pub fn resolve_ownership<G: Ground>(
    ground: &G,
    chunks: &ChunkWrites,
    entities: &BTreeMap<EntityId, Option<Entity>>,
) -> Result<Resolved, Error> {
    let (changed, mut unchanged) = compare_with_stored(ground, chunks)?;
    let mut resolving = Resolving {
        ground,
        chunks: changed,
        is_moved: false,
        entities: entities.clone(),
        stored: BTreeMap::new(),
    };
    resolving.place_all(entities)?;
    resolving.follow_references()?;
    let Resolving { mut chunks, mut entities, stored, is_moved, .. } = resolving;
    // An entity equal to the stored one is no change.
    entities.retain(|id, entity| stored.get(id) != Some(entity));
    if is_moved {
        // Chunks that lost their reference again, or to which the host had added it already.
        chunks.retain(|at, change| {
            let is_same = change.is_same();
            if is_same {
                unchanged.push(*at);
            }
            !is_same
        });
        unchanged.sort_unstable();
        unchanged.dedup();
        unchanged.retain(|at| !chunks.contains_key(at));
    }
    Ok(Resolved { chunks, unchanged, entities, consulted: stored.into_keys().collect() })
}

/// Returns the chunks that the writes change, and the positions of those that they do not.
fn compare_with_stored<G: Ground>(
    ground: &G,
    chunks: &ChunkWrites,
) -> Result<(BTreeMap<ChunkAt, ChunkChange>, Vec<ChunkAt>), Error> {
    let positions: Vec<ChunkAt> = chunks.keys().copied().collect();
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for ((at, new, named), old) in chunks.with_names().zip(ground.stored_many(&positions)) {
        let old = old?;
        let named = named.filter(|named| named.begin_with(&old)).cloned();
        let change = ChunkChange { old, new: new.clone(), named };
        if change.is_same() {
            unchanged.push(*at);
        } else {
            changed.push((*at, change));
        }
    }
    Ok((changed.into_iter().collect(), unchanged))
}

struct Resolving<'g, G> {
    ground: &'g G,
    chunks: BTreeMap<ChunkAt, ChunkChange>,
    /// Whether any chunk was added or changed because of an entity.
    is_moved: bool,
    entities: BTreeMap<EntityId, Option<Entity>>,
    /// Stored entities that were read.
    stored: BTreeMap<EntityId, Option<Entity>>,
}

impl<G: Ground> Resolving<'_, G> {
    /// Moves the references to the entities that the transaction puts or deletes.
    fn place_all(&mut self, entities: &BTreeMap<EntityId, Option<Entity>>) -> Result<(), Error> {
        let owners = entities.iter().map(|(id, entity)| (*id, entity.as_ref().and_then(owner_of)));
        let owners: Vec<(EntityId, Option<ChunkAt>)> = owners.collect();
        self.read_entities(owners.iter().map(|(id, _)| *id))?;
        let moves =
            owners.into_iter().map(|(id, after)| (id, self.owner(id).filter(|at| Some(*at) != after), after));
        let moves: Vec<_> = moves.collect();
        self.read_chunks(moves.iter().flat_map(|(_, before, after)| [*before, *after]).flatten())?;
        moves.into_iter().try_for_each(|(id, before, after)| self.place(id, before, after))
    }

    /// Moves the reference to an entity from its previous chunk to the chunk that owns it now.
    fn place(&mut self, id: EntityId, before: Option<ChunkAt>, after: Option<ChunkAt>) -> Result<(), Error> {
        if let Some(at) = before
            && let Some(new) = &mut self.chunk(at).new
            && new.entities().binary_search(&id).is_ok()
        {
            Arc::make_mut(new).remove_entity(id);
        }
        if let Some(at) = after {
            let new = self.chunk(at).new.as_mut().ok_or(Error::OwnerAbsent { id, at })?;
            if new.entities().binary_search(&id).is_err() {
                Arc::make_mut(new).add_entity(id);
            }
        }
        Ok(())
    }

    /// Sets the owners of entities whose references the host moved in the chunks.
    fn follow_references(&mut self) -> Result<(), Error> {
        let mut gained: BTreeMap<EntityId, ChunkAt> = BTreeMap::new();
        let mut lost: BTreeSet<(EntityId, ChunkAt)> = BTreeSet::new();
        for (at, change) in &self.chunks {
            let (old, new) = (change.old_references(), change.new_references());
            for id in new.iter().filter(|id| old.binary_search(id).is_err()) {
                if let Some(other) = gained.insert(*id, *at) {
                    return Err(Error::EntityOwned { id: *id, owner: other });
                }
            }
            lost.extend(old.iter().filter(|id| new.binary_search(id).is_err()).map(|id| (*id, *at)));
        }
        lost.retain(|(id, _)| !gained.contains_key(id));
        let unwritten = |id: &EntityId| !self.entities.contains_key(id);
        let adopted: Vec<_> = gained.keys().copied().filter(unwritten).collect();
        let released: Vec<_> = lost.iter().map(|(id, _)| *id).filter(unwritten).collect();
        self.read_entities(adopted.iter().copied().chain(released))?;
        let left =
            adopted.iter().filter_map(|id| self.owner(*id).filter(|owner| gained.get(id) != Some(owner)));
        let left: Vec<_> = left.collect();
        self.read_chunks(left)?;
        for (id, at) in &gained {
            self.adopt(*id, *at)?;
        }
        for (id, at) in lost {
            self.release(id, at);
        }
        Ok(())
    }

    /// A chunk has a new reference: the entity must be new, detached, or released by its chunk.
    fn adopt(&mut self, id: EntityId, at: ChunkAt) -> Result<(), Error> {
        if let Some(put) = self.entities.get(&id) {
            let entity = put.as_ref().ok_or(Error::EntityUnknown { id, at })?;
            return match owner_of(entity) {
                Some(owner) if owner == at => Ok(()),
                Some(owner) => Err(Error::EntityOwned { id, owner }),
                None => {
                    let owned = entity.clone().owned_by(Owner::Chunk(at));
                    self.entities.insert(id, Some(owned));
                    Ok(())
                }
            };
        }
        let entity = self.stored_entity(id).ok_or(Error::EntityUnknown { id, at })?;
        if let Some(owner) = owner_of(&entity).filter(|owner| *owner != at)
            && self.chunk(owner).new_references().binary_search(&id).is_ok()
        {
            return Err(Error::EntityOwned { id, owner });
        }
        self.entities.insert(id, Some(entity.owned_by(Owner::Chunk(at))));
        Ok(())
    }

    /// A chunk has lost a reference that no chunk of the transaction gained.
    fn release(&mut self, id: EntityId, at: ChunkAt) {
        if self.entities.contains_key(&id) {
            return;
        }
        let chunk_is_deleted = self.chunks.get(&at).is_some_and(|change| change.new.is_none());
        if let Some(entity) = self.stored_entity(id).filter(|entity| owner_of(entity) == Some(at)) {
            let detached = entity.owned_by(Owner::Detached(reason(RELEASED)));
            self.entities.insert(id, (!chunk_is_deleted).then_some(detached));
        }
    }

    /// Reads chunks together. A chunk that the transaction did not write starts unchanged.
    fn read_chunks(&mut self, at: impl IntoIterator<Item = ChunkAt>) -> Result<(), Error> {
        let (known, unknown): (BTreeSet<_>, BTreeSet<_>) =
            at.into_iter().partition(|at| self.chunks.contains_key(at));
        self.is_moved |= !known.is_empty() || !unknown.is_empty();
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown: Vec<_> = unknown.into_iter().collect();
        for (at, old) in unknown.iter().zip(self.ground.stored_many(&unknown)) {
            let old = old?;
            let new = old.clone().here().map(|stored| stored.chunk);
            self.chunks.insert(*at, ChunkChange { old, new, named: None });
        }
        Ok(())
    }

    /// Reads entities together.
    fn read_entities(&mut self, ids: impl IntoIterator<Item = EntityId>) -> Result<(), Error> {
        let ids: Vec<_> = ids.into_iter().filter(|id| !self.stored.contains_key(id)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for (id, entity) in ids.iter().zip(self.ground.entities(&ids)) {
            self.stored.insert(*id, entity?);
        }
        Ok(())
    }

    /// The change of a chunk that was written or [read](Self::read_chunks).
    fn chunk(&mut self, at: ChunkAt) -> &mut ChunkChange {
        self.chunks.get_mut(&at).expect("the owners of all entities were read")
    }

    /// An entity that was [read](Self::read_entities).
    fn stored_entity(&self, id: EntityId) -> Option<Entity> {
        self.stored.get(&id).cloned().flatten()
    }

    /// The chunk that owned an entity before the transaction. The entity was read.
    fn owner(&self, id: EntityId) -> Option<ChunkAt> {
        self.stored.get(&id)?.as_ref().and_then(owner_of)
    }
}

/// Creates a reason from a text that is known to be short enough.
pub fn reason(text: &'static str) -> Reason {
    Reason::new(text).expect("the engine's own reasons are short")
}

/// The chunk that owns an entity.
fn owner_of(entity: &Entity) -> Option<ChunkAt> {
    match &entity.owner {
        Owner::Chunk(at) => Some(*at),
        Owner::Detached(_) => None,
    }
}
