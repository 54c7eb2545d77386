//! Converts a chunk's components from its stored schema generation to the newest one.

mod functions;
mod link;
mod step;

use std::borrow::Cow;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockId, ComponentId, DecodeError};

use crate::catalog::Catalog;
use crate::schema::convert;

pub use functions::{Gained, Instance, UpgradeFunctions};
pub(crate) use link::Link;

/// Upgrades chunks, and single component values, to the newest schema generation of a catalog.
///
/// An upgrade applies every generation in which one of the chunk's blocks changed, in order. So the result does not
/// depend on earlier upgrades. It depends only on the chunk, its generation, the catalog and the host's functions.
/// Blocks, entities, other side data and versions do not change, except that a united block becomes the one with which
/// it was united.
///
/// In each generation, a component of a block takes its bytes from the first of these sources that exists:
/// - the same component;
/// - an older registration of it, converted;
/// - the bytes in `:lost_components`, converted if necessary;
/// - the host's function for gained components;
/// - the default.
///
/// Components that the block no longer has are stored in `:lost_components`. Entries there are dropped if their block
/// is no longer at its place.
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
    /// Instances converted from an older registration.
    pub converted: u64,
    /// Instances that a block gained, from the default or the host's function.
    pub gained: u64,
    /// Instances moved to `:lost_components`.
    pub kept: u64,
    /// Instances restored from there.
    pub restored: u64,
    /// Entries dropped there because their block is no longer at its place.
    pub dropped: u64,
}

/// Why a chunk cannot be upgraded. It is unchanged and can still be read with its own generation.
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
        /// The newest known generation.
        newest: u32,
    },
    /// The component was replaced with a conversion function that the host has not registered.
    #[error("component `{component}` needs the host's upgrade function, which is not registered")]
    FunctionMissing {
        /// The component.
        component: String,
    },
    /// The host's function refused the bytes, or returned a wrong length.
    #[error(
        "the host's upgrade function for component `{component}` refused {len_bytes} stored bytes or gave a wrong length"
    )]
    FunctionRefused {
        /// The component.
        component: String,
        /// The length of its input.
        len_bytes: usize,
    },
    /// The chunk cannot be edited.
    #[error("the chunk cannot change its components: {0}")]
    Chunk(#[from] EditError),
    /// The chunk's `:lost_components` do not decode.
    #[error("`:lost_components`: {0}")]
    Kept(#[source] DecodeError),
}

impl<'a> Upgrader<'a> {
    /// Creates an upgrader to the newest generation of a catalog.
    pub const fn new(catalog: &'a Catalog, functions: &'a UpgradeFunctions) -> Self {
        Self { catalog, functions }
    }

    /// Converts a chunk from the generation with which it was decoded to the newest one. `None` if there is nothing to
    /// do: then the chunk is valid in the newest generation without changes.
    ///
    /// Costs nothing in the newest generation. Otherwise it costs a lookup of the changes of each kind in the palette.
    /// Each generation that changed one of the kinds costs a pass over the components.
    ///
    /// # Errors
    /// An [`UpgradeError`]. A chunk that cannot be upgraded should stay as stored.
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

    /// Converts one value of a component to its newest registration. For values outside chunks, as in entities.
    ///
    /// # Errors
    /// [`UpgradeError::FunctionMissing`] or [`UpgradeError::FunctionRefused`].
    pub fn upgrade_value<'b>(
        &self,
        component: ComponentId,
        bytes: &'b [u8],
    ) -> Result<(ComponentId, Cow<'b, [u8]>), UpgradeError> {
        let newest = self.catalog.newest_registration(component);
        Ok((newest, self.convert(component, newest, Cow::Borrowed(bytes), None)?))
    }

    /// Converts bytes from a registration to a later one, step by step.
    fn convert<'b>(
        &self,
        from: ComponentId,
        to: ComponentId,
        mut bytes: Cow<'b, [u8]>,
        block: Option<BlockId>,
    ) -> Result<Cow<'b, [u8]>, UpgradeError> {
        for link in self.catalog.links(from, to) {
            bytes = Cow::Owned(if let Some(converted) = convert(link.by, link.from, link.to, &bytes) {
                converted
            } else {
                self.call(link.id, &Instance { block, from: link.from, to: link.to, bytes: &bytes })?
            });
        }
        Ok(bytes)
    }

    fn call(&self, component: ComponentId, instance: &Instance<'_>) -> Result<Vec<u8>, UpgradeError> {
        let names = self.catalog.known_as(component);
        let name = || names.first().copied().unwrap_or_default().to_owned();
        let called = self.functions.call(&names, instance);
        let called = called.ok_or_else(|| UpgradeError::FunctionMissing { component: name() })?;
        let refused = || UpgradeError::FunctionRefused { component: name(), len_bytes: instance.bytes.len() };
        called.map_err(|_| refused())
    }
}

impl Upgrade {
    const fn unchanged(chunk: Chunk) -> Self {
        Self { chunk, converted: 0, gained: 0, kept: 0, restored: 0, dropped: 0 }
    }
}
