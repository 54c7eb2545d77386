//! What background threads do for overlays: they write what was submitted, and load.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use cg_store::Error;
use cg_store::layer::Base;

use super::arena::Arena;
use super::handle::Overlay;
use super::inside::Inside;
use super::pool::Pool;
use super::submitted::{Done, Job, Running, Submitted};

impl<S: Base> Pool<S> {
    /// The arenas for which batches wait.
    fn waiting(&self) -> Vec<Arc<Arena>> {
        let arenas = self.arenas.all.lock();
        arenas.values().filter(|arena| !arena.submitted.is_empty()).cloned().collect()
    }
}

/// Writes what was submitted to all arenas of a pool.
///
/// # Errors
/// Why some of it still waits: the first error. The rest is written.
pub(super) fn apply_all<S: Base>(pool: &Arc<Pool<S>>) -> Result<(), Error> {
    let apply = |arena: Arc<Arena>| Overlay::of_any_tenancy(pool, &arena).applied_for_all();
    pool.waiting().into_iter().map(apply).fold(Ok(()), Result::and)
}

/// Tries again, in the background, what could not be written.
pub(super) fn try_again<S: Base>(pool: &Arc<Pool<S>>) {
    for arena in pool.waiting() {
        if arena.submitted.schedule() {
            start_job(pool, &arena);
        }
    }
}

/// An arena as a background job knows it. The job does not keep the pool open before it begins.
struct ByJob<S: Base> {
    pool: Weak<Pool<S>>,
    arena: Weak<Arena>,
    submitted: Arc<Submitted>,
}

/// The overlay of a background job that has begun.
struct Begun<S: Base> {
    overlay: Overlay<S>,
    /// Dropped after the pool.
    _running: Running,
}

impl<S: Base> ByJob<S> {
    fn new(pool: &Arc<Pool<S>>, arena: &Arc<Arena>) -> Self {
        let submitted = Arc::clone(&arena.submitted);
        Self { pool: Arc::downgrade(pool), arena: Arc::downgrade(arena), submitted }
    }

    /// Begins. `None` if the pool is closed, or if nothing waits and the host has no handle: the last one that is dropped
    /// waits for the jobs that have begun.
    fn begin(&self) -> Option<Begun<S>> {
        let running = Running::begin(&self.submitted);
        let arena = self.arena.upgrade()?;
        if self.submitted.is_empty() && arena.handles.load(Ordering::Acquire) == 0 {
            return None;
        }
        let overlay = Overlay::of_any_tenancy(&self.pool.upgrade()?, &arena);
        Some(Begun { overlay, _running: running })
    }
}

/// Writes what was submitted to an arena in the background.
pub(super) fn start_job<S: Base>(pool: &Arc<Pool<S>>, arena: &Arc<Arena>) {
    let by_job = ByJob::new(pool, arena);
    pool.store.base.spawn(Box::new(move || {
        by_job.submitted.note_begun();
        if !by_job.submitted.is_empty()
            && let Some(begun) = by_job.begin()
        {
            begun.overlay.run_when_applied(Box::new(|_| {}));
        }
    }));
}

/// Runs a job in the background after what was submitted is written. No thread waits for a transaction meanwhile: threads
/// of the base are few, and the closure of the transaction may wait for one of them.
pub(super) fn spawn_when_applied<S: Base>(
    pool: &Arc<Pool<S>>,
    arena: &Arc<Arena>,
    job: Box<dyn FnOnce(Result<(), Error>) + Send>,
) {
    let by_job = ByJob::new(pool, arena);
    pool.store.base.spawn(Box::new(move || {
        if let Some(begun) = by_job.begin() {
            begun.overlay.run_when_applied(job);
        }
    }));
}

/// The right to write to an arena was released: starts what waits for it.
pub(super) fn start_deferred<S: Base>(pool: &Arc<Pool<S>>, arena: &Arc<Arena>) {
    for Job(job) in arena.submitted.take_deferred() {
        spawn_when_applied(pool, arena, job);
    }
}

impl<S: Base> Overlay<S> {
    /// Runs a job after what was submitted is written, here and in the base; on another thread if that has to wait. If the
    /// base cannot be written, what was submitted here waits too: it comes after that. A job of a pool that is closed is
    /// dropped.
    pub(super) fn run_when_applied(&self, job: Box<dyn FnOnce(Result<(), Error>) + Send>) {
        let by_job = ByJob::new(&self.pool, &self.arena);
        let until = self.arena.submitted.newest();
        self.base().when_applied(Box::new(move |below| {
            if let Some(begun) = by_job.begin() {
                match below {
                    Ok(()) => begun.overlay.run_when_free(until, Job(job)),
                    Err(error) => {
                        begun.overlay.put_off(&error, &mut Done::default());
                        job(Err(error));
                    }
                }
            }
        }));
    }

    fn run_when_free(&self, until: Option<u64>, job: Job) {
        let submitted = &self.arena.submitted;
        if !submitted.is_empty() {
            match self.try_write(until) {
                Some(Err(error)) if !submitted.is_empty() => {
                    tracing::warn!(%error, arena = self.arena.number, "what was submitted to an overlay still waits");
                    return (job.0)(Err(error));
                }
                Some(_) => {}
                None => {
                    submitted.defer(job);
                    // If the right was released meanwhile, this starts what was deferred.
                    drop(self.try_write(until));
                    return;
                }
            }
        }
        // What is submitted from here on comes after it.
        let _applied = Inside::enter();
        (job.0)(Ok(()));
    }
}
