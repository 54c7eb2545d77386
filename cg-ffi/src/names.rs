//! Names of a world, and their numbers.

use std::collections::HashSet;
use std::ffi::c_int;

use cg_format::ComponentId;
use cg_registry::{BlockOffer, Catalog, ComponentOffer, ListKind, Name, Registration};
use cg_store::ErrorKind;

use crate::call::call;
use crate::error::{CG_ABSENT, CG_OK, Fault};
use crate::handle;
use crate::memory::{Out, OutSlice, Values};
use crate::place;
use crate::text::{self, Text};
use crate::types::{CG_NO_ID, cg_error, cg_handle, cg_name, cg_str};
use crate::world::World;

/// A block hides what is behind it.
pub(crate) const OPAQUE: u32 = 1;
/// A block owns a block entity.
pub(crate) const BLOCK_ENTITY: u32 = 2;

fn list(number: u32) -> Result<ListKind, Fault> {
    match number {
        0 => Ok(ListKind::Blocks),
        1 => Ok(ListKind::Components),
        2 => Ok(ListKind::Entities),
        3 => Ok(ListKind::Dimensions),
        4 => Ok(ListKind::Sides),
        found => Err(Fault::invalid(format!("list {found} of names is none"))),
    }
}

/// The number of a name.
fn find(catalog: &Catalog, list: ListKind, name: &str) -> Option<u64> {
    match list {
        ListKind::Components => catalog.component_id(name).map(ComponentId::get),
        list => catalog.list(list).id(name),
    }
}

/// The name of a number.
fn name_of(catalog: &Catalog, list: ListKind, id: u64) -> Option<&Name> {
    match list {
        ListKind::Components => {
            let component = ComponentId::new(id);
            catalog.component_spec(component).and_then(|_| catalog.component_name(component))
        }
        list => catalog.list(list).current_name(id),
    }
}

/// What is to be registered.
struct Offers<'c> {
    catalog: &'c Catalog,
    list: ListKind,
    all: Registration,
    /// Names that were offered.
    names: HashSet<Name>,
}

impl Offers<'_> {
    /// Offers a name, unless the world has it.
    ///
    /// # Safety
    /// The caller keeps the header's rules of memory.
    unsafe fn offer(&mut self, given: cg_name, what: &str) -> Result<Name, Fault> {
        // SAFETY: as the caller says.
        let (name, components) = unsafe {
            let name = text::name(given.name, what)?;
            (name, Values::new(given.components, given.component_count, "components")?)
        };
        let is_block = self.list == ListKind::Blocks;
        place::flags(given.flags, if is_block { OPAQUE | BLOCK_ENTITY } else { 0 }, what)?;
        if given.width != 0 && self.list != ListKind::Components || components.len() > 0 && !is_block {
            let message = format!("{what}: only a component has a width, and only a block has components");
            return Err(Fault::invalid(message));
        }
        let mut owned = Vec::new();
        for component in components.iter() {
            // SAFETY: as the caller says.
            owned.push(unsafe { text::name(component, "a component") }?);
        }
        if find(self.catalog, self.list, name.as_str()).is_some() || !self.names.insert(name.clone()) {
            return Ok(name);
        }
        match self.list {
            ListKind::Blocks => {
                let offer = self.block(name.clone(), given.flags, owned)?;
                self.all.blocks.push(offer);
            }
            ListKind::Components => {
                let offer = match given.width {
                    0 => ComponentOffer::variable(name.clone()),
                    width => ComponentOffer::fixed(name.clone(), width),
                };
                let sound = offer.spec().check();
                sound.map_err(|error| Fault::invalid(format!("{what}: {error}")))?;
                self.all.components.push(offer);
            }
            ListKind::Entities => self.all.entities.push(name.clone()),
            ListKind::Dimensions => self.all.dimensions.push(name.clone()),
            _ => self.all.sides.push(name.clone()),
        }
        Ok(name)
    }

    fn block(&mut self, name: Name, flags: u32, mut components: Vec<Name>) -> Result<BlockOffer, Fault> {
        for component in &components {
            if self.catalog.component_id(component.as_str()).is_none() {
                let message =
                    format!("block `{name}`: the world has no component `{component}`; register it first");
                return Err(Fault::of(ErrorKind::NotFound, message));
            }
        }
        if flags & BLOCK_ENTITY != 0 {
            let own = Name::new(cg_host::BLOCK_ENTITY).expect("a literal name");
            let is_new = self.catalog.component_id(own.as_str()).is_none();
            if is_new && self.all.components.is_empty() {
                self.all.components.push(ComponentOffer::variable(own.clone()));
            }
            components.push(own);
        }
        components.sort_unstable();
        components.dedup();
        Ok(BlockOffer { components, opaque: flags & OPAQUE != 0, ..BlockOffer::new(name) })
    }
}

/// Registers names. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_names_register(
    world: cg_handle,
    list: u32,
    names: *const cg_name,
    count: usize,
    ids: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_names_register", error, || {
            let given = Values::new(names, count, "names")?;
            let ids = OutSlice::new(ids, count, "ids")?;
            let world = handle::find::<World>(world)?;
            let list = self::list(list)?;
            let host = world.host()?;
            let store = host.world();
            let mut catalog = store.catalog();
            let (all, names) = {
                let (all, offered) = (Registration::default(), HashSet::new());
                let mut offers = Offers { catalog: &catalog, list, all, names: offered };
                let mut names = Vec::new();
                for (at, name) in given.iter().enumerate() {
                    names.push(offers.offer(name, &format!("name {at}"))?);
                }
                (offers.all, names)
            };
            if all != Registration::default() {
                catalog = store.registry().register(&all).map_err(|error| match error {
                    // What is stored was read when the world was opened: it is the offer that does not fit.
                    cg_store::Error::Registry(error) => Fault::invalid(error.to_string()),
                    error => error.into(),
                })?;
            }
            ids.put(names.iter().map(|name| find(&catalog, list, name.as_str()).unwrap_or(CG_NO_ID)));
            Ok(CG_OK)
        })
    }
}

/// Finds numbers of names. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_names_find(
    world: cg_handle,
    list: u32,
    names: *const cg_str,
    count: usize,
    ids: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_names_find", error, || {
            let names = Values::new(names, count, "names")?;
            let ids = OutSlice::new(ids, count, "ids")?;
            let world = handle::find::<World>(world)?;
            let list = self::list(list)?;
            let catalog = world.host()?.world().catalog();
            let mut found = Vec::new();
            for (at, name) in names.iter().enumerate() {
                let text = text::text(name, &format!("name {at}"))?;
                // A world has no name that is none.
                let id = match text::parse(text) {
                    Ok(name) => find(&catalog, list, name.as_str()),
                    Err(_) => find(&catalog, list, text),
                };
                found.push(id.unwrap_or(CG_NO_ID));
            }
            ids.put(found);
            Ok(CG_OK)
        })
    }
}

/// The name of a number. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_name_of(
    world: cg_handle,
    list: u32,
    id: u64,
    text: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_name_of", error, || {
            let out = Out::new(text, "text")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let list = self::list(list)?;
            let catalog = world.host()?.world().catalog();
            let Some(name) = name_of(&catalog, list, id) else { return Ok(CG_ABSENT) };
            out.put(handle::give(Text::of(name.as_str()))?);
            Ok(CG_OK)
        })
    }
}

/// The number of names of a list. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_names_count(
    world: cg_handle,
    list: u32,
    count: *mut u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_names_count", error, || {
            let out = Out::new(count, "count")?;
            let world = handle::find::<World>(world)?;
            let list = self::list(list)?;
            out.put(world.host()?.world().catalog().list(list).len() as u64);
            Ok(CG_OK)
        })
    }
}
