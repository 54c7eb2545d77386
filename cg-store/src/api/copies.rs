//! Copies of a world in another place, and archives.

use std::io::{Read, Write};
#[cfg(feature = "rocks")]
use std::path::Path;

use crate::admin::archive::{ArchiveError, Archived, DamagedRows, OfArchive};
use crate::admin::load::{Copied, KeepsIdentity, load_rows};
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
        let shared = &rooms.shared;
        let target = Target::begin(dir.as_ref(), &shared.file, &shared.options)?;
        let commit = rooms.commit.drained_engine()?.last_commit();
        let copied = if target.is_loaded(commit)? {
            Copied { commit, is_continued: true, ..Copied::default() }
        } else {
            rooms.admin().copy(&target.engine, KeepsIdentity::InFile, progress)?
        };
        target.end(&shared.file)?;
        Ok(copied)
    }

    /// Writes all rows of a world as it is now, as they are, as one stream of bytes.
    ///
    /// Other threads can use that world meanwhile. [`restore`](Self::restore) and [`restore_over`](Self::restore_over) make
    /// the world of it again; `docs/format/archive.md` describes the bytes. Every checksum of every row is compared first:
    /// `damaged` says what follows where one is wrong. Rows are not decoded otherwise. Costs one scan of all rows, and
    /// memory for two parts of 1 MiB, or for the largest row three times. A stream that was not finished is refused whole.
    ///
    /// ```
    /// use cg_store::engine::MemEngine;
    /// use cg_store::prelude::*;
    /// use cg_store::view::DamagedRows;
    /// let world = World::builder().in_memory()?;
    /// world.transaction(|tx| tx.put_object("avatar/7", b"red hat".to_vec()))?;
    /// let mut archive = Vec::new();
    /// World::builder().archive(&world, &mut archive, DamagedRows::Refuse, |_| {})?;
    ///
    /// let engine = MemEngine::new();
    /// World::builder().restore_over(&archive[..], &engine, |_| {})?;
    /// let restored = World::builder().open_over(engine)?;
    /// assert_eq!(restored.objects().get("avatar/7")?.map(|object| object.bytes.to_vec()), Some(b"red hat".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArchiveError::Store`] with [`Error::Corrupt`] for the first damaged row; those of the engine and of the stream;
    /// [`ArchiveError::Fault`] for a row of more than 256 MiB; [`ArchiveError::NamesTooLarge`] if the rows of `worldMeta` take more
    /// than that together.
    pub fn archive(
        self,
        of: &World,
        to: impl Write,
        damaged: DamagedRows,
        progress: impl FnMut(&Archived),
    ) -> Result<Archived, ArchiveError> {
        of.applied()?.admin().archive(to, damaged, progress)
    }

    /// Makes the world of an [archive](Self::archive) in an engine without rows.
    ///
    /// It is the same world: opened for writing, it becomes one of a new incarnation. One pass over the stream, with memory
    /// for its largest part twice, two parts of 4 MiB, and at the end the rows of `worldMeta`, at most 256 MiB. Until the whole archive was
    /// read and found to be sound, the rows open as no world. After an interruption the same call with the same archive goes on.
    ///
    /// # Errors
    /// [`ArchiveError::Fault`] and [`ArchiveError::NoWorld`] for a bad archive: the rows so far stay in the engine and are
    /// no world. [`OpenError::NotEmpty`](crate::OpenError::NotEmpty) if the engine has other rows, and
    /// [`OpenError::HalfCreated`](crate::OpenError::HalfCreated) if it has a part of another copy or archive.
    pub fn restore_over(
        self,
        from: impl Read + Send,
        to: &dyn Engine,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let archive = OfArchive::open(from)?;
        let of = archive.original()?;
        load_rows(archive, &of, to, KeepsIdentity::InRows, progress)
    }

    /// As [`restore_over`](Self::restore_over), into an empty or missing directory, with the builder's options.
    ///
    /// # Errors
    /// As [`restore_over`](Self::restore_over). After [`ArchiveError::Fault`] and [`ArchiveError::NoWorld`], what this call
    /// wrote is removed, unless an earlier call had begun it.
    #[cfg(feature = "rocks")]
    pub fn restore(
        self,
        from: impl Read + Send,
        dir: impl AsRef<Path>,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, ArchiveError> {
        let archive = OfArchive::open(from)?;
        let of = archive.original()?;
        let commit = of.commit();
        let target = self.with_options(|options| Target::begin(dir.as_ref(), &of.file, options))?;
        if target.is_loaded(commit)? {
            target.end(&of.file)?;
            return Ok(Copied { commit, is_continued: true, ..Copied::default() });
        }
        match load_rows(archive, &of, &target.engine, KeepsIdentity::InFile, progress) {
            Err(error @ (ArchiveError::Fault(_) | ArchiveError::NoWorld { .. })) => {
                target.discard()?;
                Err(error)
            }
            loaded => {
                let copied = loaded?;
                target.end(&of.file)?;
                Ok(copied)
            }
        }
    }
}

#[cfg(feature = "rocks")]
mod disk {
    use std::path::{Path, PathBuf};
    use std::{fs, io};

    use crate::admin::load::forget_state;
    use crate::engine::{CommitSeq, Engine as _, ErrorKind, RocksEngine};
    use crate::storage::claim::{absolute, claim, sync_parent};
    use crate::storage::directory::{self, State, WorldFile};
    use crate::storage::error::{Error, OpenError};
    use crate::storage::options::WorldOptions;

    /// The directory of a copy that is not finished.
    pub(super) struct Target {
        dir: PathBuf,
        begun: Begun,
        pub(super) engine: RocksEngine,
    }

    impl Target {
        /// Begins a copy in an empty or missing directory, or finds a part of the same copy.
        pub(super) fn begin(dir: &Path, of: &WorldFile, options: &WorldOptions) -> Result<Self, Error> {
            let dir = absolute(dir)?;
            let file = WorldFile { state: State::Creating, ..of.clone() };
            let path = directory::engine_dir(&dir);
            let begun = if WorldFile::read(&dir).is_ok_and(|found| found == file) {
                Begun::Before
            } else {
                let begun = if dir.exists() { Begun::InEmpty } else { Begun::InNew };
                claim(&dir)?;
                file.write(&dir)?;
                begun
            };
            let options = options.rocks();
            let opened = match RocksEngine::open(&path, &options) {
                // It was not finished being created, or a part of it is lost: all of it comes from the original again.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Damaged) => {
                    remove(&path)?;
                    RocksEngine::create(&path, &options)
                }
                opened => opened,
            };
            let engine = opened.map_err(|source| OpenError::Engine { at: dir.as_path().into(), source })?;
            Ok(Self { dir, begun, engine })
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
        pub(super) fn end(self, of: &WorldFile) -> Result<(), Error> {
            self.engine.close()?;
            drop(self.engine);
            WorldFile { state: State::Checkpoint, ..of.clone() }.write(&self.dir)?;
            sync_parent(&self.dir)?;
            Ok(())
        }

        /// Removes what was begun by this value, and nothing that was there before.
        pub(super) fn discard(self) -> Result<(), Error> {
            let Self { dir, begun, engine } = self;
            engine.close()?;
            drop(engine);
            if begun == Begun::Before {
                return Ok(());
            }
            remove(&directory::engine_dir(&dir))?;
            // The file goes last: while it is there, it says that the directory holds nothing of value.
            let file = dir.join(directory::FILE_NAME);
            fs::remove_file(&file).map_err(|error| OpenError::io("remove", &file, error))?;
            if begun == Begun::InNew {
                fs::remove_dir(&dir).map_err(|error| OpenError::io("remove", &dir, error))?;
            }
            Ok(())
        }
    }

    /// When and where a copy was begun.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Begun {
        /// By an earlier call.
        Before,
        /// In a directory that was there and empty.
        InEmpty,
        /// In a directory that was made for it.
        InNew,
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
