//! Prefetch: chunks that moving players will need soon are loaded into memory before the host requests them.
//!
//! [`Courses`] predicts what will be needed. A tick reports the positions of the players to it and adds changes to
//! [`Waiting`]. One job on the shared threads loads from there, as a request would, until nothing waits.
//!
//! **Invariant**: nothing is loaded on the thread of the tick. At most one job runs for a world, so that the other
//! threads are free for requests of hosts. The job runs at most for the budget of the last tick. The remaining chunks
//! wait for the next tick.

mod unused;
mod waiting;

use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cg_format::ChunkAt;
use cg_tiering::{Ahead, Course, Courses, GameTick, PlayerAt};

use crate::maintain::state::MaintainState;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::pool::caught;
use crate::rt::stats::Counters;
use crate::storage::options::PrefetchOptions;
use unused::Unused;
use waiting::Waiting;

/// The prefetch state of a world: the chunks that wait, and those that were fetched and are not used yet.
#[derive(Debug)]
pub(crate) struct Prefetch {
    in_flight_chunks: usize,
    courses: Mutex<Courses, rank::PrefetchCourses>,
    queue: Mutex<Queue, rank::PrefetchQueue>,
    unused: Unused,
    /// Which chunks may be stored here; unset: all.
    place: OnceLock<Place>,
}

/// Whether a chunk may be stored in a world.
struct Place(Box<dyn Fn(ChunkAt) -> bool + Send + Sync>);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

#[derive(Debug)]
struct Queue {
    waiting: Waiting,
    /// Whether a job loads from here, or is about to.
    is_served: bool,
    /// The time that the job may still use.
    left: Duration,
}

impl Prefetch {
    pub(crate) fn new(options: &PrefetchOptions) -> Self {
        let (wide, high) = (options.width_chunks, options.height_chunks);
        let reach_chunks = [wide, high, wide];
        let ahead = Ahead { chunks: options.ahead_chunks, ticks: options.lookahead_ticks, reach_chunks };
        let waiting = Waiting::new(options.waiting_chunks);
        Self {
            in_flight_chunks: options.in_flight_chunks.max(1),
            courses: Mutex::new(Courses::new(ahead)),
            queue: Mutex::new(Queue { waiting, is_served: false, left: Duration::ZERO }),
            unused: Unused::new(),
            place: OnceLock::new(),
        }
    }

    /// See [`layer::prefetch_only`](crate::layer::prefetch_only).
    pub(crate) fn only(&self, may_have: impl Fn(ChunkAt) -> bool + Send + Sync + 'static) {
        // A world that is opened again keeps its place.
        let _ = self.place.set(Place(Box::new(may_have)));
    }

    fn may_have(&self, at: ChunkAt) -> bool {
        self.place.get().is_none_or(|place| place.0(at))
    }

    /// Takes the positions of all players, and the time that may be used until the next call. Returns whether a job
    /// must be started.
    fn follow(
        &self,
        players: &[PlayerAt],
        now: GameTick,
        budget: Duration,
        is_known: impl Fn(&ChunkAt) -> bool,
        counters: &Counters,
    ) -> bool {
        let mut courses = self.courses.lock();
        let changed = courses.update(players, now);
        let followed = courses.len();
        drop(courses);
        let mut in_vain = self.unused.expire(now);
        let mut dropped = 0;
        for course in changed {
            let (player, wanted) = match course {
                Course::Wants(player, wanted) => (player, wanted),
                Course::Gone(player) => {
                    in_vain += self.unused.forget_player(player);
                    (player, Vec::new())
                }
            };
            let still: HashSet<_> = wanted.iter().copied().collect();
            let unknown = wanted.into_iter().filter(|at| !is_known(at)).collect();
            let mut queue = self.queue.lock();
            let replaced = queue.waiting.replace(player, unknown, followed);
            dropped += replaced.no_room + replaced.old.iter().filter(|at| !still.contains(at)).count();
        }
        Counters::add(&counters.prefetched_wasted, in_vain as u64);
        Counters::add(&counters.prefetched_dropped, dropped as u64);
        let mut queue = self.queue.lock();
        queue.left = budget;
        let starts = !queue.is_served && !queue.waiting.is_empty() && !budget.is_zero();
        queue.is_served |= starts;
        starts
    }

    /// Records that a host requested a chunk, and whether it was in memory.
    pub(crate) fn asked(&self, at: ChunkAt, in_memory: bool, counters: &Counters) {
        if self.unused.take(at) {
            let counter = if in_memory { &counters.prefetched_used } else { &counters.prefetched_wasted };
            Counters::add(counter, 1);
        }
    }
}

impl MaintainState {
    /// Fetches some of the waiting chunks. Returns whether there were any, and time for them.
    fn prefetch_some(&self) -> bool {
        let Some(prefetch) = &self.activity.prefetch else { return false };
        let mut queue = prefetch.queue.lock();
        let begun = Instant::now();
        let next = if queue.left.is_zero() { None } else { queue.waiting.take(prefetch.in_flight_chunks) };
        queue.is_served = next.is_some() && self.shared.check_open().is_ok();
        let (true, Some((player, mut wanted))) = (queue.is_served, next) else { return false };
        drop(queue);
        wanted.retain(|at| self.read.cache.get(*at).is_err());
        // A panic in a function of the host is ignored here. It occurs again, and is reported, when the host loads the
        // chunk.
        let found = caught(|| self.read.stored_many(&wanted)).unwrap_or_default();
        let now = self.activity.tiering.now();
        let mut in_vain = 0;
        for (at, found) in wanted.into_iter().zip(found) {
            match found {
                Ok(_) => {
                    Counters::add(&self.shared.counters.prefetched, 1);
                    in_vain += prefetch.unused.put(at, player, now);
                }
                // Neither kept nor counted: a load of the chunk returns the error.
                Err(error) => tracing::debug!(%at, %error, "a chunk could not be prefetched"),
            }
        }
        Counters::add(&self.shared.counters.prefetched_wasted, in_vain as u64);
        let mut queue = prefetch.queue.lock();
        queue.left = queue.left.saturating_sub(begun.elapsed());
        true
    }
}

#[cfg(test)]
mod tests;

impl MaintainState {
    /// Predicts what players will need, and fetches it within a budget.
    pub(crate) fn prefetch(&self, players: &[PlayerAt], now: GameTick, budget: Duration) {
        let Some(prefetch) = &self.activity.prefetch else { return };
        let is_known = |at: &ChunkAt| !prefetch.may_have(*at) || self.read.cache.get(*at).is_ok();
        if prefetch.follow(players, now, budget, is_known, &self.shared.counters) {
            let world = self.weak_world.clone();
            // Each call is short, so that closing the world does not wait until the queue is empty.
            self.shared
                .pool
                .spawn(move || while world.with_world(MaintainState::prefetch_some) == Ok(true) {});
        }
    }
}
