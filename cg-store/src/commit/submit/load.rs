//! Loads of many chunks, after the batches that concern them are accepted. Threads of the pool help with large ones.
//!
//! A large load is divided into parts. A part is the chunks of one 16³ cube, so no two parts read the same cluster. The
//! caller takes one part after the other, and so does each helper. The caller waits for the parts that helpers have
//! taken, and not for helpers that have not begun: these find no part left.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use cg_format::{ChunkAt, ClusterTier, Lookup};

use crate::commit::state::CommitState;
use crate::engine::Latency;
use crate::read::cache::{Stored, Ticket};
use crate::read::chunk::LoadResult;
use crate::read::state::ReadState;
use crate::rt::reentry::ReentryGuard;
use crate::storage::error::Error;

/// The least number of chunks that is divided. Reading them takes several times as long as waking a thread.
const MIN_CHUNKS: usize = 256;

type Found = Result<Lookup<Stored>, Error>;

/// The index of a part, and its chunks or the panic of reading them.
type Part = (usize, thread::Result<Vec<Found>>);

impl CommitState {
    /// The last committed state of many chunks, after the batches that concern their columns are accepted.
    pub(crate) fn stored_many_applied(&self, at: &[ChunkAt]) -> Vec<Found> {
        self.applied_for_each(at, |at| self.read.stored_many(at))
    }

    /// See [`World::load_many`](crate::World::load_many).
    pub(crate) fn load_many(&self, at: &[ChunkAt]) -> Vec<LoadResult> {
        if self.apply_submitted_for(at).is_ok() && self.read.are_known_absent(at) {
            return at.iter().map(|_| Ok(None)).collect();
        }
        let found = self.applied_for_each(at, |at| {
            self.read.stored_or_loaded(at, |at, tickets| {
                if self.is_to_be_divided(at) {
                    self.load_in_parts(at, tickets)
                } else {
                    self.read.load(at, tickets)
                }
            })
        });
        found.into_iter().map(|found| Ok(found?.here().map(|stored| stored.chunk))).collect()
    }

    /// Calls `load` for all chunks after the batches that concern their columns are accepted. If one cannot be, only its
    /// chunks get an error.
    fn applied_for_each(&self, at: &[ChunkAt], load: impl FnOnce(&[ChunkAt]) -> Vec<Found>) -> Vec<Found> {
        if self.apply_submitted_for(at).is_ok() {
            return load(at);
        }
        let applied = |at: &ChunkAt| {
            self.apply_submitted_for(&[*at])?;
            self.read.stored(*at)
        };
        at.iter().map(applied).collect()
    }

    /// Whether other threads are to read a part of these chunks, which neither the cache nor the queue has.
    ///
    /// Not within a transaction, a commit or an acceptance: a function of the host that upgrades a chunk may call the
    /// world, and would wait on another thread for what this one holds. Not over a network, where each part would be a
    /// round trip.
    fn is_to_be_divided(&self, at: &[ChunkAt]) -> bool {
        let is_local = || self.shared.engine().is_ok_and(|engine| engine.caps().latency < Latency::Network);
        at.len() >= MIN_CHUNKS && !self.shared.pool.is_busy() && ReentryGuard::is_outside() && is_local()
    }

    #[cold]
    fn load_in_parts(&self, at: &[ChunkAt], tickets: &[Ticket]) -> Vec<Found> {
        let load = Arc::new(Divided::new(at, tickets));
        let (sender, receiver) = channel();
        let helper_count = self.shared.pool.idle_count().min(load.parts.len() - 1);
        for _ in 0..helper_count {
            let (world, load, sender) = (self.weak_world.clone(), Arc::clone(&load), sender.clone());
            self.shared.pool.spawn(move || {
                let help = |world: &Self| {
                    // Other jobs come first.
                    while !world.shared.pool.is_busy_beside(1) {
                        let Some(part) = load.read_next(&world.read) else { break };
                        // A caller that panicked receives nothing.
                        if sender.send(part).is_err() {
                            break;
                        }
                    }
                };
                // If the world is gone, the load has ended.
                let _ = world.with_world(help);
            });
        }
        let mut all: Vec<_> = at.iter().map(|_| None).collect();
        let own = std::iter::from_fn(|| load.read_next(&self.read));
        for (part, read) in own.chain(receiver.iter()).take(load.parts.len()) {
            let found = read.unwrap_or_else(|panic| resume_unwind(panic));
            for (place, found) in load.parts[part].iter().zip(found) {
                all[*place] = Some(found);
            }
        }
        all.into_iter().map(|found| found.expect("each chunk is in one part")).collect()
    }
}

/// A load whose parts several threads read.
struct Divided {
    at: Vec<ChunkAt>,
    tickets: Vec<Ticket>,
    /// The chunks of one 16³ cube each, as indices in `at`.
    parts: Vec<Vec<usize>>,
    /// The next part to be taken.
    next: AtomicUsize,
}

impl Divided {
    fn new(at: &[ChunkAt], tickets: &[Ticket]) -> Self {
        let cube_of = |at: &ChunkAt| (at.dimension, at.pos.cluster(ClusterTier::L2));
        let (mut cubes, mut first) = (BTreeMap::<_, Vec<usize>>::new(), 0);
        for run in at.chunk_by(|one, next| cube_of(one) == cube_of(next)) {
            cubes.entry(cube_of(&run[0])).or_default().extend(first..first + run.len());
            first += run.len();
        }
        let mut parts: Vec<_> = cubes.into_values().collect();
        // The largest first, so that no thread begins a large one when the others are done.
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        Self { at: at.to_vec(), tickets: tickets.to_vec(), parts, next: AtomicUsize::new(0) }
    }

    /// Reads the next part, if there is one.
    fn read_next(&self, read: &ReadState) -> Option<Part> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let part = self.parts.get(index)?;
        let at: Vec<_> = part.iter().map(|place| self.at[*place]).collect();
        let tickets: Vec<_> = part.iter().map(|place| self.tickets[*place]).collect();
        Some((index, catch_unwind(AssertUnwindSafe(|| read.load(&at, &tickets)))))
    }
}
