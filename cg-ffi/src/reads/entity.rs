//! Entities that the library lends.

use std::ffi::c_int;

use cg_format::entity::Entity;
use cg_format::{ComponentId, EntityId};
use cg_host::Host;
use cg_store::ErrorKind;

use crate::binding::Binding;
use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK, Fault};
use crate::handle::{self, Held, Kind, Lent, Object, OutLent};
use crate::memory::Out;
use crate::place;
use crate::text::lend;
use crate::tx;
use crate::types::{cg_bytes, cg_entity, cg_error, cg_handle};
use crate::world::World;

/// How often an entity is read again because it changed meanwhile.
const TRIES: usize = 8;

/// An entity, and a struct of the header that points into it.
#[derive(Debug)]
pub(super) struct EntityView {
    /// The pointers of the view point into it. It is never changed.
    entity: Box<Entity>,
    view: cg_entity,
}

// SAFETY: the pointers point into what the view owns and never changes.
unsafe impl Send for EntityView {}
// SAFETY: as above.
unsafe impl Sync for EntityView {}

impl Object for EntityView {}

impl Held for EntityView {
    const KIND: Kind = Kind::Entity;
}

/// How entities are shown: in numbers of a binding or of the world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shows<'b> {
    binding: Option<&'b cg_host::Binding>,
    nbt: Option<ComponentId>,
}

impl<'b> Shows<'b> {
    pub(super) fn new(host: &Host, binding: Option<&'b cg_host::Binding>) -> Self {
        Self { binding, nbt: host.world().catalog().component_id(cg_host::ENTITY_NBT) }
    }

    /// An entity; `None` if the binding does not have its kind.
    pub(super) fn show(self, id: EntityId, entity: Entity) -> Option<EntityView> {
        let kind = match self.binding {
            Some(binding) => binding.kind_number(entity.kind)?,
            None => u32::try_from(entity.kind.get()).ok()?,
        };
        let entity = Box::new(entity);
        let nbt = self.nbt.and_then(|component| entity.component(component));
        let view = cg_entity {
            id: id.to_bytes(),
            kind,
            dimension: place::of_dimension(entity.position.dimension()),
            block: place::of_block(entity.position.block()),
            fraction: entity.position.fraction(),
            reserved: 0,
            nbt: lend(nbt.unwrap_or_default()),
        };
        Some(EntityView { entity, view })
    }
}

impl Lent for EntityView {
    type View = cg_entity;

    fn view(&self) -> &cg_entity {
        &self.view
    }
}

/// An entity with the commit that changed it last.
fn read(host: &Host, id: EntityId) -> Result<Option<(Entity, u64)>, Fault> {
    let version =
        || Ok::<_, Fault>(host.world().entity_version(id)?.map_or(0, cg_store::prelude::CommitSeq::get));
    for _ in 0..TRIES {
        let Some(entity) = host.entity(id)? else { return Ok(None) };
        let of = version()?;
        // A commit in between would give the version of another state.
        if host.entity(id)?.as_ref() == Some(&entity) && version()? == of {
            return Ok(Some((entity, of)));
        }
    }
    Err(Fault::busy("the entity changed again and again while it was read; read it again"))
}

/// An entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_entity_get(
    world: cg_handle,
    binding: cg_handle,
    id: *const u8,
    out: *mut cg_handle,
    view: *mut *const cg_entity,
    version: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_entity_get", error, || {
            let (out, version) = (OutLent::new(out, view)?, Out::optional(version));
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let binding = handle::optional::<Binding>(binding)?;
            let bound = binding.as_ref().map(|binding| binding.of(&world)).transpose()?;
            let id = EntityId::from_bytes(tx::id(id)?);
            let found = read(&host, id)?;
            if let Some(version) = version {
                version.put(found.as_ref().map_or(0, |(_, version)| *version));
            }
            let Some((entity, _)) = found else { return Ok(CG_ABSENT) };
            let kind = entity.kind;
            let shown = Shows::new(&host, bound.map(|bound| &**bound)).show(id, entity).ok_or_else(|| {
                let catalog = host.world().catalog();
                let name = catalog.list(cg_registry::ListKind::Entities).current_name(kind.get());
                let name = name.map_or("?", cg_registry::Name::as_str);
                Fault::of(
                    ErrorKind::Unsupported,
                    format!("the binding does not have the kind `{name}` of the entity"),
                )
            })?;
            out.put(shown)?;
            Ok(CG_OK)
        })
    }
}

/// A component of an entity. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_entity_component(
    entity: cg_handle,
    component: u64,
    out: *mut cg_bytes,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_entity_component", error, || {
            let out = Out::new(out, "out")?;
            out.put(cg_bytes::NONE);
            let shown = handle::find::<EntityView>(entity)?;
            let Some(bytes) = shown.entity.component(ComponentId::new(component)) else {
                return Ok(CG_ABSENT);
            };
            out.put(lend(bytes));
            Ok(CG_OK)
        })
    }
}
