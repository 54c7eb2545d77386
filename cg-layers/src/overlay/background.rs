//! What background threads do for overlays: they write what was submitted, and load.

use std::sync::Arc;

use cg_store::Error;
use cg_store::layer::Base;

use super::arena::Arena;
use super::handle::Overlay;
use super::inside::Inside;
use super::pool::Pool;
use super::submitted::Job;

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

/// Writes what was submitted to an arena in the background.
pub(super) fn start_job<S: Base>(pool: &Arc<Pool<S>>, arena: &Arc<Arena>) {
    let (weak, submitted) = ((Arc::downgrade(pool), Arc::downgrade(arena)), Arc::clone(&arena.submitted));
    pool.store.base.spawn(Box::new(move || {
        // Dropped last, after the pool.
        let _job = submitted.begin_job();
        if submitted.is_empty() {
            return;
        }
        if let (Some(pool), Some(arena)) = (weak.0.upgrade(), weak.1.upgrade()) {
            Overlay::of_any_tenancy(&pool, &arena).run_when_applied(Box::new(|| {}));
        }
    }));
}

/// Runs a job in the background after what was submitted is written. No thread waits for a transaction meanwhile: threads
/// of the base are few, and the closure of the transaction may wait for one of them.
pub(super) fn spawn_when_applied<S: Base>(
    pool: &Arc<Pool<S>>,
    arena: &Arc<Arena>,
    job: Box<dyn FnOnce() + Send>,
) {
    let weak = (Arc::downgrade(pool), Arc::downgrade(arena));
    pool.store.base.spawn(Box::new(move || match (weak.0.upgrade(), weak.1.upgrade()) {
        (Some(pool), Some(arena)) => Overlay::of_any_tenancy(&pool, &arena).run_when_applied(job),
        _ => job(),
    }));
}

impl<S: Base> Overlay<S> {
    /// Runs a job after what was submitted is written, here and in the base; on another thread if that has to wait.
    pub(super) fn run_when_applied(&self, job: Box<dyn FnOnce() + Send>) {
        let weak = (Arc::downgrade(&self.pool), Arc::downgrade(&self.arena));
        let until = self.arena.submitted.newest();
        self.base().when_applied(Box::new(move || match (weak.0.upgrade(), weak.1.upgrade()) {
            (Some(pool), Some(arena)) => {
                Overlay::of_any_tenancy(&pool, &arena).run_when_free(until, Job(job));
            }
            _ => job(),
        }));
    }

    fn run_when_free(&self, until: Option<u64>, job: Job) {
        let submitted = &self.arena.submitted;
        if !submitted.is_empty() {
            match self.try_write(until) {
                Some(Err(error)) if !submitted.is_empty() => {
                    tracing::warn!(%error, arena = self.arena.number, "what was submitted to an overlay still waits");
                    // If it reads, it gets the reason.
                    return (job.0)();
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
        (job.0)();
    }

    /// The right to write is released: starts what waits for it.
    pub(super) fn start_deferred(&self) {
        for Job(job) in self.arena.submitted.take_deferred() {
            spawn_when_applied(&self.pool, &self.arena, job);
        }
    }
}
