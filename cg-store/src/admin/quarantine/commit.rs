//! Salvage of a damaged commit that blocks the open of its world: its sound parts are rolled forward, the rest is
//! quarantined.

use std::path::Path;

use crate::engine::{Batch, Engine as _, EngineError, Level, RocksEngine};
use crate::storage::error::{Error, OpenError};
use crate::storage::history::{self, HistoryEngine};
use crate::storage::opacity_map;
use crate::storage::options::WorldOptions;
use crate::storage::staged::salvage::Salvage;

/// The result of salvaging a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedCommit {
    /// The number of parts that were rolled forward.
    pub rolled_forward_parts: u64,
    /// The damaged or missing rows, each with its problem: the keys of the commit's intent and parts. The writes of
    /// such a part are lost; an intent has none.
    pub lost: Vec<(Vec<u8>, String)>,
}

/// Salvages the damaged commits that an engine must roll forward. `check` examines the engine first.
///
/// # Errors
/// [`OpenError::Engine`] if the engine does not open; that of `check`; [`Error::Engine`] if rolling forward fails.
pub fn salvage_in(
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
    let lineage = history::read(examined.reader())?;
    let engine = HistoryEngine::begin(Box::new(examined.open().map_err(refused)?), lineage);
    // The parts of the map that belong to the sound parts may be in those that are lost.
    let mut batch = Batch::new();
    opacity_map::disown(&mut batch);
    engine.commit(batch.maintenance(), &[], Level::Process)?;
    salvage.roll_forward(&engine)?;
    engine.close()?;
    Ok(Some(SalvagedCommit { rolled_forward_parts: salvage.sound_parts(), lost }))
}
