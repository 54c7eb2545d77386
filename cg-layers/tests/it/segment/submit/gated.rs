//! Segments whose opening can be made to wait or to fail, and whose power can be cut.

use std::io;
use std::sync::Arc;

use cg_registry::Catalog;
use cg_store::OpenError;
use cg_store::error::Location;
use parking_lot::{Condvar, Mutex};

use super::super::transfer::Crashing;
use super::super::*;
use crate::surviving::Fuse;

/// What becomes of calls that open or create a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Opening {
    Opens,
    Waits,
    Fails,
    /// The one at this x.
    FailsAt(i64),
}

#[derive(Clone)]
pub(in super::super) struct Gated {
    inner: Crashing,
    gate: Arc<Gate>,
}

struct Gate {
    /// And how many calls came.
    state: Mutex<(Opening, usize)>,
    changed: Condvar,
}

impl Gated {
    pub(in super::super) fn new() -> Self {
        Self::over(Crashing::new())
    }

    pub(in super::super) fn over(inner: Crashing) -> Self {
        let gate = Gate { state: Mutex::new((Opening::Opens, 0)), changed: Condvar::new() };
        Self { inner, gate: Arc::new(gate) }
    }

    pub(in super::super) fn open(&self, is_new: bool) -> SegmentedWorld<Self> {
        self.open_with(is_new, &segments())
    }

    pub(in super::super) fn open_with(
        &self,
        is_new: bool,
        segments: &SegmentOptions,
    ) -> SegmentedWorld<Self> {
        self.fuse().set(i64::MAX);
        SegmentedWorld::begin(self.clone(), self.inner.root(segments), is_new.then_some(16), segments)
            .expect("begins")
    }

    pub(in super::super) fn fuse(&self) -> &Fuse {
        &self.inner.fuse
    }

    /// How often a segment was opened or created.
    pub(in super::super) fn opened(&self) -> usize {
        self.gate.state.lock().1
    }

    pub(in super::super) fn set(&self, opening: Opening) {
        self.gate.state.lock().0 = opening;
        self.gate.changed.notify_all();
    }

    /// Loses a segment without a word to the root.
    pub(in super::super) fn lose(&self, segment: SegmentPos) {
        self.inner.remove(segment).expect("is forgotten");
    }

    fn pass(&self, segment: SegmentPos) -> Result<(), Error> {
        let mut state = self.gate.state.lock();
        state.1 += 1;
        self.gate.changed.wait_while(&mut state, |(opening, _)| *opening == Opening::Waits);
        if [Opening::Fails, Opening::FailsAt(segment.x)].contains(&state.0) {
            let source = io::Error::other("the disk is not reachable");
            return Err(OpenError::Io { action: "open", path: "segment".into(), source }.into());
        }
        Ok(())
    }
}

impl SegmentHome for Gated {
    fn location(&self, segment: SegmentPos) -> Location {
        self.inner.location(segment)
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        self.inner.has(segment)
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        self.pass(segment)?;
        self.inner.create(segment, names, options)
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        self.pass(segment)?;
        SegmentHome::open(&self.inner, segment, names, check, options)
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.inner.remove(segment)
    }
}
