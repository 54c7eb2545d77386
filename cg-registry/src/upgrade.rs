//! Carries a chunk's components from the schema generation it was stored with to the newest.

mod functions;
mod step;

use std::borrow::Cow;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockId, ComponentId, ComponentShape, DecodeError};

use crate::catalog::Catalog;
use crate::component::ComponentHistory;
use crate::schema::{Conversion, convert};

pub use functions::{Gained, Instance, UpgradeFunctions};

/// Upgrades chunks, and single component values, to the newest schema generation of a catalog.
///
/// An upgrade goes through every generation in which one of the chunk's blocks changed, in order, so it does not
/// matter whether a chunk was upgraded on the way. It is a function of the chunk, its generation, the catalog and
/// the host's functions; nothing else. Blocks, entities and other side data are not touched, and no version changes.
///
/// In each generation, a component of a block takes its bytes from the first of these that exists: the same
/// component; an older registration of it, converted; the bytes kept in `:lost_components`, converted if need be;
/// the host's function for gained components; the default. What the block no longer has is kept in
/// `:lost_components`. Kept bytes of a block that does not stand there any more are dropped.
#[derive(Debug, Clone, Copy)]
pub struct Upgrader<'a> {
    catalog: &'a Catalog,
    functions: &'a UpgradeFunctions,
}

/// An upgraded chunk and what happened to its component instances.
#[derive(Debug, Clone, PartialEq)]
pub struct Upgrade {
    /// The chunk in the newest generation.
    pub chunk: Chunk,
    /// Instances carried from an older registration.
    pub converted: u64,
    /// Instances that a block has newly, by default or by the host's function.
    pub gained: u64,
    /// Instances put into `:lost_components`.
    pub kept: u64,
    /// Instances taken back from there.
    pub restored: u64,
    /// Kept instances whose block is gone from its place.
    pub dropped: u64,
}

/// Why a chunk cannot be upgraded. It is as it was, and can still be read with its own generation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The generation is newer than the catalog.
    #[error(
        "schema generation {found} is unknown, the catalog ends at {newest}; restore the registry's rows"
    )]
    Generation {
        /// The generation found.
        found: u32,
        /// The newest one known.
        newest: u32,
    },
    /// The component was replaced by means of a function that the host has not brought.
    #[error("component `{component}` needs the host's upgrade function, which is not registered")]
    FunctionMissing {
        /// The component.
        component: String,
    },
    /// The host's function did not want the bytes, or gave a wrong number of bytes.
    #[error(
        "the host's upgrade function for component `{component}` refused {len_bytes} stored bytes or gave a wrong length"
    )]
    FunctionRefused {
        /// The component.
        component: String,
        /// The length of what it was given.
        len_bytes: usize,
    },
    /// The chunk does not allow it.
    #[error("the chunk cannot change its components: {0}")]
    Chunk(#[from] EditError),
    /// The chunk's `:lost_components` do not decode.
    #[error("`:lost_components`: {0}")]
    Kept(#[source] DecodeError),
}

impl<'a> Upgrader<'a> {
    /// An upgrader to the newest generation of a catalog.
    pub const fn new(catalog: &'a Catalog, functions: &'a UpgradeFunctions) -> Self {
        Self { catalog, functions }
    }

    /// Carries a chunk from the generation it was decoded with to the newest. `None` if there is nothing to do: then
    /// the chunk is valid in the newest generation as it is.
    ///
    /// Costs nothing in the newest generation; else a look at the changes of each kind in the palette, and a pass over the components for each generation
    /// that concerns them.
    ///
    /// # Errors
    /// An [`UpgradeError`]; a chunk that cannot be upgraded should be kept as it is stored.
    pub fn upgrade(&self, chunk: &Chunk, from: u32) -> Result<Option<Upgrade>, UpgradeError> {
        let newest = self.catalog.current_generation();
        if from > newest {
            return Err(UpgradeError::Generation { found: from, newest });
        }
        if from == newest {
            return Ok(None);
        }
        let mut done: Option<Upgrade> = None;
        for generation in self.catalog.changes_of(chunk.kinds(), from, newest) {
            let before = done.take().unwrap_or_else(|| Upgrade::unchanged(chunk.clone()));
            done = Some(self.step(before, generation)?);
        }
        Ok(done)
    }

    /// Carries one value of a component to its newest registration; for values outside chunks, as in entities.
    ///
    /// # Errors
    /// [`UpgradeError::FunctionMissing`] or [`UpgradeError::FunctionRefused`].
    pub fn upgrade_value<'b>(
        &self,
        component: ComponentId,
        bytes: &'b [u8],
    ) -> Result<(ComponentId, Cow<'b, [u8]>), UpgradeError> {
        let newest = self.catalog.newest_registration(component);
        let generation = self.catalog.current_generation();
        Ok((newest, self.convert(component, newest, Cow::Borrowed(bytes), None, generation)?))
    }

    /// Carries bytes from a registration to a later one, link by link, with the schemas of one generation.
    fn convert<'b>(
        &self,
        from: ComponentId,
        to: ComponentId,
        mut bytes: Cow<'b, [u8]>,
        block: Option<BlockId>,
        generation: u32,
    ) -> Result<Cow<'b, [u8]>, UpgradeError> {
        let mut old = from;
        while old != to {
            let link =
                self.history(old).and_then(|history| Some((history, self.history(history.replaced_by?)?)));
            let Some((from, to)) = link else { break };
            let by = to.replaces.map_or(Conversion::Prefix, |replaces| replaces.by);
            let (from_spec, to_spec) = (from.at(generation), to.at(generation));
            bytes = Cow::Owned(if let Some(converted) = convert(by, from_spec, to_spec, &bytes) {
                converted
            } else {
                self.call(to.id, &Instance { block, from: from_spec, to: to_spec, bytes: &bytes })?
            });
            old = to.id;
        }
        Ok(bytes)
    }

    fn call(&self, component: ComponentId, instance: &Instance<'_>) -> Result<Vec<u8>, UpgradeError> {
        let names = self.catalog.known_as(component);
        let name = || names.first().copied().unwrap_or_default().to_owned();
        let function = names.iter().find_map(|name| self.functions.conversion(name));
        let function = function.ok_or_else(|| UpgradeError::FunctionMissing { component: name() })?;
        let refused = || UpgradeError::FunctionRefused { component: name(), len_bytes: instance.bytes.len() };
        let fits = |bytes: &Vec<u8>| match instance.to.shape {
            ComponentShape::Fixed { width_bytes } => bytes.len() == width_bytes as usize,
            ComponentShape::Variable => true,
        };
        function(instance).filter(fits).ok_or_else(refused)
    }

    fn history(&self, id: ComponentId) -> Option<&'a ComponentHistory> {
        self.catalog.tables.components.get(id.index()).filter(|history| history.id == id)
    }
}

impl Upgrade {
    const fn unchanged(chunk: Chunk) -> Self {
        Self { chunk, converted: 0, gained: 0, kept: 0, restored: 0, dropped: 0 }
    }
}
