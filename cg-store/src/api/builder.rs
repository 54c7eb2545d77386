//! How a world is opened: its packs, its options, and where it is.

use cg_registry::{PackManifest, Plan};

use crate::api::world::World;
use crate::engine::MemEngine;
use crate::storage::error::Error;
use crate::storage::options::{MAX_BATCH_BYTES, WorldOptions};

/// Opens worlds. Made by [`World::builder`].
///
/// Without [`packs`](Self::packs) no names are registered and the stored ones stay. Without [`options`](Self::options) a
/// world has the default ones.
///
/// | call | what it does |
/// |---|---|
/// | [`create`](Self::create) | a new world in an empty or missing directory |
/// | [`open`](Self::open) | a stored world, which gets what the packs add |
/// | [`open_read_only`](Self::open_read_only) | a stored world that is not changed |
/// | [`in_memory`](Self::in_memory) | a new world that is gone with its last handle |
/// | [`plan`](Self::plan) | what opening with these packs would change |
/// | [`salvage_commit`](Self::salvage_commit) | quarantine of a damaged commit that blocks an open |
/// | [`over`](Self::over) | a world in an engine of another crate, new or stored |
/// | [`create_over`](Self::create_over), [`open_over`](Self::open_over), [`open_read_only_over`](Self::open_read_only_over), [`plan_over`](Self::plan_over), [`salvage_over`](Self::salvage_over) | the same as in a directory, in an engine of another crate |
///
/// ```
/// # #[cfg(feature = "rocks")] {
/// use cg_store::prelude::*;
/// let dir = tempfile::tempdir()?;
/// let dir = dir.path().join("world");
/// let options = WorldOptions::balanced();
/// World::builder().options(&options).create(&dir)?.close()?;
/// let world = World::builder().options(&options).open(&dir)?;
/// assert_eq!(world.directory(), Some(dir.as_path()));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WorldBuilder<'b> {
    pub(super) packs: &'b [PackManifest],
    options: Option<&'b WorldOptions>,
}

impl World {
    /// Creates and opens worlds, on disk and in memory.
    pub fn builder<'b>() -> WorldBuilder<'b> {
        WorldBuilder::default()
    }
}

impl<'b> WorldBuilder<'b> {
    /// The packs whose names the world is to have.
    #[must_use]
    pub const fn packs(mut self, packs: &'b [PackManifest]) -> Self {
        self.packs = packs;
        self
    }

    /// How the world is opened.
    #[must_use]
    pub const fn options(mut self, options: &'b WorldOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// A world in memory, gone when its last handle is dropped: for tests and throw-away arenas.
    ///
    /// # Errors
    /// [`OpenError::NeedsPlan`](crate::OpenError::NeedsPlan) if the packs do not fit together.
    pub fn in_memory(self) -> Result<World, Error> {
        self.over(MemEngine::new().with_max_batch_bytes(MAX_BATCH_BYTES))
    }

    /// What opening a world with these packs would change.
    pub(super) fn plan_of(&self, world: &World) -> Plan {
        self.with_options(|options| cg_registry::reconcile(&world.catalog(), self.packs, &options.packs))
    }

    pub(super) fn with_options<T>(&self, open: impl FnOnce(&WorldOptions) -> T) -> T {
        match self.options {
            Some(options) => open(options),
            None => open(&WorldOptions::default()),
        }
    }
}
