//! Who keeps a world open, and who only visits it while it is.
//!
//! **Invariant**: when the last [`Handle`] is gone, so is the engine, and its directory can be opened again. Tickets
//! and background work hold a [`Visitor`], which keeps nothing open; closing waits for visits that have begun.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};

use crate::api::world::Inner;
use crate::commit::hand_over::Accepter;
use crate::commit::steady_sync::SteadySync;
use crate::commit::write_behind::Writer;
use crate::engine::Caps;
use crate::rt::lock_order::{Condvar, Mutex, rank};
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

/// A way to a world that does not keep it open.
pub(crate) struct Visitor {
    inner: Weak<Inner>,
    visits: Arc<Visits>,
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

    pub(crate) fn visitor(&self) -> Visitor {
        Visitor { inner: Arc::downgrade(&self.inner), visits: Arc::clone(&self.visits) }
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

impl Visitor {
    /// Shows the world, or says which commit was synced last before it was gone.
    pub(crate) fn visit<T>(&self, see: impl FnOnce(&Inner) -> T) -> Result<T, u64> {
        let _until_it_is_dropped = self.visits.begin()?;
        let inner = self.inner.upgrade().expect("a world is not dropped while it is visited");
        Ok(see(&inner))
    }
}

impl Clone for Visitor {
    fn clone(&self) -> Self {
        Self { inner: Weak::clone(&self.inner), visits: Arc::clone(&self.visits) }
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").finish_non_exhaustive()
    }
}

/// The visits under way.
#[derive(Debug, Default)]
struct Visits {
    state: Mutex<State, rank::Visits>,
    none: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Set when the world is gone: the last commit that was synced.
    ended_at: Option<u64>,
}

impl Visits {
    fn begin(&self) -> Result<Visit<'_>, u64> {
        let mut state = self.state.lock();
        if let Some(synced) = state.ended_at {
            return Err(synced);
        }
        state.under_way += 1;
        Ok(Visit(self))
    }

    /// Waits for the visits under way and lets none begin afterwards.
    fn end(&self, synced: u64) {
        let mut state = self.state.lock();
        self.none.wait_while(&mut state, |state| state.under_way > 0);
        state.ended_at = Some(synced);
    }
}

/// One visit, which ends with the value.
struct Visit<'v>(&'v Visits);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            self.0.none.notify_all();
        }
    }
}
