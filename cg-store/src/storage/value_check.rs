//! Values that the types of the registry do not allow: where they are, and what a commit does about them.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ComponentId, EntityId};
use cg_registry::Catalog;
use cg_registry::types::{Breach, Content};

use crate::rt::lock_order::{Mutex, rank};
use crate::storage::error::Error;

/// What a commit does about values that the [types](cg_registry::types) of their components do not allow.
///
/// A chunk and an entity are checked as a whole, so a commit is also checked for what it does not change in them. A chunk
/// that was stored before its type narrowed can be refused for a value that is stored already; `cg registry check` and
/// [`WorldRegistry::check`](crate::WorldRegistry::check) find these. A component without a type costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ValueCheck {
    /// Nothing; values are not checked.
    Off,
    /// They are counted in [`Metrics::illegal_values`](crate::metrics::Metrics::illegal_values), and the first are kept for
    /// [`WorldRegistry::illegal_values`](crate::WorldRegistry::illegal_values). The commit is as it would be without a check.
    #[default]
    Report,
    /// The commit fails with [`Error::IllegalValue`](crate::Error::IllegalValue) for the first one.
    Refuse,
}

/// A value that its type does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IllegalValue {
    /// What has it.
    pub place: ValuePlace,
    /// The name of its component.
    pub name: String,
    /// The pack that has the name's namespace; empty if no pack was recorded.
    pub pack: String,
    /// The field, the value found, and the allowed ones.
    pub breach: Breach,
}

/// What has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValuePlace {
    /// A block of a chunk.
    Block {
        /// The chunk.
        at: ChunkAt,
        /// The cell and the layer.
        cell: CellLayer,
    },
    /// An entity.
    Entity(EntityId),
}

impl fmt::Display for ValuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { at, cell: CellLayer { cell, layer } } => {
                let (x, y, z) = (cell.x(), cell.y(), cell.z());
                write!(f, "cell {x}, {y}, {z} (layer {layer}) of {at}")
            }
            Self::Entity(id) => write!(f, "entity {id}"),
        }
    }
}

impl fmt::Display for IllegalValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, name, pack, breach } = self;
        write!(f, "{place}: component `{name}`")?;
        if !pack.is_empty() {
            write!(f, " of pack `{pack}`")?;
        }
        match breach.field.as_str() {
            "" => write!(f, " {breach}"),
            _ => write!(f, ": {breach}"),
        }
    }
}

/// What the commits of a world do about illegal values, and what they found.
#[derive(Debug)]
pub struct ValueGuard {
    check: ValueCheck,
    count: AtomicU64,
    first: Mutex<Vec<IllegalValue>, rank::IllegalValues>,
}

/// The most findings that a guard keeps.
const KEPT: usize = 100;

impl ValueGuard {
    /// A guard that found nothing yet.
    pub fn new(check: ValueCheck) -> Self {
        Self { check, count: AtomicU64::new(0), first: Mutex::default() }
    }

    /// How many illegal values were found.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The first of them.
    pub fn first(&self) -> Vec<IllegalValue> {
        self.first.lock().clone()
    }

    pub(crate) fn chunk(&self, catalog: &Catalog, at: ChunkAt, chunk: &Chunk) -> Result<(), Error> {
        if self.check == ValueCheck::Off {
            return Ok(());
        }
        Self::done(in_chunk(catalog, at, chunk, |found| self.found(found)))
    }

    pub(crate) fn entity(&self, catalog: &Catalog, id: EntityId, entity: &Entity) -> Result<(), Error> {
        if self.check == ValueCheck::Off {
            return Ok(());
        }
        Self::done(in_entity(catalog, id, entity, |found| self.found(found)))
    }

    fn found(&self, found: IllegalValue) -> ControlFlow<IllegalValue> {
        if self.check == ValueCheck::Refuse {
            return ControlFlow::Break(found);
        }
        if self.count.fetch_add(1, Ordering::Relaxed) < KEPT as u64 {
            self.first.lock().push(found);
        }
        ControlFlow::Continue(())
    }

    fn done(found: ControlFlow<IllegalValue>) -> Result<(), Error> {
        found.break_value().map_or(Ok(()), |found| Err(Error::IllegalValue(Box::new(found))))
    }
}

/// Visits the illegal values of a chunk by today's types, until `visit` breaks.
pub(crate) fn in_chunk<B>(
    catalog: &Catalog,
    at: ChunkAt,
    chunk: &Chunk,
    mut visit: impl FnMut(IllegalValue) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if !catalog.has_types() {
        return ControlFlow::Continue(());
    }
    let mut known = None::<(ComponentId, Option<&Content>)>;
    for (component, cell, bytes) in chunk.components() {
        let types = match known {
            Some((same, types)) if same == component => types,
            _ => {
                let types = catalog.types(component);
                known = Some((component, types));
                types
            }
        };
        if let Some(Err(breach)) = types.map(|types| types.check(bytes)) {
            visit(of_component(catalog, ValuePlace::Block { at, cell }, component, breach))?;
        }
    }
    ControlFlow::Continue(())
}

/// Visits the illegal values of an entity by today's types, until `visit` breaks.
pub(crate) fn in_entity<B>(
    catalog: &Catalog,
    id: EntityId,
    entity: &Entity,
    mut visit: impl FnMut(IllegalValue) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if !catalog.has_types() {
        return ControlFlow::Continue(());
    }
    for (component, bytes) in entity.components() {
        if let Some(Err(breach)) = catalog.types(component).map(|types| types.check(bytes)) {
            visit(of_component(catalog, ValuePlace::Entity(id), component, breach))?;
        }
    }
    ControlFlow::Continue(())
}

fn of_component(
    catalog: &Catalog,
    place: ValuePlace,
    component: ComponentId,
    breach: Breach,
) -> IllegalValue {
    let name = catalog.component_name(component);
    let pack = name.and_then(|name| catalog.pack_of(name.namespace())).unwrap_or_default().to_owned();
    let name = name.map_or_else(|| format!("{:#x}", component.get()), |name| name.unrevised().to_owned());
    IllegalValue { place, name, pack, breach }
}
