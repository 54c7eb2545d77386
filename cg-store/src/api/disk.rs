//! Worlds on disk: creating, opening, planning and copying them.

use std::path::Path;

use cg_registry::{Catalog, PackManifest, Plan};
use uuid::Uuid;

use crate::admin::quarantine::{SalvagedCommit, salvage_in};
use crate::api::world::World;
use crate::engine::{Access, EngineError, RocksEngine};
use crate::storage::claim::{claim, read_finished, sync_parent};
use crate::storage::directory::{self, State, WorldFile};
use crate::storage::error::{Error, OpenError};
use crate::storage::meta::WorldRows;
use crate::storage::options::WorldOptions;
use crate::storage::recovery;
use crate::storage::registry::Registry;

impl World {
    /// Creates a world in an empty or missing directory.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`], [`OpenError::NeedsPlan`] if the packs do not fit together, [`OpenError::Engine`];
    /// [`Error::Policy`] for a tier policy that contradicts itself.
    pub fn create(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        // Packs that do not fit are refused before anything is written.
        let mut catalog = Catalog::new();
        Registry::grow(&mut catalog, packs, &options.packs)?;
        Self::create_with(dir.as_ref(), catalog, options)
    }

    /// As [`create`](Self::create), with the names of another world.
    pub(crate) fn create_with(dir: &Path, catalog: Catalog, options: &WorldOptions) -> Result<Self, Error> {
        options.tiers.validate()?;
        let file = WorldFile::signed(options.signature.clone())?;
        let rows = WorldRows { catalog, limits: None, tombstone_horizon: 0, record_shape: None };
        claim(dir)?;
        file.write(dir)?;
        let engine = RocksEngine::create(&directory::engine_dir(dir), &options.rocks())
            .map_err(|source| OpenError::Engine { path: dir.into(), source })?;
        let ready = WorldFile { state: State::Ready, ..file };
        let world = Self::begin(Box::new(engine), rows, ready.clone(), Some(dir.into()), options)?;
        world.applied()?.shared.engine()?.sync()?;
        ready.write(dir)?;
        sync_parent(dir)?;
        Ok(world)
    }

    /// Opens a world, and brings its registry up to what the packs offer.
    ///
    /// If the world is damaged where it must be read to be opened, or the packs do not fit, no byte of the directory is
    /// changed: both are looked at before the engine is opened for writing.
    ///
    /// # Errors
    /// The variants of [`OpenError`], each of which says what to do; [`Error::Registry`] and [`Error::Corrupt`] if the
    /// registry or the world's limits are damaged.
    pub fn open(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Self, Error> {
        Self::open_with(dir.as_ref(), options, |catalog| Registry::grow(catalog, packs, &options.packs))
    }

    /// As [`open`](Self::open), with the stored names changed by a function, which may refuse them.
    pub(crate) fn open_with(
        dir: &Path,
        options: &WorldOptions,
        change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        options.tiers.validate()?;
        let mut file = read_finished(dir)?;
        file.check_signature(dir, options.signature.as_deref())?;
        let refused = |source| OpenError::Engine { path: dir.into(), source };
        let examined =
            RocksEngine::examine(&directory::engine_dir(dir), &options.rocks()).map_err(refused)?;
        let mut rows = WorldRows::read(examined.reader())?;
        rows.shape_for(options)?;
        recovery::check(examined.reader())?;
        change(&mut rows.catalog)?;
        if examined.has_lost_commits() {
            // The numbers of the lost commits are given out again. Before the loss is forgotten, so that a crash in between
            // leaves no world that gives them out under the old name.
            file = WorldFile { incarnation: Uuid::new_v4(), ..file };
            file.write(dir)?;
        }
        let engine = examined.open().map_err(refused)?;
        if file.state == State::Checkpoint {
            // A copy that lives on is another world than the one it was copied from: versions must not be compared.
            file = WorldFile { incarnation: Uuid::new_v4(), state: State::Ready, ..file };
            file.write(dir)?;
        }
        Self::begin(Box::new(engine), rows, file, Some(dir.into()), options)
    }

    /// Opens a world that nobody has open, for reading: every transaction is refused and no byte is changed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(dir: impl AsRef<Path>, options: &WorldOptions) -> Result<Self, Error> {
        let dir = dir.as_ref();
        let file = read_finished(dir)?;
        file.check_signature(dir, options.signature.as_deref())?;
        let reading = options.rocks().with_access(Access::ReadOnly);
        let engine = RocksEngine::open(&directory::engine_dir(dir), &reading)
            .map_err(|source| OpenError::Engine { path: dir.into(), source })?;
        let rows = WorldRows::read(&engine)?;
        Self::begin(Box::new(engine), rows, file, Some(dir.into()), options)
    }

    /// What opening a world with these packs would change, without changing anything.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). A plan that is refused is not an error here: it says so itself.
    pub fn plan(
        dir: impl AsRef<Path>,
        packs: &[PackManifest],
        options: &WorldOptions,
    ) -> Result<Plan, Error> {
        let world = Self::open_read_only(dir, options)?;
        Ok(cg_registry::reconcile(&world.applied()?.shared.registry.catalog(), packs, &options.packs))
    }

    /// Copies the world as it is now into a new directory, by hard links where the disk allows.
    ///
    /// The copy can be read by another process while this one plays on. Opened for writing it becomes a world of a
    /// new incarnation. No file is read: damage is copied with the rest, and damage that a linked file takes later is damage
    /// of both worlds. [`verify`](Self::verify) the copy, and see [`checkpoint_apart`](Self::checkpoint_apart).
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the directory exists and holds files, and what the engine says.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        self.checkpoint_and(dir.as_ref(), |_| Ok(()))
    }

    /// As [`checkpoint`](Self::checkpoint), with files of its own: takes as much room as the world, and the time to write
    /// it. Damage that a file of one world takes later leaves the other alone.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_apart(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        self.checkpoint_and(dir.as_ref(), directory::unshare)
    }

    /// Writes a checkpoint that counts once something was done with the engine's directory in it.
    fn checkpoint_and(
        &self,
        dir: &Path,
        finish: impl FnOnce(&Path) -> Result<(), OpenError>,
    ) -> Result<(), Error> {
        self.applied()?.shared.check_open()?;
        if !self.applied()?.shared.engine()?.caps().checkpoint {
            let what = "write a checkpoint when opened for reading only";
            return Err(EngineError::Unsupported { what }.into());
        }
        claim(dir)?;
        WorldFile { state: State::Creating, ..self.applied()?.shared.file.clone() }.write(dir)?;
        let engine = self.applied()?.commit.settled_engine()?;
        let guard = engine.hold_apply()?;
        engine.checkpoint(&directory::engine_dir(dir))?;
        drop(guard);
        finish(&directory::engine_dir(dir))?;
        WorldFile { state: State::Checkpoint, ..self.applied()?.shared.file.clone() }.write(dir)?;
        sync_parent(dir)?;
        Ok(())
    }
}

impl World {
    /// Sets the damaged parts of a commit aside that keeps a world from being opened with
    /// [`OpenError::DamagedCommit`]: copies are kept in quarantine, the sound parts are rolled forward, and the world opens
    /// again. `Ok(None)` if no commit is damaged; nothing was written then.
    ///
    /// This is the one way in which a part of a transaction is ever seen. No chunk and no record is half there, but of
    /// chunks and entities that refer to each other one may be of before the commit and the other of after it:
    /// [`verify`](Self::verify) finds them, and [`rebuild_opacity`](crate::OpacityMap::rebuild) draws the map again. A
    /// checkpoint, if there is one, is the better choice.
    ///
    /// Needs the world closed. Costs reading the commit, and writing it once. Killed in the middle, it is done again.
    ///
    /// # Errors
    /// As [`open`](Self::open) if the world's own rows are damaged or of a newer release, or if the files cannot be opened
    /// at all; [`Error::Engine`] if the commit is of a newer release, and what the engine says.
    pub fn salvage_commit(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
    ) -> Result<Option<SalvagedCommit>, Error> {
        let dir = dir.as_ref();
        read_finished(dir)?;
        // A world of a newer release is refused, as it is when it is opened.
        salvage_in(dir, &directory::engine_dir(dir), options, |reader| WorldRows::read(reader).map(drop))
    }
}
