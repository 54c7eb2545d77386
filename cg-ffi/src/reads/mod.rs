//! What a world has beside chunks: entities, properties, objects, records.

mod cursor;
mod entity;
mod lists;
mod record;

use std::ffi::c_int;

use cg_store::prelude::Property;

use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK};
use crate::handle;
use crate::memory::Out;
use crate::text::{self, Text};
use crate::types::{cg_bytes, cg_error, cg_handle, cg_str};
use crate::world::World;

pub use cursor::cg_cursor_next;
pub use entity::{cg_entity_component, cg_entity_get};
pub use lists::{cg_entities_detached, cg_object_list, cg_property_list, cg_records_in};
pub use record::cg_record_get;

/// A property. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_property_get(
    world: cg_handle,
    name: cg_str,
    bytes: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_property_get", error, || {
            let out = Out::new(bytes, "bytes")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let property = Property::Named(text::name(name, "name")?);
            let Some(bytes) = world.host()?.property(&property)? else { return Ok(CG_ABSENT) };
            out.put(handle::give(Text::of(bytes))?);
            Ok(CG_OK)
        })
    }
}

/// An object. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_object_get(
    world: cg_handle,
    key: cg_bytes,
    bytes: *mut cg_handle,
    version: *mut i64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_object_get", error, || {
            let (out, version) = (Out::new(bytes, "bytes")?, Out::optional(version));
            out.put(0);
            let world = handle::find::<World>(world)?;
            let key = text::bytes(key, "key")?;
            let Some(object) = world.committed()?.world().objects().get(key)? else { return Ok(CG_ABSENT) };
            out.put(handle::give(Text::of(object.bytes.to_vec()))?);
            if let Some(version) = version {
                version.put(object.version);
            }
            Ok(CG_OK)
        })
    }
}
