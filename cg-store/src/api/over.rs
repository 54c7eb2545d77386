//! Worlds whose rows an engine of another crate keeps.

use std::sync::Arc;

use cg_registry::{Catalog, Plan};
use uuid::Uuid;

use crate::admin::quarantine::{DamagedCommits, SalvagedCommit};
use crate::api::builder::WorldBuilder;
use crate::api::world::World;
use crate::engine::{CommitSeq, Engine, Readable};
use crate::storage::copy_mark::STATE;
use crate::storage::directory::{State, WorldFile};
use crate::storage::error::{Error, OpenError};
use crate::storage::location::Location;
use crate::storage::meta::{self, WorldRows};
use crate::storage::meta_view::MetaView;
use crate::storage::options::WorldOptions;
use crate::storage::reading::ReadingEngine;
use crate::storage::registry::Registry;

impl WorldBuilder<'_> {
    /// A world whose rows an engine of another crate keeps; a new one if the engine is empty. An engine over shared rows
    /// that takes no commits is opened as by [`open_read_only_over`](Self::open_read_only_over). What `world.cg` is to a
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
        let caps = engine.caps();
        if caps.read_only && caps.is_shared {
            return self.open_read_only_over(engine);
        }
        self.with_options(|options| {
            World::over(Box::new(engine), options, |names| Registry::grow(names, self.packs, &options.packs))
        })
    }

    fn begin_over(&self, engine: impl Engine, view: MetaView, is_new: bool) -> Result<World, Error> {
        self.with_options(|options| {
            let grow = |names: &mut Catalog| Registry::grow(names, self.packs, &options.packs);
            World::found(Box::new(engine), (view, is_new), options, grow)
        })
    }

    /// Creates a world in an engine without rows. Over a network this costs one call that reads and two that write.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the engine has a row or a commit; otherwise as [`over`](Self::over).
    pub fn create_over(self, engine: impl Engine) -> Result<World, Error> {
        if engine.last_commit() != CommitSeq::NONE || !engine.is_empty()? {
            let at = Location::Address(engine.address());
            return Err(OpenError::NotEmpty { at }.into());
        }
        if engine.caps().read_only {
            return self.over(engine);
        }
        self.begin_over(engine, MetaView::default(), true)
    }

    /// Opens a stored world. Over a network this costs three calls that read.
    ///
    /// # Errors
    /// [`OpenError::NotAWorld`] if the engine has no row of a world; [`OpenError::HalfCreated`] if its creation or a copy
    /// to it was interrupted; otherwise as [`over`](Self::over).
    pub fn open_over(self, engine: impl Engine) -> Result<World, Error> {
        let caps = engine.caps();
        if caps.read_only && caps.is_shared {
            return self.open_read_only_over(engine);
        }
        let view = read_stored(&engine)?;
        self.begin_over(engine, view, false)
    }

    /// Opens a stored world read-only. Every transaction is refused and no row is changed, even if the engine takes
    /// commits.
    ///
    /// Over rows that other processes may write, the world shows the state after the newest commit, until
    /// [`World::refresh`] shows a newer one. Over other engines, rows are read as they are when they are asked for.
    ///
    /// # Errors
    /// As [`open_over`](Self::open_over).
    pub fn open_read_only_over(self, engine: impl Engine) -> Result<World, Error> {
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let reading = ReadingEngine::newest(&engine)?;
        let found = (read_stored(&reading)?, false);
        let world =
            self.with_options(|options| World::found(Box::new(reading), found, options, |_| Ok(())))?;
        if engine.caps().is_shared {
            let _new = world.rooms().shared.followed.set(engine);
        }
        Ok(world)
    }

    /// Returns what opening a world with these packs would change, without changing anything.
    ///
    /// # Errors
    /// As [`open_read_only_over`](Self::open_read_only_over). A refused plan is not an error here: the plan itself
    /// reports it.
    pub fn plan_over(self, engine: impl Engine) -> Result<Plan, Error> {
        self.open_read_only_over(engine).map(|world| self.plan_of(&world))
    }

    /// As [`salvage_commit`](Self::salvage_commit), in an engine that no world uses.
    ///
    /// # Errors
    /// As [`open_over`](Self::open_over) if the world's own rows are damaged or of a newer release; [`Error::Engine`] if
    /// the commit is of a newer release, and for other errors of the engine.
    pub fn salvage_over(self, engine: impl Engine) -> Result<Option<SalvagedCommit>, Error> {
        // A world of a newer release is refused, as in an open.
        WorldRows::of(read_stored(&engine)?)?;
        match DamagedCommits::find(&engine, engine.last_commit())? {
            Some(damaged) => damaged.salvage(Box::new(engine)).map(Some),
            None => Ok(None),
        }
    }
}

impl World {
    /// See [`WorldBuilder::over`]. `change` may change the stored names, or refuse them.
    pub(crate) fn over(
        engine: Box<dyn Engine>,
        options: &WorldOptions,
        change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let view = MetaView::read(&engine)?;
        let is_new = !engine.caps().read_only && view.is_empty()? && engine.is_empty()?;
        Self::found(engine, (view, is_new), options, change)
    }

    /// As [`over`](Self::over), with the rows of `worldMeta`, and whether the engine is known to have no row of any family.
    fn found(
        engine: Box<dyn Engine>,
        (view, is_new): (MetaView, bool),
        options: &WorldOptions,
        change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let location = Location::Address(engine.address());
        let stored = stored_file(&view)?;
        if stored.as_ref().is_some_and(|stored| stored.state == State::Creating) {
            return Err(OpenError::HalfCreated { at: location }.into());
        }
        let mut rows = WorldRows { is_new, ..WorldRows::of(view)? };
        change(&mut rows.catalog)?;
        let new = WorldFile { state: State::Ready, ..WorldFile::signed(options.signature.clone())? };
        let file = match &stored {
            None => new,
            Some(stored) => {
                stored.check_signature(&location, options.signature.as_deref())?;
                // A copy that is changed is another world than its original, and the numbers of lost commits are issued
                // again.
                let is_other = options.accept_lost_commits || stored.state == State::Checkpoint;
                if is_other && !engine.caps().read_only {
                    WorldFile { incarnation: Uuid::new_v4(), state: State::Ready, ..stored.clone() }
                } else {
                    stored.clone()
                }
            }
        };
        rows.identity = stored;
        Self::begin(engine, rows, file, location, options)
    }
}

/// The identity of the world in an engine, with its state. `None` in an engine without one. A world of which only the
/// state is stored is being made.
fn stored_file(engine: &dyn Readable) -> Result<Option<WorldFile>, Error> {
    let state = STATE.get(engine)?.map(|stored| stored.state());
    Ok(match meta::IDENTITY.get(engine)? {
        Some(stored) => Some(WorldFile { state: state.unwrap_or(stored.state), ..stored }),
        None => state.map(|state| WorldFile { state, ..WorldFile::new_world() }),
    })
}

/// Reads the rows of `worldMeta` of an engine that holds a whole world.
fn read_stored(engine: &dyn Engine) -> Result<MetaView, Error> {
    let view = MetaView::read(engine)?;
    if meta::IDENTITY.get(&view)?.is_some() {
        return Ok(view);
    }
    let at = Location::Address(engine.address());
    if engine.is_empty()? {
        return Err(OpenError::NotAWorld { at, why: "it has no rows".into() }.into());
    }
    Err(OpenError::HalfCreated { at }.into())
}
