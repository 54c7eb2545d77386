//! Overlays on disk: a directory that contains the engine's directory and nothing else.

use std::path::{Path, PathBuf};

use cg_store::engine::{Access, RocksEngine};
use cg_store::layer::{Base, claim, open_with_history, salvage_in, sync_parent};
use cg_store::quarantine::SalvagedCommit;
use cg_store::{Error, OpenError, WorldOptions};
use cg_tiering::GameTick;

use super::arenas::Arenas;
use super::handle::Overlay;
use crate::store::{OverlayError, holds_overlays};

/// The engine's directory inside the directory of an overlay.
const ENGINE_DIR: &str = "overlay";

impl<S: Base> Arenas<S> {
    /// Creates a pool of arenas in an empty or missing directory.
    ///
    /// # Errors
    /// [`OpenError::NotEmpty`], [`OpenError::Engine`], [`OverlayError::TooDeep`].
    pub fn create(dir: impl AsRef<Path>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        let dir = dir.as_ref();
        claim(dir)?;
        let engine = RocksEngine::create(&engine_dir(dir), &options.rocks())
            .map_err(|source| OpenError::Engine { at: dir.into(), source })?;
        let arenas = Self::over(engine, base, options)?;
        arenas.engine().sync()?;
        sync_parent(dir)?;
        Ok(arenas)
    }

    /// Opens a pool of arenas over the base that it was created over.
    ///
    /// # Errors
    /// [`OverlayError::NotAnOverlay`], [`OpenError::HalfCreated`], [`OpenError::Engine`]; [`OverlayError::WrongBase`]
    /// and the other errors of a base that has changed. No row of the directory is changed then.
    pub fn open(dir: impl AsRef<Path>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        Self::open_as(dir.as_ref(), base, options, Access::ReadWrite)
    }

    /// Opens a pool of arenas for reading. No other process may have it open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(dir: impl AsRef<Path>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        Self::open_as(dir.as_ref(), base, options, Access::ReadOnly)
    }

    fn open_as(dir: &Path, base: S, options: &WorldOptions, access: Access) -> Result<Self, Error> {
        let path = overlay_engine_dir(dir)?;
        let engine = open_with_history(dir, &path, &options.rocks().with_access(access))?;
        if !holds_overlays(&engine)? {
            return Err(OpenError::HalfCreated { at: dir.into() }.into());
        }
        Self::over(engine, base, options)
    }

    /// As [`WorldBuilder::salvage_commit`](cg_store::WorldBuilder::salvage_commit), for a pool of arenas. Copies of
    /// the damaged rows stay in the pool's engine.
    ///
    /// # Errors
    /// [`OverlayError::NotAnOverlay`](crate::OverlayError::NotAnOverlay), [`OpenError::HalfCreated`], and as
    /// [`WorldBuilder::salvage_commit`](cg_store::WorldBuilder::salvage_commit).
    pub fn salvage_commit(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
    ) -> Result<Option<SalvagedCommit>, Error> {
        let dir = dir.as_ref();
        let path = overlay_engine_dir(dir)?;
        salvage_in(dir, &path, options, |reader| {
            let refused = || OpenError::HalfCreated { at: dir.into() };
            if holds_overlays(reader)? { Ok(()) } else { Err(refused().into()) }
        })
    }
}

impl<S: Base> Overlay<S> {
    /// Creates a pool of arenas and leases one of them.
    ///
    /// # Errors
    /// As [`Arenas::create`].
    pub fn create(dir: impl AsRef<Path>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        let overlay = Arenas::create(dir, base, options)?.lease("", GameTick::new(0))?;
        overlay.arenas().engine().sync()?;
        Ok(overlay)
    }

    /// Opens a pool of arenas and resumes arena 0, the one that [`create`](Self::create) leased.
    ///
    /// # Errors
    /// As [`Arenas::open`] and [`Arenas::resume`].
    pub fn open(dir: impl AsRef<Path>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        Arenas::open(dir, base, options)?.resume(0)
    }
}

/// Whether a directory is that of a pool of arenas.
pub(crate) fn is_pool(dir: &Path) -> bool {
    engine_dir(dir).is_dir()
}

/// The engine's directory inside the directory of a pool.
pub(crate) fn overlay_engine_dir(dir: &Path) -> Result<PathBuf, OverlayError> {
    let path = engine_dir(dir);
    if path.is_dir() {
        return Ok(path);
    }
    let why = "it has no directory `overlay`";
    Err(OverlayError::NotAnOverlay { path: dir.into(), why })
}

fn engine_dir(dir: &Path) -> PathBuf {
    dir.join(ENGINE_DIR)
}
