//! Applying what a server told of values other than chunks.

use std::ops::ControlFlow;

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::object::ObjectView;
use cg_format::record::RecordView;
use cg_format::{DecodeError, Dimension, EntityId, RecordId};
use cg_registry::portable::IdRemap;
use cg_registry::{Catalog, Name};
use cg_store::layer::replace_stored_object;
use cg_store::layer::values::{ValueKind, list_values};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::view::ReadView;
use cg_store::{Property, Transaction};

use super::SyncOutcome;
use crate::error::SyncError;
use crate::messages::{NamesOfValues, Position, Told, ValuesReply};
use crate::value_set::{ValueSet, is_sent};

/// Why an entity of a cache has no owner.
const CACHED: &str = "cached";
/// No key of a value is longer. A position is kept, and returned with every request.
const MAX_KEY_BYTES: usize = 1 << 16;
const NO_DIMENSION: &str = "its dimension was never named";

/// The conversion of values into the cache's ids.
pub(crate) struct Incoming<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) named: &'a NamesOfValues,
    pub(crate) remap: &'a IdRemap,
}

/// The values of a set that a cache has and a listing told nothing of. They are not there any more.
pub(crate) fn absent(
    view: &ReadView<'_>,
    set: &ValueSet,
    reply: &ValuesReply,
) -> Result<Vec<Vec<u8>>, SyncError> {
    let Some((behind, until)) = &reply.listed else { return Ok(Vec::new()) };
    let (mut told, mut absent) = (reply.values.iter().map(|(key, _)| &key[..]).peekable(), Vec::new());
    let from = (!behind.is_empty()).then_some(&behind[..]);
    list_values(view, set.kind, &set.prefix, from, |key, value| {
        if until.as_ref().is_some_and(|until| key > &until[..]) {
            return ControlFlow::Break(());
        }
        while told.next_if(|told| *told < key).is_some() {}
        // What is damaged here is left to whom it concerns.
        let is_here = value.is_ok_and(|(_, bytes)| set.has(key, &bytes));
        if is_here && told.peek() != Some(&key) {
            absent.push(key.to_vec());
        }
        ControlFlow::Continue(())
    })?;
    Ok(absent)
}

impl ValueSet {
    /// Whether a value of a cache is of the set: not what the cache keeps for itself, and nothing that is deleted.
    pub(crate) fn has(&self, key: &[u8], bytes: &[u8]) -> bool {
        let is_inside = |position: EntityPos| self.contains_position(position.dimension(), position.block());
        key.starts_with(&self.prefix)
            && is_sent(self.kind, key)
            && match self.kind {
                ValueKind::Properties => true,
                ValueKind::Objects => ObjectView::decode(bytes).is_ok_and(|object| object.bytes.is_some()),
                ValueKind::Entities => Entity::decode(bytes).is_ok_and(|entity| is_inside(entity.position)),
                ValueKind::Records => {
                    RecordView::decode(bytes).is_ok_and(|record| is_inside(record.position))
                }
            }
    }
}

/// Refuses keys that were not asked for, and a listing that is in no order or passes its ends.
pub(crate) fn check(set: &ValueSet, reply: &ValuesReply) -> Result<(), SyncError> {
    let wrong = |key: &[u8], reason: &str| SyncError::value(set.kind, key, reason);
    if let Some(Position::Changes { key: Some(key), .. } | Position::Listing { key, .. }) = &reply.next
        && key.len() > MAX_KEY_BYTES
    {
        return Err(wrong(&[], "a position is longer than a key"));
    }
    for (key, _) in &reply.values {
        if !key.starts_with(&set.prefix) || !is_sent(set.kind, key) {
            return Err(wrong(key, "it was not asked for"));
        }
    }
    let Some((behind, until)) = &reply.listed else { return Ok(()) };
    let mut last = behind;
    for (key, _) in &reply.values {
        if key <= last || until.as_ref().is_some_and(|until| key > until) {
            return Err(wrong(key, "it is out of the order of the listing"));
        }
        last = key;
    }
    Ok(())
}

impl Incoming<'_> {
    /// Applies what was told of a value.
    pub(crate) fn apply(
        &self,
        tx: &mut Transaction<'_>,
        set: &ValueSet,
        (key, told): (&[u8], &Told),
        applied: &mut SyncOutcome,
    ) -> Result<(), SyncError> {
        match told {
            Told::Same => {}
            Told::Damaged => applied.damaged_values.push((set.kind, key.into())),
            Told::Gone => delete(tx, set.kind, key, applied)?,
            // Another set may have brought it where it is now.
            Told::Outside => {
                let position = match set.kind {
                    ValueKind::Entities => tx.entity(EntityId::from_bytes(id(key)))?.map(|it| it.position),
                    ValueKind::Records => tx.record(RecordId::from_bytes(id(key)))?.map(|it| it.position),
                    ValueKind::Objects | ValueKind::Properties => None,
                };
                if position.is_some_and(|at| set.contains_position(at.dimension(), at.block())) {
                    delete(tx, set.kind, key, applied)?;
                }
            }
            Told::Newer(bytes) => {
                self.put(tx, set.kind, key, bytes, applied)?;
                applied.values_updated += 1;
            }
        }
        Ok(())
    }

    fn put(
        &self,
        tx: &mut Transaction<'_>,
        kind: ValueKind,
        key: &[u8],
        bytes: &[u8],
        applied: &mut SyncOutcome,
    ) -> Result<(), SyncError> {
        let wrong = |reason: String| SyncError::value(kind, key, reason);
        let damaged = |problem: DecodeError| wrong(problem.to_string());
        match kind {
            ValueKind::Properties => {
                let text = std::str::from_utf8(key).map_err(|error| wrong(error.to_string()))?;
                let name = Name::new(text).map_err(|error| wrong(error.to_string()))?;
                tx.set_property(Property::Named(name), Some(bytes.to_vec()));
            }
            ValueKind::Objects => {
                let object = ObjectView::decode(bytes).map_err(damaged)?;
                let Some(object) = StoredObject::from(object).here() else {
                    return Err(wrong("it is deleted, and was told as newer".into()));
                };
                replace_stored_object(tx, ObjectKey::new(key)?, &object)?;
            }
            ValueKind::Records => {
                let record = RecordView::decode(bytes).map_err(damaged)?.to_record();
                let position = self.position(record.position).ok_or_else(|| wrong(NO_DIMENSION.into()))?;
                tx.put_record(RecordId::from_bytes(id(key)), record.moved_to(position));
            }
            ValueKind::Entities => {
                let old = Entity::decode(bytes).map_err(damaged)?;
                let position = self.position(old.position).ok_or_else(|| wrong(NO_DIMENSION.into()))?;
                let there = self.remap.entity(old.kind);
                let there = there.ok_or_else(|| wrong("its kind was never named".into()))?;
                let owner = Owner::Detached(Reason::new(CACHED).expect("a short text"));
                let mut entity = Entity::new(there, owner, position);
                for (component, bytes) in old.components() {
                    let carried = self.remap.value(component, bytes);
                    let carried = carried.ok_or_else(|| wrong("a component was never named".into()))?;
                    if !carried.is_whole {
                        let name = self.named.component(component).map(ToString::to_string);
                        *applied.components_left.entry(name.unwrap_or_default()).or_default() += 1;
                    }
                    if let Some(bytes) = carried.bytes {
                        entity
                            .set_component(carried.component, bytes.into_owned())
                            .map_err(|error| wrong(error.to_string()))?;
                    }
                }
                tx.put_entity(EntityId::from_bytes(id(key)), entity);
            }
        }
        Ok(())
    }

    fn position(&self, there: EntityPos) -> Option<EntityPos> {
        let dimension: Dimension = self.named.dimension(self.catalog, there.dimension())?;
        EntityPos::new(dimension, there.block(), there.fraction()).ok()
    }
}

/// Deletes a value of the cache, if it has it.
pub(crate) fn delete(
    tx: &mut Transaction<'_>,
    kind: ValueKind,
    key: &[u8],
    applied: &mut SyncOutcome,
) -> Result<(), SyncError> {
    let was_here = match kind {
        ValueKind::Objects => {
            let was_here = tx.object(key)?.is_some();
            tx.delete_object(key)?;
            was_here
        }
        ValueKind::Properties => {
            let name = std::str::from_utf8(key).ok().and_then(|text| Name::new(text).ok());
            let Some(property) = name.map(Property::Named) else { return Ok(()) };
            let was_here = tx.property(&property)?.is_some();
            if was_here {
                tx.set_property(property, None);
            }
            was_here
        }
        ValueKind::Entities => {
            let id = EntityId::from_bytes(id(key));
            let was_here = tx.entity(id)?.is_some();
            tx.delete_entity(id);
            was_here
        }
        ValueKind::Records => {
            let id = RecordId::from_bytes(id(key));
            let was_here = tx.record(id)?.is_some();
            tx.delete_record(id);
            was_here
        }
    };
    applied.values_gone += u64::from(was_here);
    Ok(())
}

/// The id in a key, whose length was checked.
fn id(key: &[u8]) -> [u8; 16] {
    key.try_into().unwrap_or_default()
}
