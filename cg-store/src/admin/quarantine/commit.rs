//! A damaged commit that keeps its world closed: what is sound of it is carried out, the rest is kept in quarantine.

use std::path::Path;

use crate::api::disk::{read_finished, rocks_options};
use crate::api::world::World;
use crate::engine::{Engine, EngineError, RocksEngine};
use crate::overlay::{Arenas, Base, holds_overlays, overlay_engine_dir};
use crate::storage::directory;
use crate::storage::error::{Error, OpenError};
use crate::storage::meta::WorldRows;
use crate::storage::options::WorldOptions;
use crate::storage::staged::salvage::Salvage;

/// What became of a commit that could not be carried out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInPart {
    /// How many of its parts were carried out.
    pub carried_out_parts: u64,
    /// The rows that were damaged or missing, each with what was wrong: the keys of its intent and of its parts. What a
    /// part would have written is lost; an intent writes nothing.
    pub lost: Vec<(Vec<u8>, String)>,
}

impl World {
    /// Sets the damaged parts of a commit aside that keeps a world from being opened with
    /// [`OpenError::DamagedCommit`]: copies are kept in quarantine, the sound parts are carried out, and the world opens
    /// again. `Ok(None)` if no commit is damaged; nothing was written then.
    ///
    /// This is the one way in which a part of a transaction is ever seen. No chunk and no record is half there, but of
    /// chunks and entities that refer to each other one may be of before the commit and the other of behind it:
    /// [`verify`](Self::verify) finds them, and [`rebuild_opacity`](Self::rebuild_opacity) draws the map again. A
    /// checkpoint, if there is one, is the better choice.
    ///
    /// Needs the world closed. Costs reading the commit, and writing it once. Killed in the middle, it is done again.
    ///
    /// # Errors
    /// As [`open`](Self::open) if the world's own rows are damaged or of a newer release, or if the files cannot be opened
    /// at all; [`Error::Engine`] if the commit is of a newer release, and what the engine says.
    pub fn set_aside_damaged_commit(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
    ) -> Result<Option<CommitInPart>, Error> {
        let dir = dir.as_ref();
        read_finished(dir)?;
        // A world of a newer release is refused, as it is when it is opened.
        set_aside_in(dir, &directory::engine_dir(dir), options, |reader| WorldRows::read(reader).map(drop))
    }
}

impl<S: Base> Arenas<S> {
    /// As [`World::set_aside_damaged_commit`], of a pool of arenas. Copies of what was damaged stay in the pool's engine.
    ///
    /// # Errors
    /// [`OverlayError::NotAnOverlay`](crate::OverlayError::NotAnOverlay), [`OpenError::HalfCreated`], and as [`World::set_aside_damaged_commit`].
    pub fn set_aside_damaged_commit(
        dir: impl AsRef<Path>,
        options: &WorldOptions,
    ) -> Result<Option<CommitInPart>, Error> {
        let dir = dir.as_ref();
        let path = overlay_engine_dir(dir)?;
        set_aside_in(dir, &path, options, |reader| {
            let refused = || OpenError::HalfCreated { path: dir.into() };
            if holds_overlays(reader)? { Ok(()) } else { Err(refused().into()) }
        })
    }
}

/// Sets aside what is damaged of commits that an engine is to carry out, if it holds what is expected.
fn set_aside_in(
    dir: &Path,
    path: &Path,
    options: &WorldOptions,
    check: impl FnOnce(&RocksEngine) -> Result<(), Error>,
) -> Result<Option<CommitInPart>, Error> {
    let refused = |source: EngineError| OpenError::Engine { path: dir.into(), source };
    let examined = RocksEngine::examine(path, &rocks_options(options)).map_err(refused)?;
    check(examined.reader())?;
    let newest = examined.reader().last_commit().get();
    let salvage = Salvage::find(examined.reader(), newest)?;
    let lost: Vec<_> = salvage.lost().map(|(_, lost)| (lost.key.clone(), lost.what.clone())).collect();
    if lost.is_empty() {
        return Ok(None);
    }
    let engine = examined.open().map_err(refused)?;
    salvage.carry_out(&engine)?;
    engine.close()?;
    Ok(Some(CommitInPart { carried_out_parts: salvage.sound_parts(), lost }))
}
