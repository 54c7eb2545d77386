//! Merging an overlay into its base.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, Lookup, RecordId};
use cg_registry::{Catalog, Registration};

use super::base::{Base, Merged, PromoteTarget};
use super::diff::{Change, Changed};
use super::store::Edits;
use super::{Found, Overlay, OverlayError, OverlayTransaction, origin_of};
use crate::api::world::World;
use crate::commit::transaction::Transaction;
use crate::engine::Level;
use crate::kinds::object::StoredObject;
use crate::kinds::property::Property;
use crate::storage::durability::Durability;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::object_key::ObjectKey;

/// So many chunks of a target are in memory at once while they are compared.
const LOOKED_AT_ONCE: usize = 1024;

/// What a promotion changes in its target.
#[derive(Debug, Default)]
pub struct Promotion {
    pub(crate) chunks: BTreeMap<ChunkAt, Promoting<Arc<Chunk>>>,
    pub(crate) entities: BTreeMap<EntityId, Promoting<Entity>>,
    pub(crate) properties: BTreeMap<Property, Promoting<Vec<u8>>>,
    /// Each with what becomes of it, of one that is deleted too.
    pub(crate) objects: BTreeMap<ObjectKey, Promoting<StoredObject>>,
    pub(crate) records: BTreeMap<RecordId, Promoting<Arc<Record>>>,
}

/// One thing to be promoted; no value is a deletion.
#[derive(Debug)]
pub(crate) struct Promoting<T> {
    pub(crate) new: Option<T>,
    /// What the target must still have there.
    pub(crate) origin: Origin,
    /// Whether an entity is to be transferred: until then the overlay shows something else than `new`.
    waits: bool,
}

/// What a promotion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promoted {
    /// Chunks, entities, properties, objects and records that were changed in the base.
    pub changes: u64,
}

impl<S: Base> Overlay<S> {
    /// Merges what the overlay shows otherwise into its base, and empties the overlay.
    ///
    /// The base gets the overlay's own names first, then everything else in one transaction, which is safe from power cuts
    /// when this returns. Killed before that transaction, nothing but names has come; killed behind it, the overlay shows
    /// nothing that the base does not have, and promoting it again changes nothing.
    ///
    /// A segmented world takes one transaction for each segment, one after the other, then one in the root for properties,
    /// objects and records. Readers of several segments may see some merged and others not yet, and an entity that goes to
    /// another segment detached. The overlay forgets what each transaction has merged. Killed in between, or stopped by an
    /// error, it keeps the rest: call this again to go on. Nothing is merged twice. Do not edit the overlay before that: of what the
    /// call had merged and not yet forgotten, an edit is refused as [`OverlayError::BaseChanged`] by every later call.
    ///
    /// Whoever else reads this overlay meanwhile sees the same before and after. Costs what [`diff`](Self::diff) costs and
    /// the transactions, and the memory of everything that differs.
    ///
    /// # Errors
    /// [`OverlayError::WrongBase`] and [`OverlayError::BaseReplaced`] if it is not the overlay's base;
    /// [`OverlayError::BaseChanged`] if anything that the overlay wrote over was changed in the base since,
    /// [`Error::Conflict`] if it is changed meanwhile. This call has merged nothing then: all segments are compared before the
    /// first is written. [`Error::MergedInPart`] if a segment is refused, changed or fails after that, and others are merged.
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
        self.changes(|changed| {
            let Promotion { chunks, entities, properties, objects, records } = &mut promotion;
            match changed {
                Changed::Chunk(change) => take(chunks, change),
                Changed::Entity(change) => take(entities, change),
                Changed::Property(change) => take(properties, change),
                Changed::Object(change) => take(objects, change),
                Changed::Record(change) => take(records, change),
            }
            Ok(())
        })?;
        let mut merged = |part: &Promotion| self.forget_merged(part);
        let changes = if promotion.is_empty() { 0 } else { base.apply(promotion, &mut merged)? };
        // A value that was equal before may not be synced yet.
        base.keep_found(Level::Power)?;
        self.empty()?;
        Ok(Promoted { changes })
    }

    /// Forgets what a part has merged. What waits for a transfer is shown as before, over what the part left in the base.
    fn forget_merged(&self, part: &Promotion) -> Result<(), Error> {
        let (lease, base) = (self.lease(), &self.store.base);
        let (mut edits, mut chunks, mut entities) = (Edits::default(), Vec::new(), Vec::new());
        for (at, promoting) in &part.chunks {
            if !promoting.waits {
                chunks.push(*at);
            } else if let Some(origin) = promoting.merged_as(&base.find_chunk(*at)?)
                && let Some(row) = self.store.chunk(lease, *at)?
            {
                edits.chunks.push((*at, row.value.here(), origin));
            }
        }
        for (id, promoting) in &part.entities {
            if !promoting.waits {
                entities.push(*id);
            } else if let Some(origin) = promoting.merged_as(&base.find_entity(*id)?)
                && let Some(row) = self.store.entity(lease, *id)?
            {
                edits.entities.push((*id, row.value.here(), origin));
            }
        }
        if !edits.is_empty() {
            self.store.write(lease, edits, self.store.catalog()?.current_generation())?;
        }
        self.store.forget(lease, &chunks, &entities)
    }
}

impl<T: PartialEq> Promoting<T> {
    /// Merges this for now, until an entity is transferred.
    pub(crate) fn wait_as(&mut self, new: T) {
        self.new = Some(new);
        self.waits = true;
    }

    /// The origin of what was found, if that is what was to be merged.
    fn merged_as(&self, found: &Found<T>) -> Option<Origin> {
        match (&self.new, found) {
            (Some(new), Lookup::Here((value, origin))) if new == value => Some(*origin),
            _ => None,
        }
    }
}

impl Promotion {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many chunks, entities, properties, objects and records are to be changed.
    pub fn len(&self) -> u64 {
        let Self { chunks, entities, properties, objects, records } = self;
        (chunks.len() + entities.len() + properties.len() + objects.len() + records.len()) as u64
    }

    fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &StoredObject)> {
        self.objects.iter().filter_map(|(key, promoting)| Some((key, promoting.new.as_ref()?)))
    }

    fn records(&self) -> impl Iterator<Item = (RecordId, Option<Record>)> {
        self.records.iter().map(|(id, promoting)| (*id, promoting.new.as_deref().cloned()))
    }

    /// Writes over what an earlier call has merged, of what waits for a transfer: the target shows there neither what the
    /// overlay wrote over nor what the overlay shows.
    pub(crate) fn recognise_merged(&mut self, target: &impl Base) -> Result<(), Error> {
        for (at, promoting) in self.chunks.iter_mut().filter(|(_, promoting)| promoting.waits) {
            promoting.origin = promoting.merged_as(&target.find_chunk(*at)?).unwrap_or(promoting.origin);
        }
        for (id, promoting) in self.entities.iter_mut().filter(|(_, promoting)| promoting.waits) {
            promoting.origin = promoting.merged_as(&target.find_entity(*id)?).unwrap_or(promoting.origin);
        }
        Ok(())
    }

    /// Adds what waits for a transfer, which is over, to what others have of that.
    pub(crate) fn arrive(self, arrived: &mut Self) {
        let chunks = self.chunks.into_iter().filter(|(_, promoting)| promoting.waits);
        arrived.chunks.extend(chunks.map(|(at, promoting)| (at, Promoting { waits: false, ..promoting })));
        let entities = self.entities.into_iter().filter(|(_, promoting)| promoting.waits);
        arrived
            .entities
            .extend(entities.map(|(id, promoting)| (id, Promoting { waits: false, ..promoting })));
    }

    /// Refuses if a target has something else by now than what was written over. The caller has read the same places in a
    /// transaction before, so that what changes behind this is a conflict.
    pub(crate) fn check(&self, target: &impl Base) -> Result<(), Error> {
        let chunks: Vec<_> = self.chunks.iter().collect();
        for some in chunks.chunks(LOOKED_AT_ONCE) {
            let positions: Vec<_> = some.iter().map(|(at, _)| **at).collect();
            for ((at, promoting), found) in some.iter().zip(target.find_chunks(&positions)) {
                unchanged(ConflictKey::Chunk(**at), promoting.origin, &found?)?;
            }
        }
        for (id, promoting) in &self.entities {
            unchanged(ConflictKey::Entity(*id), promoting.origin, &target.find_entity(*id)?)?;
        }
        for (property, promoting) in &self.properties {
            unchanged(property.conflict_key(), promoting.origin, &target.find_property(property)?)?;
        }
        for (key, promoting) in &self.objects {
            unchanged(ConflictKey::Object(key.clone()), promoting.origin, &target.find_object(key)?)?;
        }
        for (id, promoting) in &self.records {
            unchanged(ConflictKey::Record(*id), promoting.origin, &target.find_record(*id)?)?;
        }
        Ok(())
    }

    /// Looks at all that it changes, compares that with what was written over, and changes it. What comes between the look
    /// and the end of the transaction is the transaction's to notice.
    pub(crate) fn put_into<T: Takes>(&self, tx: &mut T, target: &impl Base) -> Result<u64, Error> {
        let positions: Vec<_> = self.chunks.keys().copied().collect();
        tx.look_at_chunks(&positions)?;
        for id in self.entities.keys() {
            tx.look_at_entity(*id)?;
        }
        tx.look_at_kept(self)?;
        self.check(target)?;
        for (at, promoting) in &self.chunks {
            tx.take_chunk(*at, promoting.new.clone())?;
        }
        for (id, promoting) in &self.entities {
            tx.take_entity(*id, promoting.new.clone())?;
        }
        tx.take_kept(self)?;
        Ok(self.len())
    }
}

/// A transaction that a promotion is put into.
pub(crate) trait Takes {
    fn look_at_chunks(&mut self, at: &[ChunkAt]) -> Result<(), Error>;
    fn look_at_entity(&mut self, id: EntityId) -> Result<(), Error>;
    fn look_at_kept(&mut self, promotion: &Promotion) -> Result<(), Error>;
    fn take_chunk(&mut self, at: ChunkAt, new: Option<Arc<Chunk>>) -> Result<(), Error>;
    fn take_entity(&mut self, id: EntityId, new: Option<Entity>) -> Result<(), Error>;
    fn take_kept(&mut self, promotion: &Promotion) -> Result<(), Error>;
}

/// What transactions of worlds and of overlays do with the same words.
macro_rules! takes {
    () => {
        fn look_at_entity(&mut self, id: EntityId) -> Result<(), Error> {
            self.entity(id).map(drop)
        }

        fn look_at_kept(&mut self, promotion: &Promotion) -> Result<(), Error> {
            promotion.properties.keys().try_for_each(|property| self.property(property).map(drop))?;
            promotion.objects.keys().try_for_each(|key| self.object(key).map(drop))?;
            promotion.records.keys().try_for_each(|id| self.record(*id).map(drop))
        }

        fn take_chunk(&mut self, at: ChunkAt, new: Option<Arc<Chunk>>) -> Result<(), Error> {
            match new {
                Some(chunk) => self.save(at, chunk),
                None => self.delete(at),
            }
            Ok(())
        }

        fn take_entity(&mut self, id: EntityId, new: Option<Entity>) -> Result<(), Error> {
            match new {
                Some(entity) => self.put_entity(id, entity),
                None => self.delete_entity(id),
            }
            Ok(())
        }

        fn take_kept(&mut self, promotion: &Promotion) -> Result<(), Error> {
            for (property, promoting) in &promotion.properties {
                self.set_property(property.clone(), promoting.new.clone());
            }
            for (key, object) in promotion.objects() {
                self.write_stored_object(key.clone(), object)?;
            }
            for (id, record) in promotion.records() {
                match record {
                    Some(record) => self.put_record(id, record),
                    None => self.delete_record(id),
                }
            }
            Ok(())
        }
    };
}

impl Takes for Transaction<'_> {
    fn look_at_chunks(&mut self, at: &[ChunkAt]) -> Result<(), Error> {
        let look = |some: &[ChunkAt]| self.load_many(some).into_iter().try_for_each(|read| read.map(drop));
        at.chunks(LOOKED_AT_ONCE).try_for_each(look)
    }

    takes!();
}

impl<S: Base> Takes for OverlayTransaction<'_, S> {
    /// The rows remember what was there at this look, not what comes between it and the end.
    fn look_at_chunks(&mut self, at: &[ChunkAt]) -> Result<(), Error> {
        at.iter().try_for_each(|at| self.load(*at).map(drop))
    }

    takes!();
}

/// Adds a change to a promotion. The target compares what the base has.
fn take<K: Ord, T>(promoting: &mut BTreeMap<K, Promoting<T>>, change: Change<K, T>) {
    let Change { key, new, origin, difference: _ } = change;
    promoting.insert(key, Promoting { new, origin, waits: false });
}

fn unchanged<T>(key: ConflictKey, expected: Origin, found: &Found<T>) -> Result<(), Error> {
    let found = origin_of(found);
    if expected == found { Ok(()) } else { Err(OverlayError::BaseChanged { key, expected, found }.into()) }
}

impl PromoteTarget for World {
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.flush()?;
        Ok(names)
    }

    fn apply(&self, promotion: Promotion, _: &mut Merged<'_>) -> Result<u64, Error> {
        let committed = self.transaction_at(Durability::Safe, |tx| promotion.put_into(tx, self))?;
        Ok(committed.value)
    }
}

impl<S: Base> PromoteTarget for Overlay<S> {
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let names = self.register(new)?;
        self.arenas().flush()?;
        Ok(names)
    }

    fn apply(&self, promotion: Promotion, _: &mut Merged<'_>) -> Result<u64, Error> {
        let applied = self.transaction(|tx| {
            let target = tx.overlay().clone();
            promotion.put_into(tx, &target)
        })?;
        self.arenas().flush()?;
        Ok(applied)
    }
}
