//! A damaged commit that keeps its world closed: what is sound of it is rolled forward, the rest is kept in quarantine.

use std::path::Path;

use crate::engine::{Engine as _, EngineError, RocksEngine};
use crate::storage::error::{Error, OpenError};
use crate::storage::options::WorldOptions;
use crate::storage::staged::salvage::Salvage;

/// What became of a commit that could not be rolled forward as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedCommit {
    /// How many of its parts were rolled forward.
    pub rolled_forward_parts: u64,
    /// The rows that were damaged or missing, each with what was wrong: the keys of its intent and of its parts. What a
    /// part would have written is lost; an intent writes nothing.
    pub lost: Vec<(Vec<u8>, String)>,
}

/// Quarantines what is damaged of commits that an engine is to roll forward, if it holds what is expected.
pub(crate) fn salvage_in(
    dir: &Path,
    path: &Path,
    options: &WorldOptions,
    check: impl FnOnce(&RocksEngine) -> Result<(), Error>,
) -> Result<Option<SalvagedCommit>, Error> {
    let refused = |source: EngineError| OpenError::Engine { path: dir.into(), source };
    let examined = RocksEngine::examine(path, &options.rocks()).map_err(refused)?;
    check(examined.reader())?;
    let newest = examined.reader().last_commit().get();
    let salvage = Salvage::find(examined.reader(), newest)?;
    let lost: Vec<_> = salvage.lost().map(|(_, lost)| (lost.key.clone(), lost.what.clone())).collect();
    if lost.is_empty() {
        return Ok(None);
    }
    let engine = examined.open().map_err(refused)?;
    salvage.roll_forward(&engine)?;
    engine.close()?;
    Ok(Some(SalvagedCommit { rolled_forward_parts: salvage.sound_parts(), lost }))
}
