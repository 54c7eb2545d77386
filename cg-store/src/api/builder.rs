//! How a world is opened: its packs, its options, and where it is.

use cg_registry::PackManifest;

use crate::api::world::World;
use crate::engine::{Engine, MemEngine};
use crate::storage::error::Error;
use crate::storage::options::{MAX_BATCH_BYTES, WorldOptions};
use crate::storage::registry::Registry;

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
/// | [`over`](Self::over) | a world in an engine of another crate |
/// | [`plan`](Self::plan) | what opening with these packs would change |
/// | [`salvage_commit`](Self::salvage_commit) | quarantine of a damaged commit that blocks an open |
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

    /// A world whose rows an engine of another crate keeps; a new one if the engine is empty. What `world.cg` is to a
    /// directory, a row is to the engine.
    ///
    /// If the engine lost commits, or is a restored copy, set
    /// [`accept_lost_commits`](WorldOptions::accept_lost_commits) for one open. The world gets a new incarnation then:
    /// versions of the lost commits are not taken for those of later ones.
    ///
    /// # Errors
    /// [`OpenError::NeedsPlan`](crate::OpenError::NeedsPlan) if the packs do not fit together;
    /// [`OpenError::OtherSignature`](crate::OpenError::OtherSignature) if the world has another signature than the
    /// requested one; [`Error::Corrupt`] if a row that a world reads first is damaged; and if the engine fails.
    pub fn over(self, engine: impl Engine) -> Result<World, Error> {
        self.with_options(|options| {
            World::over(Box::new(engine), options, |names| Registry::grow(names, self.packs, &options.packs))
        })
    }

    pub(super) fn with_options<T>(&self, open: impl FnOnce(&WorldOptions) -> T) -> T {
        match self.options {
            Some(options) => open(options),
            None => open(&WorldOptions::default()),
        }
    }
}
