//! The protocol of the chunk cache's epochs under every order of threads and every reordering of memory that loom finds.
//!
//! The epochs are the real ones, compiled over loom's atomics and locks. Engine and queue are one word: what they do is
//! to answer with something that was committed, and that is what a word does. Memory is a word behind a lock, as an
//! entry is behind the lock of its part of the cache.
//!
//! It stands here and not in cg-store because loom brings C to a crate that must be tested without.

use loom::sync::atomic::AtomicU64 as Word;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::sync::{Arc, Mutex};
use loom::thread;

use epoch::{Epochs, Slot};

mod primitives {
    //! Primitives from which epochs are built, in loom's world.

    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    pub(super) struct Lock(loom::sync::Mutex<()>);

    pub(super) type ChangeLock = Lock;

    pub(super) type PlaceLock = Lock;

    pub(super) type LockGuard<'l> = loom::sync::MutexGuard<'l, ()>;

    impl Lock {
        pub(super) fn lock(&self) -> LockGuard<'_> {
            self.0.lock().expect("no thread of a model panics")
        }
    }
}

#[path = "../../cg-store/src/read/cache/epoch.rs"]
#[expect(dead_code, reason = "a model needs only the protocol")]
mod epoch;

const PLACE: Slot = Slot(0);
/// Memory has no entry; anything else is a version.
const EMPTY: u64 = 0;
const OLD: u64 = 1;
const NEW: u64 = 2;

/// One chunk: what the engine has, and what memory has.
struct OneChunk {
    epochs: Epochs,
    engine: Word,
    memory: Mutex<u64>,
}

impl OneChunk {
    fn stored() -> Arc<Self> {
        Arc::new(Self { epochs: Epochs::new(1, 1), engine: Word::new(OLD), memory: Mutex::new(EMPTY) })
    }

    fn remembered(&self) -> u64 {
        *self.memory.lock().unwrap()
    }

    fn remember(&self, version: u64) {
        *self.memory.lock().unwrap() = version;
    }

    /// As `Inner::stored`.
    fn load(&self) -> u64 {
        let known = self.remembered();
        if known != EMPTY {
            return known;
        }
        let ticket = self.epochs.now(PLACE);
        let found = self.engine.load(Acquire);
        if self.epochs.keep_if_unchanged(PLACE, ticket, || self.remember(found)) {
            return found;
        }
        match self.remembered() {
            EMPTY => found,
            known => known,
        }
    }

    /// As a commit.
    fn save(&self) {
        let change = self.epochs.begin_change(vec![PLACE]);
        self.engine.store(NEW, Release);
        self.remember(NEW);
        drop(change);
    }

    /// As an eviction: it may come at any time.
    fn evict(&self) {
        self.remember(EMPTY);
    }
}

/// Checks in every order.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // More preemptions than these find nothing that fewer do not, and take minutes.
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn after_a_commit_has_returned_nobody_sees_what_was_before() {
    check(|| {
        let chunk = OneChunk::stored();
        let loader = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.load()
        });
        chunk.save();
        assert_eq!(chunk.load(), NEW);
        loader.join().unwrap();
        assert_eq!(chunk.load(), NEW, "a slow loader put the old chunk over the new one");
    });
}

#[test]
fn who_has_seen_a_commit_never_sees_what_was_before() {
    check(|| {
        let chunk = OneChunk::stored();
        let slow = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.load()
        });
        let saver = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.save()
        });
        let (first, second) = (chunk.load(), chunk.load());
        assert!(first <= second, "{first} and then {second}");
        slow.join().unwrap();
        saver.join().unwrap();
    });
}

#[test]
fn an_eviction_while_a_commit_is_under_way_brings_nothing_old_back() {
    check(|| {
        let chunk = OneChunk::stored();
        let saver = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.save()
        });
        let evictor = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || {
                chunk.evict();
                chunk.load()
            }
        });
        let (first, second) = (chunk.load(), chunk.load());
        assert!(first <= second, "{first} and then {second}");
        saver.join().unwrap();
        evictor.join().unwrap();
        assert_eq!(chunk.load(), NEW);
    });
}

#[test]
fn what_has_the_epoch_of_a_moment_is_of_that_moment() {
    check(|| {
        let chunk = OneChunk::stored();
        // The moment is taken while no commit is under way.
        let moment = chunk.epochs.now(PLACE);
        let saver = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.save()
        });
        let loader = thread::spawn({
            let chunk = Arc::clone(&chunk);
            move || chunk.load()
        });
        // As `ChunkCache::get_as_of`.
        let known = chunk.remembered();
        if known != EMPTY && chunk.epochs.now(PLACE) == moment {
            assert_eq!(known, OLD, "it is of a later state");
        }
        saver.join().unwrap();
        loader.join().unwrap();
    });
}
