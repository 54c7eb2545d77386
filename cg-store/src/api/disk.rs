//! Worlds on disk: creating, opening, planning and copying them.

use std::fs;
use std::path::Path;

use cg_registry::{Catalog, Plan};
use uuid::Uuid;

use crate::admin::quarantine::{SalvagedCommit, salvage_in};
use crate::api::builder::WorldBuilder;
use crate::api::world::World;
use crate::engine::{Access, EngineError, RocksEngine};
use crate::storage::claim::{absolute, claim, read_finished, sync_parent};
use crate::storage::directory::{self, State, WorldFile};
use crate::storage::error::{Error, OpenError};
use crate::storage::meta::WorldRows;
use crate::storage::options::WorldOptions;
use crate::storage::recovery;
use crate::storage::registry::Registry;

/// The files of a [checkpoint](World::checkpoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointFiles {
    /// Hard links to the files of the world, where the file system allows. It takes no space, and hardly any time.
    Linked,
    /// Files of its own. It takes the space of the world, and the time to write it. Damage of one's files does not affect the
    /// other.
    Copied,
}

impl WorldBuilder<'_> {
    /// Creates a world in an empty or missing directory.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`]; [`OpenError::NeedsPlan`] if the packs do not fit together; [`OpenError::Engine`];
    /// [`Error::Policy`] for a tier policy that contradicts itself.
    pub fn create(self, dir: impl AsRef<Path>) -> Result<World, Error> {
        // Packs that do not fit are refused before anything is written.
        self.with_options(|options| {
            let mut catalog = Catalog::new();
            Registry::grow(&mut catalog, self.packs, &options.packs)?;
            World::create_with(dir.as_ref(), catalog, options)
        })
    }

    /// Opens a world, and updates its registry to what the packs offer.
    ///
    /// If rows that are needed to open the world are damaged, or the packs do not fit, no byte of the directory is
    /// changed. Both are checked before the engine is opened for writing.
    ///
    /// # Errors
    /// The variants of [`OpenError`], each of which states what to do; [`Error::Registry`] and [`Error::Corrupt`] if
    /// the registry or the world's limits are damaged.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<World, Error> {
        self.with_options(|options| {
            let grow = |catalog: &mut Catalog| Registry::grow(catalog, self.packs, &options.packs);
            World::open_with(dir.as_ref(), options, grow)
        })
    }

    /// Opens a world read-only that no process has open. Every transaction is refused and no byte is changed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(self, dir: impl AsRef<Path>) -> Result<World, Error> {
        self.with_options(|options| World::read_only(dir.as_ref(), options))
    }

    /// Returns what opening a world with these packs would change, without changing anything.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). A refused plan is not an error here: the plan itself reports it.
    pub fn plan(self, dir: impl AsRef<Path>) -> Result<Plan, Error> {
        self.open_read_only(dir).map(|world| self.plan_of(&world))
    }

    /// Quarantines the damaged parts of a commit that blocks the open of a world with [`OpenError::DamagedCommit`].
    /// Copies are kept in quarantine, the sound parts are rolled forward, and the world can be opened again. Returns
    /// `Ok(None)` if no commit is damaged; nothing was written then.
    ///
    /// This is the only case in which a part of a transaction becomes visible. Each chunk and each record is still
    /// whole. But of chunks and entities that refer to each other, one may be from before the commit and the other from
    /// after it. [`verify`](World::verify) finds them, and the world has no opacity map until it is
    /// [rebuilt](crate::opacity::OpacityMap::rebuild). If there is a checkpoint, restoring it is better.
    ///
    /// The world must be closed. Costs one read and one write of the commit. An interrupted call can be repeated.
    ///
    /// # Errors
    /// As [`open`](Self::open) if the world's own rows are damaged or of a newer release, or if the files cannot be
    /// opened at all; [`Error::Engine`] if the commit is of a newer release, and for other errors of the engine.
    pub fn salvage_commit(self, dir: impl AsRef<Path>) -> Result<Option<SalvagedCommit>, Error> {
        let dir = dir.as_ref();
        read_finished(dir)?;
        let engine_dir = directory::engine_dir(dir);
        // A world of a newer release is refused, as in an open.
        let is_ours = |reader: &RocksEngine| WorldRows::read(reader).map(drop);
        self.with_options(|options| salvage_in(dir, &engine_dir, options, is_ours))
    }
}

impl World {
    /// As [`WorldBuilder::create`], with the names of another world.
    pub(crate) fn create_with(dir: &Path, catalog: Catalog, options: &WorldOptions) -> Result<Self, Error> {
        options.tiers.validate()?;
        let dir = &*absolute(dir)?;
        let file = WorldFile::signed(options.signature.clone())?;
        let rows = WorldRows::of_new(catalog);
        claim(dir)?;
        file.write(dir)?;
        let engine = RocksEngine::create(&directory::engine_dir(dir), &options.rocks())
            .map_err(|source| OpenError::Engine { at: dir.into(), source })?;
        let ready = WorldFile { state: State::Ready, ..file };
        let world = Self::begin(Box::new(engine), rows, ready.clone(), dir.into(), options)?;
        world.applied()?.shared.engine()?.sync()?;
        ready.write(dir)?;
        sync_parent(dir)?;
        Ok(world)
    }

    /// As [`open`](Self::open), with a function that changes the stored names and may refuse them.
    pub(crate) fn open_with(
        dir: &Path,
        options: &WorldOptions,
        change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        options.tiers.validate()?;
        let dir = &*absolute(dir)?;
        let mut file = read_finished(dir)?;
        file.check_signature(&dir.into(), options.signature.as_deref())?;
        let refused = |source| OpenError::Engine { at: dir.into(), source };
        let examined =
            RocksEngine::examine(&directory::engine_dir(dir), &options.rocks()).map_err(refused)?;
        let floor_problem = directory::floor_problem(dir, &file);
        let has_floor_problem = floor_problem.is_some();
        if let Some(problem) = floor_problem.filter(|_| !options.accept_lost_commits) {
            return Err(refused(problem).into());
        }
        let mut rows = WorldRows::read_in(examined.reader(), dir, &file)?;
        rows.shape_for(options)?;
        recovery::check(examined.reader())?;
        change(&mut rows.catalog)?;
        if examined.has_lost_commits() || has_floor_problem {
            // The numbers of the lost commits will be used again. The new incarnation is written before the loss is
            // accepted. So no crash leaves a world that reuses them under the old incarnation.
            file = WorldFile { incarnation: Uuid::new_v4(), ..file };
            file.write(dir)?;
        }
        let engine = examined.open().map_err(refused)?;
        if file.state == State::Checkpoint {
            // A copy that is changed is another world than its original: their versions must not be compared.
            file = WorldFile { incarnation: Uuid::new_v4(), state: State::Ready, ..file };
            file.write(dir)?;
        }
        Self::begin(Box::new(engine), rows, file, dir.into(), options)
    }

    fn read_only(dir: &Path, options: &WorldOptions) -> Result<Self, Error> {
        let dir = &*absolute(dir)?;
        let file = read_finished(dir)?;
        file.check_signature(&dir.into(), options.signature.as_deref())?;
        let reading = options.rocks().with_access(Access::ReadOnly);
        let engine = RocksEngine::open(&directory::engine_dir(dir), &reading)
            .map_err(|source| OpenError::Engine { at: dir.into(), source })?;
        let rows = WorldRows::read_in(&engine, dir, &file)?;
        Self::begin(Box::new(engine), rows, file, dir.into(), options)
    }

    /// Copies the world as it is now into a new directory, by hard links where the file system allows.
    ///
    /// Another process can read the copy while this world is in use. Opened for writing, it becomes a world of a new
    /// incarnation. No file is read, so damage is copied with the rest. If a linked file is damaged later, both worlds
    /// are damaged: [`CheckpointFiles::Copied`] writes files of their own instead. [`verify`](Self::verify) the copy.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`] if the directory exists and is not empty; the errors of the engine.
    pub fn checkpoint(&self, dir: impl AsRef<Path>, files: CheckpointFiles) -> Result<(), Error> {
        self.checkpoint_and(dir.as_ref(), |engine_dir| match files {
            CheckpointFiles::Linked => Ok(()),
            CheckpointFiles::Copied => directory::unshare(engine_dir),
        })
    }

    /// Writes a checkpoint that becomes valid after `finish` was called with the engine's directory in it.
    fn checkpoint_and(
        &self,
        dir: &Path,
        finish: impl FnOnce(&Path) -> Result<(), OpenError>,
    ) -> Result<(), Error> {
        self.applied()?.shared.check_open()?;
        let caps = self.applied()?.shared.engine()?.caps();
        if !caps.checkpoint {
            let what = if caps.read_only {
                "write a checkpoint when opened for reading only"
            } else {
                "write a checkpoint"
            };
            return Err(EngineError::Unsupported { what }.into());
        }
        claim(dir)?;
        self.fill_checkpoint(dir, finish).inspect_err(|_| {
            // What is written would keep the next checkpoint from this directory. That it is half is known without it.
            let _gone = fs::remove_dir_all(directory::engine_dir(dir));
            let _gone = fs::remove_file(dir.join(directory::FILE_NAME));
        })
    }

    /// Writes a checkpoint into an empty directory.
    fn fill_checkpoint(
        &self,
        dir: &Path,
        finish: impl FnOnce(&Path) -> Result<(), OpenError>,
    ) -> Result<(), Error> {
        WorldFile { state: State::Creating, ..self.applied()?.shared.file.clone() }.write(dir)?;
        let engine = self.applied()?.commit.drained_engine()?;
        let guard = engine.hold_apply()?;
        engine.checkpoint(&directory::engine_dir(dir))?;
        drop(guard);
        finish(&directory::engine_dir(dir))?;
        WorldFile { state: State::Checkpoint, ..self.applied()?.shared.file.clone() }.write(dir)?;
        sync_parent(dir)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_fails_is_in_the_way_of_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let (world, copy) = (folder.path().join("world"), folder.path().join("copy"));
        let world = World::builder().create(world).expect("the directory is empty");
        let full = |dir: &Path| Err(OpenError::io("copy", dir, std::io::ErrorKind::StorageFull.into()));
        let error = world.checkpoint_and(&copy, full).expect_err("the disk is full");
        let wanted = format!("cannot copy {}: no storage space", copy.join("db").display());
        assert_eq!(error.to_string(), wanted);
        assert_eq!(fs::read_dir(&copy).expect("it was made").count(), 0);
        world.checkpoint(&copy, CheckpointFiles::Copied).expect("copies");
        World::builder().open(&copy).expect("it is whole");
    }
}
