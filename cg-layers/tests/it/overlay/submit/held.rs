//! A base whose background jobs wait for the test, and gates at which threads wait for it.

use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::{ChunkSource, Lookup, SchemaView};
use cg_layers::{Found, Identity};
use cg_registry::{Catalog, UpgradeFunctions};
use cg_store::engine::{CommitSeq, EngineError};
use parking_lot::{Condvar, Mutex};

use super::super::*;
use super::{Arc, Level};

type Work = Box<dyn FnOnce() + Send>;

/// A gate that can be closed. Threads that come then wait.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    pub(super) fn close(&self) {
        self.0.0.lock().is_closed = true;
    }

    pub(super) fn open(&self) {
        self.0.0.lock().is_closed = false;
        self.0.1.notify_all();
    }

    /// Waits until a thread waits at the gate.
    pub(super) fn wait_for_one(&self) {
        self.0.1.wait_while(&mut self.0.0.lock(), |state| state.waiting == 0);
    }

    pub(super) fn pass(&self) {
        let mut state = self.0.0.lock();
        state.waiting += 1;
        self.0.1.notify_all();
        self.0.1.wait_while(&mut state, |state| state.is_closed);
        state.waiting -= 1;
    }

    /// An engine whose commits pass the gate.
    pub(super) fn engine(&self) -> MemEngine {
        let gate = self.clone();
        MemEngine::new().with_fault(move |_: CommitSeq| {
            gate.pass();
            None
        })
    }
}

/// A base whose background jobs are run by the test.
#[derive(Clone)]
pub(super) struct Held<S> {
    below: S,
    jobs: Arc<Mutex<Vec<Work>>>,
    /// Runs once, after what was submitted is written.
    applied: Arc<Mutex<Option<Work>>>,
    /// Reads of chunks pass it.
    pub(super) reads: Gate,
    /// No chunk can be read while it is set.
    pub(super) is_away: Arc<AtomicBool>,
}

impl<S: Base> Held<S> {
    pub(super) fn over(below: &S) -> Self {
        let (jobs, applied, reads) = (Arc::default(), Arc::default(), Gate::default());
        Self { below: below.clone(), jobs, applied, reads, is_away: Arc::default() }
    }

    /// Runs the oldest job. `false` if there is none.
    pub(super) fn run_job(&self) -> bool {
        let mut jobs = self.jobs.lock();
        if jobs.is_empty() {
            return false;
        }
        let job = jobs.remove(0);
        drop(jobs);
        job();
        true
    }

    pub(super) fn run_jobs(&self) {
        while self.run_job() {}
    }

    /// Does something when what was submitted is written next.
    pub(super) fn when_applied_next(&self, act: impl FnOnce() + Send + 'static) {
        *self.applied.lock() = Some(Box::new(act));
    }

    fn has_applied(&self) {
        let act = self.applied.lock().take();
        if let Some(act) = act {
            act();
        }
    }

    #[track_caller]
    pub(super) fn assert_applied(&self) {
        assert!(self.applied.lock().is_none(), "it never happened");
    }
}

impl<S: Base> ChunkSource for Held<S> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        self.below.lookup(at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        self.below.schema()
    }
}

impl<S: Base> Base for Held<S> {
    fn identity(&self) -> Identity {
        self.below.identity()
    }

    fn layers(&self) -> u32 {
        self.below.layers()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.below.catalog()
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.below.upgrades()
    }

    fn spawn(&self, job: Work) {
        self.jobs.lock().push(job);
    }

    fn apply_submitted(&self) -> Result<(), Error> {
        self.below.apply_submitted()?;
        self.has_applied();
        Ok(())
    }

    fn when_applied(&self, job: Box<dyn FnOnce(Result<(), Error>) + Send>) {
        let held = self.clone();
        self.below.when_applied(Box::new(move |applied| {
            held.has_applied();
            job(applied);
        }));
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        self.reads.pass();
        if self.is_away.load(Ordering::Acquire) {
            return Err(EngineError::Unavailable { message: "the server is away".into() }.into());
        }
        self.below.find_chunk(at)
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        self.below.find_entity(id)
    }

    kept_of!(below);

    fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.below.keep_found(level)
    }
}
