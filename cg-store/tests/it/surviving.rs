//! An engine that outlives its world, and whose power can be cut between any two commits.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_format::key::Family;
use cg_store::engine::{
    Batch, CommitSeq, Engine, EngineError, Guard, KeyRange, Level, MemEngine, Place, ReadView, Reopen, Stamp,
};

/// So many commits are made before the power goes; below zero it is gone.
#[derive(Debug, Clone)]
pub(crate) struct Fuse(Arc<AtomicI64>);

impl Fuse {
    pub(crate) fn set(&self, commits: i64) {
        self.0.store(commits, Ordering::SeqCst);
    }

    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MAX)))
    }

    fn burn(&self) -> Result<(), EngineError> {
        let left = self.0.fetch_sub(1, Ordering::SeqCst);
        if left > 0 { Ok(()) } else { Err(EngineError::NoSpace { message: "the power is gone".into() }) }
    }

    pub(crate) fn is_burnt(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }
}

/// Where a row is: its family and its key.
type RowAt = (Family, Vec<u8>);

/// An engine that is still there after its world was closed.
pub(crate) struct Surviving<E = MemEngine> {
    engine: Arc<E>,
    fuse: Fuse,
    /// A row at which every scan fails, as at a damaged block.
    unreadable: Arc<Mutex<Option<RowAt>>>,
}

impl<E> Clone for Surviving<E> {
    fn clone(&self) -> Self {
        let Self { engine, fuse, unreadable } = self;
        Self { engine: Arc::clone(engine), fuse: fuse.clone(), unreadable: Arc::clone(unreadable) }
    }
}

impl Surviving {
    pub(crate) fn new(fuse: &Fuse) -> Self {
        Self::over(MemEngine::new(), fuse)
    }
}

impl<E: Engine> Surviving<E> {
    pub(crate) fn over(engine: E, fuse: &Fuse) -> Self {
        Self { engine: Arc::new(engine), fuse: fuse.clone(), unreadable: Arc::default() }
    }

    /// Makes a row unreadable to scans.
    pub(crate) fn spoil(&self, family: Family, key: impl AsRef<[u8]>) {
        *self.unreadable.lock().expect("no panic") = Some((family, key.as_ref().to_vec()));
    }

    /// Writes a row that says nothing, behind the back of whoever uses the engine.
    pub(crate) fn overwrite(&self, space: Space, key: impl AsRef<[u8]>) {
        let mut batch = Batch::new();
        let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
        batch.put(space, key, nonsense, Stamp::Commit);
        self.engine.commit(batch, &[], Level::Process).expect("it takes a row");
    }
}

impl<E: Engine> ReadView for Surviving<E> {
    type Val<'a> = E::Val<'a>;

    cg_store::pass_on! { engine => get get_many }

    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        let unreadable =
            self.unreadable.lock().expect("no panic").clone().filter(|(damaged, _)| *damaged == family);
        let stopped = self.engine.scan(family, range, |key, row| {
            if unreadable.as_ref().is_some_and(|(_, damaged)| damaged == key) {
                return ControlFlow::Break(None);
            }
            visit(key, row).map_break(Some)
        })?;
        let message = "a damaged block by request".into();
        let damaged = || EngineError::Corrupt { place: Place::Family(family), message };
        stopped.map_or(Ok(None), |stopped| stopped.map(Some).ok_or_else(damaged))
    }
}

impl<E: Engine> Engine for Surviving<E> {
    type Snapshot<'a> = E::Snapshot<'a>;

    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.fuse.burn()?;
        self.engine.commit(batch, guards, level)
    }

    cg_store::pass_on! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact failure free_bytes caps usage
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Nobody resumes a world whose power is gone.
    fn reopening(&self) -> Reopen<Self> {
        Box::new(|_| Err(EngineError::Closed))
    }
}
