//! Writes beside chunks: entities, properties, settings, objects, records.

use std::ffi::c_int;

use cg_format::entity::{Entity, Owner, Reason};
use cg_format::record::Record;
use cg_format::{ChunkAt, ComponentId, EntityId, EntityTypeId, RecordId};
use cg_registry::{ComponentOffer, Name};
use cg_store::objects::ObjectKey;
use cg_store::prelude::Property;

use super::{Tx, add, id};
use crate::binding::Binding;
use crate::call::call;
use crate::error::Fault;
use crate::handle;
use crate::memory;
use crate::place;
use crate::settings;
use crate::text;
use crate::types::{cg_bytes, cg_entity, cg_error, cg_handle, cg_record, cg_settings, cg_str};

/// The entity belongs to no chunk.
const DETACHED: u32 = 1;
/// Why such an entity has no chunk.
const REASON: &str = "the host put it into no chunk";

/// The component that holds the NBT of entities.
fn nbt_of_entities(tx: &Tx) -> Result<ComponentId, Fault> {
    let host = tx.world.host()?;
    let store = host.world();
    if let Some(known) = store.catalog().component_id(cg_host::ENTITY_NBT) {
        return Ok(known);
    }
    let name = Name::new(cg_host::ENTITY_NBT).expect("a literal name");
    Ok(store.registry().register_component(ComponentOffer::variable(name))?)
}

/// Stores an entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_entity_put(
    tx: cg_handle,
    binding: cg_handle,
    entity: *const cg_entity,
    flags: u32,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_entity_put", error, || {
            add(tx, |tx, writes| {
                place::flags(flags, DETACHED, "the entity")?;
                let given = memory::value(entity, "entity")?;
                place::reserved(given.reserved, "the entity")?;
                let kind = match handle::optional::<Binding>(binding)? {
                    None => EntityTypeId::new(given.kind.into()),
                    Some(binding) => binding.of(&tx.world)?.kind(given.kind).ok_or_else(|| {
                        Fault::invalid(format!("kind {} of entity is not in the binding", given.kind))
                    })?,
                };
                let position = place::point(given.dimension, given.block, given.fraction)?;
                let owner = if flags & DETACHED == 0 {
                    Owner::Chunk(ChunkAt::new(position.dimension(), position.block().chunk()))
                } else {
                    Owner::Detached(Reason::new(REASON).expect("a short text"))
                };
                let nbt = text::bytes(given.nbt, "nbt")?;
                let mut entity = Entity::new(kind, owner, position);
                let set = entity.set_component(nbt_of_entities(tx)?, nbt.to_vec());
                set.map_err(cg_store::Error::from)?;
                writes.put_entity(EntityId::from_bytes(given.id), entity);
                Ok(())
            })
        })
    }
}

/// Deletes an entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_entity_delete(tx: cg_handle, id: *const u8, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_entity_delete", error, || {
            add(tx, |_, writes| {
                writes.delete_entity(EntityId::from_bytes(self::id(id)?));
                Ok(())
            })
        })
    }
}

/// Replaces a component of an entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_entity_component(
    tx: cg_handle,
    id: *const u8,
    component: u64,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_entity_component", error, || {
            add(tx, |_, writes| {
                let bytes = text::optional(bytes, "bytes")?.map(<[u8]>::to_vec);
                let id = EntityId::from_bytes(self::id(id)?);
                writes.set_entity_component(id, ComponentId::new(component), bytes);
                Ok(())
            })
        })
    }
}

/// Sets a property. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_property(
    tx: cg_handle,
    name: cg_str,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_property", error, || {
            add(tx, |_, writes| {
                let bytes = text::optional(bytes, "bytes")?.map(<[u8]>::to_vec);
                writes.property(Property::Named(text::name(name, "name")?), bytes);
                Ok(())
            })
        })
    }
}

/// Sets settings. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_settings(
    tx: cg_handle,
    settings: *const cg_settings,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_settings", error, || {
            add(tx, |_, writes| {
                writes.settings(settings::read_given(settings)?);
                Ok(())
            })
        })
    }
}

/// Stores an object. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_object_put(
    tx: cg_handle,
    key: cg_bytes,
    bytes: cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_object_put", error, || {
            add(tx, |_, writes| {
                let key = ObjectKey::new(text::bytes(key, "key")?)?;
                writes.object(key, Some(text::bytes(bytes, "bytes")?.into()));
                Ok(())
            })
        })
    }
}

/// Deletes an object. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_object_delete(tx: cg_handle, key: cg_bytes, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_object_delete", error, || {
            add(tx, |_, writes| {
                writes.object(ObjectKey::new(text::bytes(key, "key")?)?, None);
                Ok(())
            })
        })
    }
}

/// Stores a record. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_record_put(
    tx: cg_handle,
    record: *const cg_record,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_record_put", error, || {
            add(tx, |_, writes| {
                let given = memory::value(record, "record")?;
                let position = place::point(given.dimension, given.block, given.fraction)?;
                let kind = text::text(given.kind, "kind")?;
                let payload = text::bytes(given.bytes, "bytes")?.to_vec();
                let record = Record::new(position, kind, given.timestamp, payload);
                let record = record.map_err(cg_store::Error::from)?;
                writes.record(RecordId::from_bytes(given.id), Some(record));
                Ok(())
            })
        })
    }
}

/// Deletes a record. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tx_record_delete(tx: cg_handle, id: *const u8, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tx_record_delete", error, || {
            add(tx, |_, writes| {
                writes.record(RecordId::from_bytes(self::id(id)?), None);
                Ok(())
            })
        })
    }
}
