//! Salvage of a damaged commit that blocks the open of its world: its sound parts are rolled forward, the rest is
//! quarantined.

#[cfg(feature = "rocks")]
use std::path::Path;

use cg_format::lineage::Lineage;

use crate::engine::{Batch, CommitSeq, Engine, Level, Readable};
#[cfg(feature = "rocks")]
use crate::engine::{EngineError, RocksEngine};
use crate::storage::change_log;
use crate::storage::error::Error;
#[cfg(feature = "rocks")]
use crate::storage::error::OpenError;
use crate::storage::history::{self, HistoryEngine};
use crate::storage::opacity_map;
#[cfg(feature = "rocks")]
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

/// Damaged commits that an engine must roll forward.
pub(crate) struct DamagedCommits {
    salvage: Salvage,
    lost: Vec<(Vec<u8>, String)>,
    lineage: Lineage,
}

impl DamagedCommits {
    /// Finds them; `None` if no commit is damaged. `last_commit` is the newest commit of the reader.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the openings are damaged; as [`Salvage::find`].
    pub(crate) fn find(reader: &dyn Readable, last_commit: CommitSeq) -> Result<Option<Self>, Error> {
        let lineage = history::read(reader)?;
        let salvage = Salvage::find(reader, last_commit.get())?;
        let lost: Vec<_> = salvage.lost().map(|(_, lost)| (lost.key.clone(), lost.what.clone())).collect();
        Ok((!lost.is_empty()).then_some(Self { salvage, lost, lineage }))
    }

    /// Salvages them in the engine, which it closes.
    ///
    /// # Errors
    /// [`Error::Engine`] if rolling forward fails.
    pub(crate) fn salvage(self, engine: Box<dyn Engine>) -> Result<SalvagedCommit, Error> {
        let Self { salvage, lost, lineage } = self;
        let engine = HistoryEngine::begin(engine, lineage);
        // The parts of the map that belong to the sound parts may be in those that are lost.
        let mut batch = Batch::new();
        opacity_map::disown(&mut batch);
        change_log::disown(&mut batch);
        engine.commit(batch.maintenance(), &[], Level::Process)?;
        salvage.roll_forward(&engine)?;
        engine.close()?;
        Ok(SalvagedCommit { rolled_forward_parts: salvage.sound_parts(), lost })
    }
}

/// Salvages the damaged commits of the engine in a directory; `None` if there are none. `check` examines the engine first.
///
/// # Errors
/// [`OpenError::Engine`] if the engine does not open; that of `check`; [`Error::Corrupt`] if the openings are damaged;
/// [`Error::Engine`] if the commits cannot be read or rolled forward.
#[cfg(feature = "rocks")]
pub fn salvage_in(
    dir: &Path,
    path: &Path,
    options: &WorldOptions,
    check: impl FnOnce(&RocksEngine) -> Result<(), Error>,
) -> Result<Option<SalvagedCommit>, Error> {
    let refused = |source: EngineError| OpenError::Engine { at: dir.into(), source };
    let examined = RocksEngine::examine(path, &options.rocks()).map_err(refused)?;
    check(examined.reader())?;
    let damaged = DamagedCommits::find(examined.reader(), examined.reader().last_commit())?;
    let Some(damaged) = damaged else { return Ok(None) };
    damaged.salvage(Box::new(examined.open().map_err(refused)?)).map(Some)
}
