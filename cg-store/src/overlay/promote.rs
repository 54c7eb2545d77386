//! Merging an overlay into its base.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, EntityId};
use cg_registry::{Catalog, Registration};

use super::base::{Base, PromoteTarget};
use super::diff::Change;
use super::{Found, Overlay, OverlayError, origin_of};
use crate::durability::Durability;
use crate::engine::Engine;
use crate::error::{ConflictKey, Error};
use crate::world::World;

/// What a promotion changes in its target.
#[derive(Debug, Default)]
pub struct Promotion {
    pub(crate) chunks: BTreeMap<ChunkAt, Promoting<Arc<Chunk>>>,
    pub(crate) entities: BTreeMap<EntityId, Promoting<Entity>>,
}

/// One thing to be promoted; no value is a deletion.
#[derive(Debug)]
pub(crate) struct Promoting<T> {
    pub(crate) new: Option<T>,
    /// What the target must still have there.
    pub(crate) origin: Origin,
}

/// What a promotion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promoted {
    /// Chunks and entities that were changed in the base.
    pub changes: u64,
}

impl<S: Base, E: Engine> Overlay<S, E> {
    /// Merges what the overlay shows otherwise into its base, whole or not at all, and empties the overlay.
    ///
    /// The base gets the overlay's own names first, then everything else in one transaction, which is safe from power cuts
    /// when this returns. Killed before that transaction, nothing but names has come; killed behind it, the overlay shows
    /// nothing that the base does not have, and promoting it again changes nothing.
    ///
    /// Whoever else reads this overlay meanwhile sees the same before and after. Costs what [`diff`](Self::diff) costs and
    /// the transaction, and the memory of everything that differs.
    ///
    /// # Errors
    /// [`OverlayError::WrongBase`] and [`OverlayError::BaseReplaced`] if it is not the overlay's base;
    /// [`OverlayError::BaseChanged`] if anything that the overlay wrote over was changed in the base since. Nothing was
    /// merged then.
    pub fn promote_into(&self, base: &impl PromoteTarget) -> Result<Promoted, Error> {
        self.store.head().check(base.identity())?;
        let _alone = self.write()?;
        if let Some(names) = self.store.own_names() {
            // Refuses if the base has issued the same ids for other names.
            self.store.catalog()?;
            base.register_names(&names)?;
            self.store.names_adopted()?;
        }
        let mut promotion = Promotion::default();
        self.changes(
            |change| {
                check(&change, ConflictKey::Chunk(change.key))?;
                let promoting = Promoting { new: change.new, origin: change.origin };
                promotion.chunks.insert(change.key, promoting);
                Ok(())
            },
            |change| {
                check(&change, ConflictKey::Entity(change.key))?;
                let promoting = Promoting { new: change.new, origin: change.origin };
                promotion.entities.insert(change.key, promoting);
                Ok(())
            },
        )?;
        let changes = if promotion.is_empty() { 0 } else { base.apply(&promotion)? };
        self.empty()?;
        Ok(Promoted { changes })
    }
}

impl Promotion {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.entities.is_empty()
    }

    /// How many chunks and entities are to be changed.
    pub fn len(&self) -> u64 {
        (self.chunks.len() + self.entities.len()) as u64
    }

    /// Refuses if a target has something else by now than what was written over. The caller has read the same places in a
    /// transaction before, so that what changes behind this is a conflict.
    pub(crate) fn check(&self, target: &impl Base) -> Result<(), Error> {
        let positions: Vec<_> = self.chunks.keys().copied().collect();
        for ((at, promoting), found) in self.chunks.iter().zip(target.find_chunks(&positions)) {
            unchanged(ConflictKey::Chunk(*at), promoting.origin, &found?)?;
        }
        for (id, promoting) in &self.entities {
            unchanged(ConflictKey::Entity(*id), promoting.origin, &target.find_entity(*id)?)?;
        }
        Ok(())
    }
}

fn check<K, T>(change: &Change<K, T>, key: ConflictKey) -> Result<(), Error> {
    let (expected, found) = (change.origin, change.found);
    if expected == found { Ok(()) } else { Err(OverlayError::BaseChanged { key, expected, found }.into()) }
}

fn unchanged<T>(key: ConflictKey, expected: Origin, found: &Found<T>) -> Result<(), Error> {
    let found = origin_of(found);
    if expected == found { Ok(()) } else { Err(OverlayError::BaseChanged { key, expected, found }.into()) }
}

impl<E: Engine> PromoteTarget for World<E> {
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.flush()?;
        Ok(names)
    }

    fn apply(&self, promotion: &Promotion) -> Result<u64, Error> {
        self.transaction_at(Durability::Safe, |tx| {
            let positions: Vec<_> = promotion.chunks.keys().copied().collect();
            for read in tx.load_many(&positions) {
                read?;
            }
            for id in promotion.entities.keys() {
                tx.entity(*id)?;
            }
            promotion.check(self)?;
            for (at, promoting) in &promotion.chunks {
                match &promoting.new {
                    Some(chunk) => tx.save(*at, Arc::clone(chunk)),
                    None => tx.delete(*at),
                }
            }
            for (id, promoting) in &promotion.entities {
                match &promoting.new {
                    Some(entity) => tx.put_entity(*id, entity.clone()),
                    None => tx.delete_entity(*id),
                }
            }
            Ok::<_, Error>(promotion.len())
        })
        .map(|committed| committed.value)
    }
}

impl<S: Base, E: Engine> PromoteTarget for Overlay<S, E> {
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.arenas().flush()?;
        Ok(names)
    }

    fn apply(&self, promotion: &Promotion) -> Result<u64, Error> {
        let applied = self.transaction(|tx| {
            // The rows remember what was there at this look, not what comes between it and the end.
            for at in promotion.chunks.keys() {
                tx.load(*at)?;
            }
            for id in promotion.entities.keys() {
                tx.entity(*id)?;
            }
            promotion.check(tx.overlay())?;
            for (at, promoting) in &promotion.chunks {
                match &promoting.new {
                    Some(chunk) => tx.save(*at, Arc::clone(chunk)),
                    None => tx.delete(*at),
                }
            }
            for (id, promoting) in &promotion.entities {
                match &promoting.new {
                    Some(entity) => tx.put_entity(*id, entity.clone()),
                    None => tx.delete_entity(*id),
                }
            }
            Ok::<_, Error>(promotion.len())
        })?;
        self.arenas().flush()?;
        Ok(applied)
    }
}
