//! An engine that outlives its world, and whose power can be cut between any two commits.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_format::key::Family;
use cg_store::engine::{
    Batch, CommitSeq, Engine, EngineError, Guard, Level, MemEngine, Place, Readable, Reopen, RowVisitor,
    Scan, Stamp, Value,
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
#[derive(Debug, Clone)]
pub(crate) struct Surviving {
    engine: Arc<dyn Engine>,
    fuse: Fuse,
    /// A row at which every scan fails, as at a damaged block.
    unreadable: Arc<Mutex<Option<RowAt>>>,
    /// A row that no read of its key finds, as in a damaged block.
    lost: Arc<Mutex<Option<RowAt>>>,
}

impl Surviving {
    pub(crate) fn new(fuse: &Fuse) -> Self {
        Self::over(MemEngine::new(), fuse)
    }

    pub(crate) fn over(engine: impl Engine, fuse: &Fuse) -> Self {
        Self::around(Box::new(engine), fuse)
    }

    pub(crate) fn around(engine: Box<dyn Engine>, fuse: &Fuse) -> Self {
        Self {
            engine: Arc::from(engine),
            fuse: fuse.clone(),
            unreadable: Arc::default(),
            lost: Arc::default(),
        }
    }

    /// Makes a row unreadable to scans.
    pub(crate) fn spoil(&self, family: Family, key: impl AsRef<[u8]>) {
        *self.unreadable.lock().expect("no panic") = Some((family, key.as_ref().to_vec()));
    }

    /// Makes a row unreadable by its key.
    pub(crate) fn lose(&self, family: Family, key: impl AsRef<[u8]>) {
        *self.lost.lock().expect("no panic") = Some((family, key.as_ref().to_vec()));
    }

    /// Writes a row that says nothing, behind the back of whoever uses the engine.
    pub(crate) fn overwrite(&self, space: Space, key: impl AsRef<[u8]>) {
        let mut batch = Batch::new();
        let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
        batch.put(space, key, nonsense, Stamp::Commit);
        // The row is one of the newest commit.
        let (_, lineage) = cg_store::layer::with_history(Box::new(self.clone())).expect("it is sound");
        batch.set_lineage(lineage);
        self.engine.commit(batch.maintenance(), &[], Level::Process).expect("it takes a row");
    }
}

impl Readable for Surviving {
    cg_store::engine::delegate! { engine => get_many get_slices }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        let lost = self.lost.lock().expect("no panic").clone();
        if lost.is_some_and(|(family, lost)| family == space.family() && lost == key) {
            let message = "a damaged block by request".into();
            return Err(EngineError::Corrupt { place: Place::Family(space.family()), message });
        }
        self.engine.get(space, key)
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let unreadable =
            self.unreadable.lock().expect("no panic").clone().filter(|(damaged, _)| *damaged == scan.family);
        let mut is_damaged = false;
        self.engine.scan_rows(scan, &mut |key, row| {
            is_damaged = unreadable.as_ref().is_some_and(|(_, damaged)| damaged == key);
            if is_damaged { ControlFlow::Break(()) } else { visit(key, row) }
        })?;
        let message = "a damaged block by request".into();
        let damaged = || EngineError::Corrupt { place: Place::Family(scan.family), message };
        if is_damaged { Err(damaged()) } else { Ok(()) }
    }
}

impl Engine for Surviving {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.fuse.burn()?;
        self.engine.commit(batch, guards, level)
    }

    cg_store::engine::delegate! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact failure free_bytes caps usage
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Nobody resumes a world whose power is gone.
    fn reopening(&self) -> Reopen {
        Box::new(|_| Err(EngineError::Closed))
    }
}
