//! The targets of a restore: worlds and overlays.

use std::sync::Arc;

use cg_format::ChunkAt;
use cg_registry::UpgradeFunctions;
use cg_snapshot::{RestoreError, StepWork};
use cg_store::layer::Base;
use cg_store::{Error, LoadTicket, Peek, World};

use crate::overlay::Overlay;

/// A store whose transactions run the steps of a [`RestoreQueue`](cg_snapshot::RestoreQueue).
pub trait Target {
    /// Runs the work in a transaction, and commits it at the durability of the store.
    ///
    /// # Errors
    /// The error of the work or of the commit. Nothing was written.
    fn transact(&self, work: &mut StepWork<'_, Error>) -> Result<(), Stopped>;

    /// Starts to load the chunks that are not in memory. `None` if all are in memory, or if steps load chunks
    /// themselves.
    fn load_ahead(&self, at: &[ChunkAt]) -> Option<LoadTicket>;

    /// The functions that convert and fill components of snapshots with other layouts. Default: none.
    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Arc::default()
    }
}

/// Why a transaction wrote nothing.
#[derive(Debug)]
pub enum Stopped {
    /// The store refused the transaction.
    Store(Error),
    /// The work failed.
    Work(Box<RestoreError<Error>>),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Target for World {
    fn transact(&self, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.transaction(|tx| work(tx).map_err(|error| Stopped::Work(Box::new(error)))).map(|_| ())
    }

    fn load_ahead(&self, at: &[ChunkAt]) -> Option<LoadTicket> {
        let is_missing = |at: &ChunkAt| matches!(self.peek(*at), Peek::NotLoaded);
        let missing: Vec<_> = at.iter().copied().filter(is_missing).collect();
        (!missing.is_empty()).then(|| self.load_in_background(&missing))
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Base::upgrades(self)
    }
}

/// Steps load chunks themselves: chunks of the overlay are read from its rows.
impl<S: Base> Target for Overlay<S> {
    fn transact(&self, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.transaction(|tx| work(tx).map_err(|error| Stopped::Work(Box::new(error))))
    }

    fn load_ahead(&self, _: &[ChunkAt]) -> Option<LoadTicket> {
        None
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Base::upgrades(self)
    }
}
