//! Bindings: the host's numbers of blocks, biomes and kinds of entity.

use std::ffi::c_int;
use std::sync::Arc;

use cg_host::{Form, Known, KnownBiome, KnownBlock};
use serde_json::json;

use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Held, Kind, Object};
use crate::memory::{self, Out, OutSlice, Values};
use crate::names;
use crate::place;
use crate::text::{self, Text};
use crate::types::{CG_NO_ID, cg_binding_desc, cg_error, cg_handle};
use crate::world::World;

/// A binding of a world.
#[derive(Debug)]
pub(crate) struct Binding {
    world: Arc<World>,
    bound: Arc<cg_host::Binding>,
}

impl Object for Binding {}

impl Held for Binding {
    const KIND: Kind = Kind::Binding;
}

impl Binding {
    /// What it binds, for a call on its world.
    pub(crate) fn of(&self, world: &Arc<World>) -> Result<&Arc<cg_host::Binding>, Fault> {
        self.world.host()?;
        if Arc::ptr_eq(&self.world, world) {
            return Ok(&self.bound);
        }
        Err(Fault::invalid("the binding is of another world; bind again for each world"))
    }
}

/// What a host knows.
///
/// # Safety
/// The caller keeps the header's rules of memory.
unsafe fn known(desc: &cg_binding_desc) -> Result<Known, Fault> {
    place::reserved(desc.reserved, "the binding")?;
    let (mut blocks, mut biomes, mut entities) = (Vec::new(), Vec::new(), Vec::new());
    // SAFETY: as the caller says.
    unsafe {
        for (at, block) in Values::new(desc.blocks, desc.block_count as usize, "blocks")?.iter().enumerate() {
            let what = format!("block {at}");
            place::flags(block.flags, names::OPAQUE | names::BLOCK_ENTITY, &what)?;
            place::reserved(block.reserved, &what)?;
            blocks.push(KnownBlock {
                name: text::name(block.name, &what)?,
                is_opaque: block.flags & names::OPAQUE != 0,
                owns_block_entity: block.flags & names::BLOCK_ENTITY != 0,
            });
        }
        for (at, biome) in Values::new(desc.biomes, desc.biome_count as usize, "biomes")?.iter().enumerate() {
            let what = format!("biome {at}");
            place::reserved(biome.reserved, &what)?;
            biomes.push(KnownBiome { name: text::name(biome.name, &what)?, number: biome.number });
        }
        let of_entities = Values::new(desc.entities, desc.entity_count as usize, "entities")?;
        for (at, name) in of_entities.iter().enumerate() {
            entities.push(text::name(name, &format!("entity {at}"))?);
        }
    }
    let order = place::order(desc.order.into())?;
    Ok(Known {
        blocks,
        biomes,
        entities,
        placeholder: desc.placeholder,
        air: desc.air,
        biome_placeholder: desc.biome_placeholder,
        layer_count: desc.layer_count,
        form: Form { order, word_bits: desc.word_bits, widths: desc.widths },
        biome_side_log2: desc.biome_side_log2,
    })
}

/// Binds a host's numbers. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_binding_new(
    world: cg_handle,
    desc: *const cg_binding_desc,
    binding: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_binding_new", error, || {
            let out = Out::new(binding, "binding")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let known = known(&memory::sized(desc, "desc")?)?;
            let bound = world.host()?.bind(known)?;
            out.put(handle::give(Binding { world, bound })?);
            Ok(CG_OK)
        })
    }
}

/// The world's numbers of a binding. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_binding_ids(
    binding: cg_handle,
    ids: *mut u64,
    count: usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_binding_ids", error, || {
            let ids = OutSlice::new(ids, count, "ids")?;
            let binding = handle::find::<Binding>(binding)?;
            let bound = binding.of(&binding.world)?;
            let expected = bound.known().blocks.len();
            if ids.len() != expected {
                let message =
                    format!("there is room for {count} numbers, and the binding has {expected} blocks");
                return Err(Fault::invalid(message));
            }
            let number = |at| bound.block(at).map_or(CG_NO_ID, cg_format::BlockId::get);
            ids.put((0..expected as u32).map(number));
            Ok(CG_OK)
        })
    }
}

/// Names that a binding does not have. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_binding_unknown(
    binding: cg_handle,
    json: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_binding_unknown", error, || {
            let out = Out::new(json, "json")?;
            out.put(0);
            let binding = handle::find::<Binding>(binding)?;
            let host = binding.world.host()?;
            let names = binding.bound.unknown(host.world());
            let [blocks, entities] = names.each_ref().map(|names| {
                let names = names.iter().map(cg_registry::Name::as_str);
                names.collect::<Vec<_>>()
            });
            let text = json!({ "blocks": blocks, "entities": entities }).to_string();
            out.put(handle::give(Text::of(text))?);
            Ok(CG_OK)
        })
    }
}
