//! The targets of a restore: worlds, overlays and segmented worlds.

use std::sync::Arc;

use cg_format::ChunkAt;
use cg_registry::UpgradeFunctions;
use cg_snapshot::{RestoreError, StepWork};
use cg_store::layer::Base;
use cg_store::{Error, LoadTicket, Peek, World};

use crate::overlay::Overlay;
use crate::segment::{SegmentHome, SegmentedWorld};

/// A store whose transactions run the steps of a [`RestoreQueue`](cg_snapshot::RestoreQueue).
pub trait Target {
    /// Runs the work on a chunk and its entities in a transaction, and commits it at the durability of the store.
    ///
    /// # Errors
    /// The error of the work or of the commit. Nothing was written.
    fn transact(&self, at: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<(), Stopped>;

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
    fn transact(&self, _: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.transaction(|tx| work(tx).map_err(|error| Stopped::Work(Box::new(error)))).map(|_| ())
    }

    fn load_ahead(&self, at: &[ChunkAt]) -> Option<LoadTicket> {
        load_missing(at, |at| self.peek(at), |missing| self.load_in_background(missing))
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Base::upgrades(self)
    }
}

impl<S: Base> Target for Overlay<S> {
    fn transact(&self, _: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.transaction(|tx| work(tx).map_err(|error| Stopped::Work(Box::new(error))))
    }

    fn load_ahead(&self, at: &[ChunkAt]) -> Option<LoadTicket> {
        load_missing(at, |at| self.peek(at), |missing| self.load_in_background(missing))
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Base::upgrades(self)
    }
}

/// Each step is a transaction of the chunk's segment. An entity of the snapshot that another segment has now ends the
/// operation with [`SegmentError::EntityElsewhere`](crate::SegmentError::EntityElsewhere).
impl<H: SegmentHome> Target for SegmentedWorld<H> {
    fn transact(&self, at: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.transaction(at, |tx| work(tx).map_err(|error| Stopped::Work(Box::new(error))))
    }

    fn load_ahead(&self, at: &[ChunkAt]) -> Option<LoadTicket> {
        load_missing(at, |at| self.peek(at), |missing| self.load_in_background(missing))
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Base::upgrades(self)
    }
}

/// Starts to load the chunks that memory does not have.
fn load_missing(
    at: &[ChunkAt],
    peek: impl Fn(ChunkAt) -> Peek,
    load: impl FnOnce(&[ChunkAt]) -> LoadTicket,
) -> Option<LoadTicket> {
    let missing: Vec<_> = at.iter().copied().filter(|at| matches!(peek(*at), Peek::NotLoaded)).collect();
    (!missing.is_empty()).then(|| load(&missing))
}
