//! What keeps a world open.
//!
//! **Invariant**: when the last [`Handle`] is gone, so is the engine, and its directory can be opened again. Tickets
//! and background work hold a [`Visitor`], which keeps nothing open; closing waits for visits that have begun.

use std::io;
use std::sync::Arc;

use crate::api::world::Inner;
use crate::commit::hand_over::Accepter;
use crate::commit::steady_sync::SteadySync;
use crate::commit::write_behind::Writer;
use crate::engine::Caps;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::visits::{Visitor, Visits};
use crate::storage::durability::Durability;

/// What all clones of a world share; closes it when it is dropped.
pub(crate) struct Handle {
    inner: Arc<Inner>,
    visits: Arc<Visits>,
    /// Absent where nothing outlives the process, nothing is written, or the host wants none.
    sync: Option<SteadySync>,
    /// Started by the first commit that is queued.
    writer: Mutex<Option<Writer>, rank::StartWriter>,
    /// Started by the first hand-over.
    accepter: Mutex<Option<Accepter>, rank::StartAccepter>,
}

impl Handle {
    /// Holds a world, and syncs its commits if they are to outlive the process.
    pub(crate) fn new(inner: Inner, caps: Caps) -> io::Result<Self> {
        let syncs = inner.options.durability != Durability::Fast;
        let mut handle = Self {
            inner: Arc::new(inner),
            visits: Arc::default(),
            sync: None,
            writer: Mutex::default(),
            accepter: Mutex::default(),
        };
        if caps.durable && !caps.read_only && syncs {
            handle.sync = Some(SteadySync::start(handle.visitor())?);
        }
        Ok(handle)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Makes sure that what is queued gets written.
    pub(crate) fn start_writing(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            *writer = Some(Writer::start(Arc::clone(&self.inner.queue), self.visitor())?);
        }
        Ok(())
    }

    /// Makes sure that what is handed over gets accepted.
    pub(crate) fn start_accepting(&self) -> io::Result<()> {
        let mut accepter = self.accepter.lock();
        if accepter.is_none() {
            *accepter = Some(Accepter::start(Arc::clone(&self.inner.hand_overs), self.visitor())?);
        }
        Ok(())
    }

    pub(crate) fn visitor(&self) -> Visitor<Inner> {
        Visitor::new(&self.inner, &self.visits)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.inner.close() {
            tracing::error!(%error, world = ?self.inner, "closing the world failed");
        }
        let [_, synced] = self.inner.engine.reached();
        self.visits.end(synced.get());
        if let Some(sync) = &mut self.sync {
            sync.end();
        }
        if let Some(accepter) = self.accepter.get_mut() {
            accepter.end();
        }
        if let Some(writer) = self.writer.get_mut() {
            writer.end();
        }
    }
}
