//! Copies of a world in another place.

#[cfg(feature = "rocks")]
use std::path::Path;

use crate::admin::copy::{Copied, KeepsIdentity};
use crate::api::builder::WorldBuilder;
use crate::api::world::World;
use crate::engine::Engine;
use crate::storage::error::Error;

#[cfg(feature = "rocks")]
use self::disk::Target;

impl WorldBuilder<'_> {
    /// Copies all rows of a world as it is now into an engine without rows, as they are.
    ///
    /// Other threads can use that world meanwhile. The copy opens like the original when this returns, and the engine was
    /// synced. Opened for writing, it becomes a world of a new incarnation. An interrupted copy opens as no world. It is
    /// continued by the same call, if the original is still at the same commit. Costs one scan of all rows, a thread until
    /// it returns, and memory for two parts of 4 MiB, or for the two largest rows. Rows are not decoded, so damage is copied with the rest:
    /// [`verify`](World::verify) the copy, or compare its [`content_hash`](World::content_hash).
    ///
    /// ```
    /// use cg_store::engine::MemEngine;
    /// use cg_store::prelude::*;
    /// let world = World::builder().in_memory()?;
    /// let engine = MemEngine::new();
    /// let copied = World::builder().copy_over(&world, &engine, |so_far| println!("{} rows", so_far.row_count))?;
    /// assert_eq!(copied.commit, world.last_commit());
    /// let copy = World::builder().open_over(engine)?;
    /// assert_eq!(copy.identity().uuid, world.identity().uuid);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`](crate::OpenError::NotEmpty) if the engine has rows;
    /// [`OpenError::HalfCreated`](crate::OpenError::HalfCreated) if it has a part of another copy. The errors of both
    /// engines, also [`EngineError::Unsupported`](crate::engine::EngineError::Unsupported) if the engine does not load rows.
    pub fn copy_over(
        self,
        of: &World,
        to: &dyn Engine,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, Error> {
        of.applied()?.admin().copy(to, KeepsIdentity::InRows, progress)
    }

    /// As [`copy_over`](Self::copy_over), into an empty or missing directory.
    ///
    /// A [`checkpoint`](World::checkpoint) is quicker, where the world is in a directory itself.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`](crate::OpenError::NotEmpty) if the directory holds anything but a part of this copy;
    /// otherwise as [`copy_over`](Self::copy_over).
    #[cfg(feature = "rocks")]
    pub fn copy_to(
        self,
        of: &World,
        dir: impl AsRef<Path>,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, Error> {
        let rooms = of.applied()?;
        let target = Target::begin(dir.as_ref(), &rooms.shared)?;
        let commit = rooms.commit.drained_engine()?.last_commit();
        let copied = if target.is_loaded(commit)? {
            Copied { commit, is_continued: true, ..Copied::default() }
        } else {
            rooms.admin().copy(&target.engine, KeepsIdentity::InFile, progress)?
        };
        target.end(&rooms.shared)?;
        Ok(copied)
    }
}

#[cfg(feature = "rocks")]
mod disk {
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    use crate::admin::copy::forget_state;
    use crate::engine::{CommitSeq, Engine as _, EngineError, RocksEngine};
    use crate::storage::claim::{absolute, claim, sync_parent};
    use crate::storage::directory::{self, State, WorldFile};
    use crate::storage::error::{Error, OpenError};
    use crate::storage::shared::Shared;

    /// The directory of a copy that is not finished.
    pub(super) struct Target {
        dir: PathBuf,
        pub(super) engine: RocksEngine,
    }

    impl Target {
        /// Begins a copy in an empty or missing directory, or finds a part of the same copy.
        pub(super) fn begin(dir: &Path, of: &Shared) -> Result<Self, Error> {
            let dir = absolute(dir)?;
            let file = WorldFile { state: State::Creating, ..of.file.clone() };
            let path = directory::engine_dir(&dir);
            let is_begun = WorldFile::read(&dir).is_ok_and(|found| found == file);
            if !is_begun {
                claim(&dir)?;
                file.write(&dir)?;
            }
            let options = of.options.rocks();
            let opened = match RocksEngine::open(&path, &options) {
                // It was not finished being created.
                Err(EngineError::NotAnEngineDir { .. } | EngineError::MissingFamily { .. }) => {
                    remove(&path)?;
                    RocksEngine::create(&path, &options)
                }
                opened => opened,
            };
            let engine = opened.map_err(|source| OpenError::Engine { at: dir.as_path().into(), source })?;
            Ok(Self { dir, engine })
        }

        /// Whether all rows of a commit were loaded by an earlier call.
        pub(super) fn is_loaded(&self, commit: CommitSeq) -> Result<bool, Error> {
            let is_loaded = self.engine.last_commit() == commit;
            if is_loaded {
                forget_state(&self.engine)?;
            }
            Ok(is_loaded)
        }

        /// Makes the directory a copy of the world.
        pub(super) fn end(self, of: &Shared) -> Result<(), Error> {
            self.engine.close()?;
            drop(self.engine);
            WorldFile { state: State::Checkpoint, ..of.file.clone() }.write(&self.dir)?;
            sync_parent(&self.dir)?;
            Ok(())
        }
    }

    fn remove(path: &Path) -> Result<(), OpenError> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OpenError::io("remove", path, error))
            }
            _ => Ok(()),
        }
    }
}
